"""Reading of all items: order, threads, memory and passes. Metrics are computed elsewhere."""
