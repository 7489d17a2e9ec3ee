"""The unit of predicted numbers, which stores declare in several spellings."""

from __future__ import annotations

from typing import Any

#: The names of usual units by their symbol, in the singular and in lower case.
_NAMES = {
    "km": ("kilometre", "kilometer"),
    "m": ("metre", "meter"),
    "cm": ("centimetre", "centimeter"),
    "mm": ("millimetre", "millimeter"),
    "µm": ("micrometre", "micrometer", "micron"),
    "h": ("hour", "hr"),
    "min": ("minute",),
    "s": ("second", "sec"),
    "ms": ("millisecond",),
    "µs": ("microsecond",),
    "deg": ("degree",),
    "rad": ("radian",),
    "px": ("pixel",),
    "K": ("kelvin",),
}
#: Other symbols, whose case counts: Mm is no mm, Msec no msec. The first µ is the micro sign, μ the
#: letter.
_SYMBOLS = {
    "um": "µm", "μm": "µm", "us": "µs", "μs": "µs", "usec": "µs", "usecs": "µs", "msec": "ms",
    "msecs": "ms", "°": "deg",
}  # fmt: skip
_OF_NAMES = {
    spelling: symbol for symbol, names in _NAMES.items() for name in names
    for spelling in (name, f"{name}s")
}  # fmt: skip


def is_same_unit(first: Any, second: Any) -> bool:
    """Return whether two texts spell one unit, such as m, meter and metres."""
    return bool(normal_unit(first) == normal_unit(second))


def normal_unit(text: Any) -> Any:
    """Return the symbol of a usual unit; another value as it is, without spaces around it."""
    if not isinstance(text, str):
        return text
    text = text.strip()
    return _SYMBOLS.get(text) or _OF_NAMES.get(text.lower(), text)
