"""Compile kernels that an evaluation needs later, in another process.

Numba compiles one kernel at a time in a process. `python -m uqeval.kernels.ahead` compiles the
kernels of evaluations, and saves them; the process that evaluates loads them when it comes to them.
`needed.json` lists the kernels of each evaluation with default options, in the order of their first
call, with the dtypes of their arguments. An evaluation that needs others compiles them itself.
`python tests/helpers/needed_kernels.py` writes the file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from typing import Any

import uqeval.kernels._saved as _saved

_FILE = Path(__file__).with_name("needed.json")
_ARRAY = re.compile(r"(\w+)\[(\d)([ACF])(r?)\]")


@cache
def _file() -> dict[str, Any]:
    return json.loads(_FILE.read_text("utf-8"))


def needed(evaluations: Iterable[str]) -> list[str]:
    """Return the kernels of evaluations such as "pavpu of probs float16", each once."""
    families_of: dict[str, list[str]] = {}
    for evaluation in evaluations:
        family, _, stored = evaluation.partition(" of ")
        families_of.setdefault(stored, []).append(family)
    found: dict[int, None] = {}
    for stored, families in families_of.items():
        by_family = _file()["stored"].get(stored, {})
        places = {place for family in families for place in by_family.get(family, ())}
        found |= dict.fromkeys(place for place in by_family.get("all", ()) if place in places)
    return [_file()["kernels"][place] for place in found]


def kernel_of(line: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a kernel and the types of its arguments.

    A line is "module.function(types)". A type is a dtype (i8), an array of it with its dimensions,
    order and, if it is read-only, an r (u1[3C], i2[3Cr]), or None.
    """
    words = line.removesuffix(")").partition("(")[2]
    return kernel_named(line), tuple(_type(word) for word in words.split())


def kernel_named(line: str) -> Any:
    """Return the kernel of a line."""
    module, _, function = line.partition("(")[0].partition(".")
    return getattr(import_module(f"uqeval.kernels.{module}"), function)


def _type(word: str) -> Any:
    from numba.np.numpy_support import from_dtype
    from numpy import dtype

    from uqeval.kernels._jit import types

    if word == "None":
        return types.none
    if (array := _ARRAY.fullmatch(word)) is None:
        return from_dtype(dtype(word))
    kind, dimensions, order, is_read_only = array.groups()
    return types.Array(from_dtype(dtype(kind)), int(dimensions), order, bool(is_read_only))


def _size(function: Any, seen: set[Any]) -> int:
    """Return the bytes of Python code of a kernel and of the functions of kernels that it calls."""
    function = getattr(function, "py_func", function)
    if function in seen or not isfunction(function):
        return 0
    seen.add(function)
    code, names = function.__code__, function.__globals__
    called = (names[name] for name in code.co_names if callable(names.get(name)))
    return len(code.co_code) + sum(_size(part, seen) for part in called)


def main(folder: str, part: int, parts: int, evaluations: Iterable[str]) -> None:
    """Compile each `parts`-th kernel, the largest first, which takes longest: the process that
    evaluates compiles in the order of the calls.

    Processes that share the folder compile each kernel once. This one does not wait for others.
    """
    _saved.share(Path(folder))
    lines = sorted(needed(evaluations), key=lambda line: -_size(kernel_named(line), set()))
    for line in lines[part::parts]:
        kernel, arguments = kernel_of(line)
        if not kernel._cache.is_begun(arguments):
            kernel.compile(arguments)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
