"""Compile the kernels of commands in advance, such as in the build of a container image."""
