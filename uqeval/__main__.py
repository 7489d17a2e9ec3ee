"""`python -m uqeval` is `uqeval`."""

from uqeval.cli.start import main

main()
