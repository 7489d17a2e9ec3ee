"""Writers of reports, comparisons and verdicts; nothing here loads NumPy, Numba or Zarr."""
