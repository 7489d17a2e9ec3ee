"""Formats opened, checked, read tile by tile and written; saved states."""
