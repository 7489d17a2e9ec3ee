"""Hints about arrays of standard deviations that hold something else: a logarithm, or none."""

from __future__ import annotations

from uqeval.stores.kinds import SPREADS

#: What an array that is read as a logarithm is called if it holds none.
_PLAIN = {
    "log_variance": "variance", "log_var": "variance", "logvar": "variance",
    "log_std": "std", "log_sigma": "std", "log_b": "std",
}  # fmt: skip


def of_negative(kind: str) -> str:
    """Return a hint about negative values of `std` or `variance`."""
    noun, names = "standard deviation", "log_std, or log_variance if they are of the variance"
    if kind == "variance":
        noun, names = "variance", "log_variance"
    return f"A {noun} is not negative. If these are natural logarithms, call the array {names}."


def of_large(kind: str) -> str:
    """Return a hint about numbers whose σ is infinite or beyond float32; empty for no logarithm."""
    if kind not in _PLAIN:
        return ""
    return (
        f"It is read as a natural logarithm: σ = {SPREADS[kind]}. If it holds no logarithm, call "
        f"the array {_PLAIN[kind]}. "
    )
