"""Run the checks of a self-test; its results as a table and JSON."""

from __future__ import annotations

import math
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from uqeval.arrays import np
from uqeval.disk.files import json_text
from uqeval.disk.locks import temporary
from uqeval.records.report import now
from uqeval.usecases.verify.comparing import distance

SCHEMA = "uqeval.selftest/1"


@dataclass(frozen=True)
class Check:
    """One check: whether the answer is as expected, and details; `values`: how many it compared."""

    group: str
    name: str
    passed: bool
    values: int = 1
    detail: str = ""


@dataclass
class Selftest:
    """All checks, with the versions of the checked packages."""

    checks: list[Check] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    platform: dict[str, Any] = field(default_factory=dict)
    finished: str = ""
    seconds: float = 0.0
    seconds_by_group: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Return whether all checks pass."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    def groups(self) -> Iterator[tuple[str, list[Check]]]:
        """Yield the checks by group."""
        for group in dict.fromkeys(check.group for check in self.checks):
            yield group, [check for check in self.checks if check.group == group]

    def to_json(self) -> str:
        """Return the record as strict JSON."""
        record = {
            "schema": SCHEMA,
            "result": "PASSED" if self.passed else "FAILED",
            "uqeval_version": self.versions.get("uqeval"),
            "versions": self.versions,
            "platform": self.platform,
            "finished": self.finished,
            "seconds": self.seconds,
            "groups": {
                group: {
                    "checks": len(checks), "failed": sum(not check.passed for check in checks),
                    "values": sum(check.values for check in checks),
                    "seconds": self.seconds_by_group.get(group),
                }
                for group, checks in self.groups()
            },
            "checks": [asdict(check) for check in self.checks],
        }  # fmt: skip
        return json_text(record)


class Checks:
    """Collects the checks of one group; an exception is a failed check."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.found: list[Check] = []

    def add(self, name: str, passed: bool, detail: str = "", values: int = 1) -> None:
        """Record one check."""
        self.found.append(Check(self.group, name, bool(passed), values, "" if passed else detail))

    def same(self, name: str, computed: Any, expected: Any, tolerance: float = 0.0) -> None:
        """Record whether numbers, or arrays, are equal within absolute and relative bounds."""
        computed_values = np.atleast_1d(np.asarray(computed, dtype=object)).ravel().tolist()
        expected_values = np.atleast_1d(np.asarray(expected, dtype=object)).ravel().tolist()
        bad = (
            []
            if len(computed_values) == len(expected_values)
            else [f"{len(computed_values)} values"]
        )
        for a, b in zip(computed_values, expected_values, strict=False):
            limit = tolerance * max(1.0, abs(b) if isinstance(b, int | float) else 1.0)
            difference = 0.0 if a != a and b != b else distance(a, b)
            if math.isnan(difference) or difference > limit:
                bad.append(f"found {a!r}, expected {b!r}")
        detail = "; ".join(bad[:3]) + (f"; {len(bad)} values differ" if len(bad) > 3 else "")
        self.add(name, not bad, detail, len(expected_values))

    def run(self, name: str, work: Callable[[], None]) -> None:
        """Call a function that adds checks; an exception is a failed check."""
        try:
            work()
        except Exception as error:  # any error of a library is what a self-test reports
            self.add(name, False, f"{type(error).__name__}: {error}")


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
    with temporary() as folder, warnings.catch_warnings():
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
