"""The report and its writers; nothing here loads NumPy, Numba or Zarr."""

from uqeval.report.schema import SCHEMA, Report

__all__ = ["SCHEMA", "Report"]
