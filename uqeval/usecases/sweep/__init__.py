"""Compute metrics as functions of the number of samples."""
