"""`python -m hybandits` is the command line."""

from hybandits.cli import main

main()
