"""The version of this package, for its own files and for the build."""

__version__ = "0.2.0"
