"""The basis of all other layers: checks of arguments, compiling, files, and the package's version."""

__version__ = "0.2.0"
