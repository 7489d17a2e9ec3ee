"""Tallies: mergeable counts and sums of fixed size."""
