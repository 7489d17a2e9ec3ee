"""Verify a report: recompute it from the predictions in plain NumPy, with independent code.

It does not use the kernels, maps, tallies and metrics of uqeval; it shares the readers of stores.
"""
