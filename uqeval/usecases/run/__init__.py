"""Evaluate all stores of a file, each read once, and judge the rules."""
