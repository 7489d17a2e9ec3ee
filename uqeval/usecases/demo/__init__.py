"""Make small stores with the structure of real ones, and run over them."""
