"""The use case `selftest`."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from uqeval.disk.locks import temporary
from uqeval.records.report import now
from uqeval.usecases.selftest.record import Checks, Selftest

#: The modules of the groups, in order, and what each checks.
GROUPS = {
    "codecs": "Files are read as they were written",
    "against_numpy": "Kernels against plain NumPy, float64",
    "examples": "Worked examples of the papers",
    "videos": "Videos with a known answer",
    "golden": "Golden reports",
}
_PACKAGES = (
    "uqeval", "numpy", "numba", "llvmlite", "zarr", "numcodecs", "google-crc32c", "pillow",
    "opencv-python-headless", "pydantic",
)  # fmt: skip


def selftest(
    groups: tuple[str, ...] = tuple(GROUPS), begin: Callable[[str], None] = lambda _: None
) -> Selftest:
    """Run the checks of all groups; `begin` is called with the title of each."""
    began = time.perf_counter()
    result = Selftest(versions=_versions(), platform=_platform())
    with (
        temporary() as folder,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for name in groups:
            title, since = GROUPS[name], time.perf_counter()
            begin(title)
            checks = Checks(title)
            place = Path(folder, name)
            place.mkdir()
            module = import_module(f"uqeval.usecases.selftest.{name}")
            checks.run(title, partial(module.run, checks, place))
            result.checks += checks.found
            result.seconds_by_group[title] = time.perf_counter() - since
    result.seconds = time.perf_counter() - began
    result.finished = now()
    return result


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _platform() -> dict[str, object]:
    return {
        "system": platform.system(), "release": platform.release(), "machine": platform.machine(),
        "python_implementation": platform.python_implementation(), "cpus": os.cpu_count(),
    }  # fmt: skip
