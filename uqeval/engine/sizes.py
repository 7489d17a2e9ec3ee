"""Read and write sizes in bytes, such as 512MB."""

from __future__ import annotations

import re

from uqeval.errors import UsageError, quoted

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}  # fmt: skip


def parse_memory(size: str | int) -> int:
    """Return the bytes of a size such as 512MB, or of a number. Raises `UsageError`."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Za-z]*)\s*", str(size))
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise UsageError(f"--memory {quoted(size)}; expected a size such as 512MB, 2GB or 1GiB.")
    return int(float(match[1]) * unit) if match[2] or "." in match[1] else int(match[1])


def shown_size(n: int) -> str:
    """Return `n` bytes as a size for --memory, rounded up if that adds less than a tenth."""
    for unit, name in ((10**6, "MB"), (10**3, "kB")):
        if n >= 10 * unit or (n and n % unit == 0):
            return f"{-(-n // unit)}{name}"
    return f"{n}B"
