"""`python -m uqeval` is `uqeval`."""

from uqeval.cli import main

main()
