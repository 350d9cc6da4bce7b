"""`python -m pilothouse` is the CLI."""

from pilothouse.cli import main

main()
