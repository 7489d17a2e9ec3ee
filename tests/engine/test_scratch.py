"""Maps kept between passes: in memory, in a folder, or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from scenes import Chunked, all_same, chunked_source, labels, softmax

from uqeval.engine.passes import Resources, workers_within
from uqeval.engine.scratch import Scratch

N, H, W = 5, 7, 9


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def stack() -> Chunked:
    return Chunked(softmax(0, N, 2, 3, H, W, dtype="f2"), (1, 2, 3, H, W))


def read_all(scratch: Scratch, source: Any) -> list[Any]:
    return [
        m
        for batch in source.batches()
        for m in scratch.read(source, batch, lambda _: None, source.wanted | {"label"})
    ]


def item_bytes() -> int:
    source = chunked_source(stack(), truth=labels(0, N, H, W, classes=3))
    return sum(v.nbytes for v in source.read(range(1))[0].values())


@pytest.mark.parametrize(
    ("held", "enabled", "reads"), [(N, True, 1), (2, True, 1), (0, True, 1), (N, False, 3)]
)
def test_what_is_kept_is_not_read_again(folder: Path, held: int, enabled: bool, reads: int) -> None:
    array = stack()
    source = chunked_source(array, truth=labels(0, N, H, W, classes=3))
    plain = [m for batch in source.batches() for m in source.read(batch)]
    array.reads.clear()
    with Scratch(held * item_bytes(), enabled) as scratch:
        for _ in range(3):
            found = read_all(scratch, source)
            all_same(found, plain)
        on_disk = sum(1 for p in folder.rglob("*") if p.is_file() and p.name != "owner")
        assert on_disk == (N - held if enabled else 0)
    assert set(array.reads.values()) == {reads}
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("held", "reads"), [(N, 1), (N - 1, 3)])
def test_maps_of_a_mapped_source_are_kept_where_all_fit(
    folder: Path, held: int, reads: int
) -> None:
    array = stack()
    source = chunked_source(array, truth=labels(0, N, H, W, classes=3))
    source.mapped, source.maps_bytes = True, lambda: N * item_bytes()
    plain = [m for batch in source.batches() for m in source.read(batch)]
    array.reads.clear()
    with Scratch(held * item_bytes()) as scratch:
        for _ in range(3):
            all_same(read_all(scratch, source), plain)
        assert list(folder.iterdir()) == []
    assert set(array.reads.values()) == {reads}


def test_kept_maps_are_good_for_kernels(folder: Path) -> None:
    # Maps of 1 byte a pixel before others, of an odd number of pixels.
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.patches import Patches
    from uqeval.tallies.ranks import Moments, Ranks
    from uqeval.tallies.segmentation import ClassCounts

    source = chunked_source(stack(), truth=labels(0, N, H, W, classes=3))
    tallies = [
        ClassCounts(3),
        Moments(Uncertainty("entropy"), 3),
        Ranks(Patches(Uncertainty("std"), 3, 3, 1), 3),
    ]
    with Scratch(0) as scratch:
        first = read_all(scratch, source)
        again = read_all(scratch, source)
        assert len(list(scratch._files)) == N
        for tally in tallies:
            for a, b in zip(first, again, strict=True):
                assert tally.pack(tally.state_of(a)) == tally.pack(tally.state_of(b))


def test_the_folder_goes_when_an_error_comes(folder: Path) -> None:
    source = chunked_source(stack())
    with pytest.raises(RuntimeError), Scratch(0) as scratch:
        read_all(scratch, source)
        assert len(list(folder.iterdir())) == 1
        raise RuntimeError
    assert list(folder.iterdir()) == []


def test_a_full_disk_keeps_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(2**40, 2**40 - 2**29, 2**29))
    array = stack()
    source = chunked_source(array)
    with Scratch(0) as scratch:
        all_same(read_all(scratch, source), read_all(scratch, source))
        assert not [p for p in folder.rglob("*") if p.is_file() and p.name != "owner"]
    assert set(array.reads.values()) == {2}


def test_a_disk_that_fills_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = stack()
    source = chunked_source(array)
    opened = Path.open

    def refuse(path: Path, mode: str = "r", **options: Any) -> Any:
        if path.name == "2":
            raise OSError(28, "No space left on device")
        return opened(path, mode, **options)

    monkeypatch.setattr(Path, "open", refuse)
    with Scratch(0) as scratch:
        all_same(read_all(scratch, source), read_all(scratch, source))
    assert sorted(array.reads.values()) == [1, 1, 1, 1, 2]
    assert list(folder.iterdir()) == []


def test_a_batch_of_several_items(folder: Path) -> None:
    array = Chunked(softmax(0, N, 2, 3, H, W, dtype="f2"), (3, 2, 3, H, W))
    source = chunked_source(array)
    assert [len(batch) for batch in source.batches()] == [3, 2]
    with Scratch(2 * item_bytes()) as scratch:
        all_same(read_all(scratch, source), read_all(scratch, source))
    assert array.every_chunk_once()


@pytest.mark.parametrize(("held", "enabled"), [(N, True), (2, True), (0, True), (N, False)])
def test_kept_maps_take_less_memory_than_reading(folder: Path, held: int, enabled: bool) -> None:
    source = chunked_source(stack(), truth=labels(0, N, H, W, classes=3))
    one = Resources(N, max(source.batch_bytes(batch) for batch in source.batches()))
    with Scratch(held * item_bytes(), enabled) as scratch:
        assert workers_within(source, one, scratch) == 1
        read_all(scratch, source)
        need = (item_bytes() if held < N else 0) + 24 * H * W
        assert workers_within(source, one, scratch) == (
            max(1, min(one.memory // need, N)) if enabled else 1
        )
        # What could be read can be counted again, however little memory reading takes.
        source.batch_bytes = lambda batch: 1
        assert workers_within(source, Resources(1, 1), scratch) == 1
