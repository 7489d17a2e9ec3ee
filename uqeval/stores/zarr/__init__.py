"""Zarr stores: folders, zip files and URLs; read chunk by chunk, and written."""
