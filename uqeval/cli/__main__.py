"""`python -m uqeval.cli` is `uqeval`."""

from uqeval.cli.entry import main

main()
