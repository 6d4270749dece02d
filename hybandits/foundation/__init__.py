"""The basis of all other layers: checks of arguments, compiling, files, the version."""
