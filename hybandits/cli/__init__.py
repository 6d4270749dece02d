"""The command line: parse, call, print. One file per group of commands.

Importing this package loads neither Typer nor a compiler, since `hybandits.warm_up` lives here and belongs to the core.
"""
