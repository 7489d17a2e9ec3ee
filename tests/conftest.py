"""What all tests share: hypothesis profiles, and the interpreted kernels' warnings."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import command
import folders
import forked
import pytest
from hypothesis import HealthCheck, settings

from uqeval.usecases.compiling import compiling_ahead

#: Kernels run as plain Python: that is how their coverage is measured, on small arrays.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

# As commands do, before NumPy is loaded: threads of its library would compete with other tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
folders.use_memory()
# Else each process compiles all tests, in each run.
sys.dont_write_bytecode = False

settings.register_profile(
    "dev",
    deadline=None,
    max_examples=5 if INTERPRETED else 25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: tests wait for browsers, disks and locks."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else 4


@pytest.fixture(scope="session", autouse=True)
def _begun(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give all processes of the tests one folder to note what the executable has run."""
    folder = tmp_path_factory.getbasetemp()
    command.begun = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session", autouse=True)
def _compiling_alone() -> Iterator[None]:
    """Let tests compile in their own processes: there is one for each core."""
    with compiling_ahead((), 1):
        yield


@pytest.fixture(scope="session")
def disk() -> Iterator[Path]:
    """A folder on a disk. uqeval cannot see all changes of files in memory, so it never takes
    results of such files from an earlier run."""
    if (place := folders.on_disk()) is None:
        pytest.skip("no writable folder is on a disk: set TMPDIR to one")
    with tempfile.TemporaryDirectory(prefix="uqeval-tests-", dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Return a new folder, on a disk for tests marked `on_disk`."""
    if request.node.get_closest_marker("on_disk") is None:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=request.getfixturevalue("disk")))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no figures: they take most of the time of a page."""
    forked.draw_nothing(monkeypatch.setattr)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let garbage collection skip the tests themselves, which live until the end.

    Later it is as rare as in commands: see `uqeval.cli.entry`.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000)
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell's background job ignores Ctrl-C, and so would all commands that tests interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if INTERPRETED:
        # Compiled kernels wrap and turn NaN into an integer without a word; scalars of NumPy warn.
        for what in ("overflow", "invalid value", "divide by zero"):
            config.addinivalue_line("filterwarnings", f"ignore:{what}:RuntimeWarning")
