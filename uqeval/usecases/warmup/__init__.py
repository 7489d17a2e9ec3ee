"""Compile what commands need, before it is needed: such as when an image is built."""

from uqeval.usecases.warmup.warming import Warmup, check_cache_folder, warm_up

__all__ = ["Warmup", "check_cache_folder", "warm_up"]
