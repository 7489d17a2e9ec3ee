"""Files and folders of files as stores: NumPy, HDF5, PNG and PFM."""
