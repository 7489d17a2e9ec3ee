"""States files: what the tallies of a run counted, item by item."""
