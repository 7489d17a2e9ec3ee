"""The kernels that evaluations with default options call, as a run of each tells.

`python tests/helpers/needed_kernels.py` writes `uqeval/kernels/needed.json`; do that when kernels
or what they are called with have changed. `tests/kernels/test_ahead.py` compares.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uqeval.kernels import ahead
from uqeval.usecases.warmup.warming import write_inputs

_OF_CLASSES = ("segmentation", "pavpu", "calibration", "failure", "sparsification")
_OF_NUMBERS = ("regression", "nmerci", "sparsification")
_DTYPES = {"f2": "float16", "f4": "float32", "f8": "float64", "u1": "uint8", "u2": "uint16"}


def stores() -> Iterator[tuple[str, str, dict[str, dict[str, Any]]]]:
    """Yield the kind of array, the store, and the options of each family that applies to it."""
    numbers: dict[str, dict[str, Any]] = {family: {} for family in _OF_NUMBERS}
    classes: dict[str, dict[str, Any]] = {family: {} for family in _OF_CLASSES}
    for short, dtype in _DTYPES.items():
        is_integer, is_common = dtype.startswith("u"), dtype in ("float16", "float32")
        kind = "large" if is_common else "probs"  # large as images are
        yield f"probs {dtype}", f"{kind}-{short}{'' if is_integer else '.npz'}", classes
        if not is_integer:
            yield f"mean {dtype}", f"large-numbers-{short}.npz", numbers
        if is_common:
            yield f"logits {dtype}", f"logits-{short}.npz", classes
    yield "predictions uint8", "video.npz", {"tc": {"flow": "file"}}


#: Runs an evaluation, and prints each kernel when it is first called.
_RUN = """
import json, sys
from uqeval.kernels import _jit
from numba.core.dispatcher import Dispatcher

calls, depth, compiled = [], 0, Dispatcher.compile

def compile(self, signature):
    global depth
    depth += 1
    try:
        if depth == 1:
            name = f"{self.py_func.__module__.rpartition('.')[2]}.{self.py_func.__name__}"
            calls.append(f"{name}({' '.join(map(word, signature))})")
        return compiled(self, signature)
    finally:
        depth -= 1

def word(kind):
    if not isinstance(kind, _jit.types.Array):
        return "None" if kind == _jit.types.none else code(kind)
    return f"{code(kind.dtype)}[{kind.ndim}{kind.layout}{'' if kind.mutable else 'r'}]"

def code(kind):
    from numba.np.numpy_support import as_dtype
    return as_dtype(kind).str[1:]

Dispatcher.compile = compile
import uqeval
store, families = sys.argv[1], json.loads(sys.argv[2])
place = {"video": store} if "tc" in families else {"predictions": store}
uqeval.evaluate(metrics=families, workers=1, **place)
print(json.dumps(calls))
"""


def called(folder: Path, store: str, families: dict[str, Any]) -> list[str]:
    """Return the kernels that an evaluation calls, in order; `folder` has the stores."""
    arguments = [str(folder / store), json.dumps(families)]
    run = [sys.executable, "-W", "ignore", "-c", _RUN, *arguments]
    done = subprocess.run(
        run, cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=True
    )
    return list(dict.fromkeys(json.loads(done.stdout.splitlines()[-1])))


def table() -> dict[str, Any]:
    """Return what the file holds: kernels, and the places of those that each family needs.

    "all": those of all families, in the order of one run of all.
    """
    kernels: dict[str, int] = {}
    found: dict[str, dict[str, list[int]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        for stored, store, families in stores():
            runs = {"all": families} | {name: {name: options} for name, options in families.items()}
            lines = {name: called(Path(folder), store, run) for name, run in runs.items()}
            lines["all"] = list(dict.fromkeys(line for own in lines.values() for line in own))
            found[stored] = {
                name: [kernels.setdefault(line, len(kernels)) for line in own]
                for name, own in lines.items()
            }
    return {"kernels": list(kernels), "stored": found}


def text_of(table: dict[str, Any]) -> str:
    """Return the text of the file: one line a kernel, one line a family of a stored array."""
    kernels = ",\n".join(f"    {json.dumps(line)}" for line in table["kernels"])
    stored = ",\n".join(
        f"    {json.dumps(name)}: {{\n"
        + ",\n".join(f"      {json.dumps(family)}: {own}" for family, own in families.items())
        + "\n    }"
        for name, families in table["stored"].items()
    )
    return f'{{\n  "kernels": [\n{kernels}\n  ],\n  "stored": {{\n{stored}\n  }}\n}}\n'


if __name__ == "__main__":
    ahead._FILE.write_text(text_of(table()), "utf-8")
