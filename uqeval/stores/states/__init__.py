"""States files: the states of the tallies of a run, item by item."""
