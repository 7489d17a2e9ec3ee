"""Files: opened only where they are regular, read in bounds, published whole."""
