"""`python -m uqeval.cli` is `uqeval`."""

from uqeval.cli.start import main

main()
