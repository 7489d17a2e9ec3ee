"""Order, threads, memory and passes: how all items are read, never what is made of them."""
