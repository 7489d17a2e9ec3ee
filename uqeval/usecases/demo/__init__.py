"""Make small stores with the structure of real ones, and run over them."""

from uqeval.usecases.demo.making import demo

__all__ = ["demo"]
