"""How many processes write a store: `ranks`, torch's process group, WORLD_SIZE."""

from __future__ import annotations

import multiprocessing
import os
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uqeval.errors import OutputError, UsageError
from uqeval.stores.store import open_store
from uqeval.stores.writing.processes import process_count
from uqeval.writer import PredictionWriter

ABOUT: dict[str, Any] = {"names": ("a", "b"), "samples": 1, "classes": 2, "size": (2, 2)}
PROBS = np.full((2, 2, 2), 0.5, "f4")


@pytest.fixture(autouse=True)
def no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)


def distributed(available: bool = True, size: int | None = None) -> types.ModuleType:
    """Stand in for `torch.distributed`: a build without it lacks all but `is_available`."""
    module: Any = types.ModuleType("torch.distributed")
    module.is_available = lambda: available
    if available:
        module.is_initialized = lambda: size is not None
        module.get_world_size = lambda: size
    return module


@pytest.mark.parametrize(
    ("ranks", "group", "world", "expected"),
    [
        (None, None, None, 1),
        (None, None, "4", 4),
        (None, distributed(), "4", 4),
        (None, distributed(available=False), "4", 4),
        (None, distributed(size=2), None, 2),
        (None, distributed(size=2), "4", 2),
        (3, distributed(size=2), "4", 3),
    ],
)
def test_the_first_that_knows_says_it(
    ranks: int | None, group: Any, world: str | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if group is not None:
        monkeypatch.setitem(sys.modules, "torch.distributed", group)
    if world is not None:
        monkeypatch.setenv("WORLD_SIZE", world)
    assert process_count(ranks) == expected


@pytest.mark.parametrize("ranks", [0, -1, 1.5, True, "2"])
def test_no_number_of_processes(ranks: Any) -> None:
    with pytest.raises(UsageError, match=r"ranks=.*1 or more"):
        process_count(ranks)


@pytest.mark.parametrize("world", ["0", "two", "-1", "1.5"])
def test_no_world_size(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", world)
    with pytest.raises(UsageError, match=rf"WORLD_SIZE={world}: .*give ranks=N"):
        process_count(None)


def test_rank_1_goes_on_after_rank_0_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rank(name: str) -> None:
        with PredictionWriter(tmp_path / "p.zarr", **ABOUT) as writer:
            writer.add(name, PROBS)

    with pytest.raises(OutputError, match=r"incomplete items \(1 of 2\).*give each.*ranks=N"):
        rank("a")
    with pytest.raises(
        OutputError, match=r"ended early.*give each of them their number as ranks=N"
    ):
        rank("b")
    (tmp_path / "p.zarr").rename(tmp_path / "alone.zarr")
    monkeypatch.setitem(sys.modules, "torch.distributed", distributed(size=2))
    rank("a")
    rank("b")
    assert open_store(tmp_path / "p.zarr", role="predictions").names == ("a", "b")


def _rank(number: int, folder: str) -> None:
    """Write one item in a process group; rank 0 has closed the store before rank 1 opens it."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/group", rank=number, world_size=2)
    for turn in range(2):
        if turn == number:
            with PredictionWriter(f"{folder}/p.zarr", **ABOUT) as writer:
                writer.add("ab"[number], torch.from_numpy(PROBS))
        dist.barrier()


def _group(folder: str) -> None:
    """Import torch once and fork the ranks; end with status 1 where one of them fails."""
    import torch.distributed  # noqa: F401

    os.environ.pop("WORLD_SIZE", None)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    ranks = [multiprocessing.get_context("fork").Process(target=_rank, args=(i, folder))
             for i in range(2)]  # fmt: skip
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(60)
        process.kill()
    sys.exit(any(process.exitcode for process in ranks))


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch for a real process group")
def test_two_ranks_of_a_real_group(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_group, args=(str(tmp_path),))
    process.start()
    process.join(90)
    assert process.exitcode == 0
    assert open_store(tmp_path / "p.zarr", role="predictions").names == ("a", "b")
