"""The basis of all other layers: checks of arguments, compiling, files, and the version for the package and its build."""

__version__ = "0.2.0"
