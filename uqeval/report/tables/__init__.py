"""Tables of reports and comparisons, for every writer."""
