"""`python -m hybandits` is the command line."""

from hybandits.cli.main import main

main()
