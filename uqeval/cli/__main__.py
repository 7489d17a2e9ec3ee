"""`python -m uqeval.cli` is `uqeval`."""

from uqeval.cli import main

main()
