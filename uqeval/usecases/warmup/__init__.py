"""Compile the kernels of commands in advance, such as in the build of a container image."""

from uqeval.usecases.warmup.warming import Warmup, check_cache_folder, warm_up

__all__ = ["Warmup", "check_cache_folder", "warm_up"]
