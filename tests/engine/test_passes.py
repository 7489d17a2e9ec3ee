"""Order, threads and memory of a pass."""

from __future__ import annotations

import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scenes import Chunked, chunked_source, labels, softmax

from uqeval.engine.passes import Resources, run_pass, workers_within
from uqeval.engine.scratch import Scratch
from uqeval.errors import DataError, UsageError
from uqeval.tallies._contract import Tally
from uqeval.tallies._errors import Error
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.item_curves import ItemCurves
from uqeval.tallies.patches import Patches
from uqeval.tallies.ranked_errors import RankedErrors
from uqeval.tallies.ranks import Moments, Ranks
from uqeval.tallies.segmentation import ClassCounts

TALLIES: tuple[Tally, ...] = (
    ClassCounts(3),
    Moments(Uncertainty("entropy"), 3),
    Ranks(Patches(Uncertainty("entropy"), 3, 2, 2), 3),
)


def source_of(chunks: Any = (2, 1, 3, 4, 6), n: int = 9) -> Any:
    p = softmax(1, n, 2, 3, 8, 9, dtype="f2")
    return chunked_source(Chunked(p, chunks), truth=labels(1, n, 8, 9, classes=3))


def silent(nbytes: int, items: int) -> None: ...


# Passes


def counted(workers: int, scratch: Scratch, **options: Any) -> tuple[Any, list[Any]]:
    kept: list[Any] = []
    totals = run_pass(
        source_of(**options), scratch, TALLIES, workers, silent,
        lambda first, tally, packed: kept.extend(
            (first + i, tally.id, state)
            for i, state in enumerate(packed.states(tally.most_bytes))
        ),
    )  # fmt: skip
    kept.sort(key=lambda entry: entry[0])
    return {t.id: {k: v.tobytes() for k, v in s.items()} for t, s in totals.items()}, kept


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("chunks", [(2, 1, 3, 4, 6), (1, 2, 3, 8, 9), (9, 1, 1, 8, 9)])
def test_the_same_bits_for_any_workers_and_chunks(workers: int, chunks: Any) -> None:
    with Scratch(10**6) as scratch:
        expected = counted(1, scratch, chunks=(1, 1, 1, 8, 9))
    with Scratch(10**6) as scratch:
        assert counted(workers, scratch, chunks=chunks) == expected
        assert counted(workers, scratch, chunks=chunks) == expected


def test_totals_are_the_fold_of_what_is_kept() -> None:
    with Scratch(0, False) as scratch:
        totals, kept = counted(2, scratch)
    assert [(item, id_) for item, id_, _ in kept] == [
        (item, t.id) for item in range(9) for t in TALLIES
    ]
    for tally in TALLIES:
        total = tally.empty()
        for _, id_, data in kept:
            if id_ == tally.id:
                tally.merge(total, tally.unpack(data))
        assert {k: v.tobytes() for k, v in total.items()} == totals[tally.id]


def test_only_named_tallies_are_packed_and_the_totals_are_the_same() -> None:
    names: set[str] = set()
    with Scratch(10**6) as scratch:
        expected, _ = counted(1, scratch)
        totals = run_pass(
            source_of(), scratch, TALLIES, 2, silent, lambda *kept: names.add(kept[1].id),
            TALLIES[:1],
        )  # fmt: skip
    assert names == {"class_counts"}
    assert {t.id: {k: v.tobytes() for k, v in s.items()} for t, s in totals.items()} == expected


@pytest.mark.parametrize("workers", [1, 3])
def test_large_states_are_the_same_counted_together_or_again(workers: int) -> None:
    error, score = Error("brier"), Uncertainty("entropy")
    tallies = (
        Ranks(score, 3), RankedErrors(score, error, 3), ItemCurves(score, error, 3),
        RankedErrors(score, Error("zero-one"), 3, False, 9, 13, ((0, 380), (0, 381))),
    )  # fmt: skip
    with Scratch(0, False) as scratch:
        one_by_one = run_pass(source_of(), scratch, tallies, workers, silent, lambda *_: None)
        found = run_pass(source_of(), scratch, tallies, workers, silent, lambda *_: None, ())
    for tally in tallies:
        for name, values in one_by_one[tally].items():
            assert values.any() and values.tobytes() == found[tally][name].tobytes()


def test_progress_tells_bytes_and_items() -> None:
    told: list[tuple[int, int]] = []
    with Scratch(0, False) as scratch:
        run_pass(source_of(), scratch, TALLIES, 2, lambda *now: told.append(now), lambda *_: None)
    assert sum(items for _, items in told) == 9
    assert sum(nbytes for nbytes, _ in told) == 9 * 2 * 3 * 8 * 9 * 2


def test_an_error_of_one_item_is_the_error_of_the_pass() -> None:
    p = softmax(1, 9, 2, 3, 8, 9, dtype="f4")
    p[5, 0, 0, 0, 0] = np.nan
    source = chunked_source(Chunked(p, (1, 2, 3, 8, 9)), truth=labels(1, 9, 8, 9, classes=3))
    kept: list[int] = []
    with Scratch(10**6) as scratch, pytest.raises(DataError, match="item 5"):
        run_pass(source, scratch, TALLIES, 3, silent, lambda item, *_: kept.append(item))
    assert not kept  # items 0 to 4 are counted together with item 5


# Memory


def as_bytes(text: str) -> int:
    found = re.search(r"Give --memory (\d+)(MB|kB|B)", text)
    assert found, text
    return int(found[1]) * {"MB": 10**6, "kB": 10**3, "B": 1}[found[2]]


@pytest.mark.parametrize("chunks", [(1, 2, 3, 8, 9), (9, 1, 1, 4, 4), (2, 2, 3, 8, 9)])
def test_a_limit_that_is_too_low_names_one_that_works(chunks: Any) -> None:
    source = source_of(chunks)
    with pytest.raises(UsageError) as caught:
        workers_within(source, Resources(4, 100))
    enough = as_bytes(str(caught.value))
    assert "--memory 100B" in str(caught.value)
    assert 1 <= workers_within(source, Resources(4, enough)) <= 4
    need = max(source.batch_bytes(batch) for batch in source.batches())
    assert need <= enough < 1.2 * need + 1


def test_workers_share_the_memory() -> None:
    source = source_of((1, 2, 3, 8, 9))
    need = source.batch_bytes(range(1))
    assert workers_within(source, Resources(8, 3 * need)) == 3
    assert workers_within(source, Resources(2, 10**9)) == 2
    assert workers_within(source, Resources(100, 10**9)) == 9  # no more than batches


@pytest.mark.parametrize("chunks", [(1, 2, 3, 8, 9), (2, 2, 3, 8, 9), (2, 1, 3, 4, 6)])
def test_small_items_read_together_have_the_same_bits(chunks: Any) -> None:
    source = source_of(chunks)
    source.want(["label", "entropy", "confidence"])
    apart = [maps for batch in source.batches() for maps in source.read(batch)]
    assert source.joins(range(9)) is (chunks[1] == 2)
    for stop in (4, 9):
        for found, expected in zip(source.read(range(stop)), apart[:stop], strict=True):
            assert {name: values.tobytes() for name, values in found.items()} == {
                name: values.tobytes() for name, values in expected.items()
            }


def test_small_items_are_read_together_within_the_memory() -> None:
    source = source_of((1, 2, 3, 8, 9))
    read: list[range] = []
    for memory in (0, 2 * source.batch_bytes(range(4)), 10**9):
        with Scratch(0, False, reads=read.append) as scratch:
            run_pass(source, scratch, TALLIES, 2, silent, lambda *_: None, memory=memory)
    assert read[:9] == [range(i, i + 1) for i in range(9)]
    assert read[9:] == [range(4), range(4, 8), range(8, 9), range(9)]


@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "u1"])
@pytest.mark.parametrize("c", [1, 5])
def test_bytes_cover_what_is_held(kind: str, dtype: str, c: int) -> None:
    # NumPy's own account of a read, with images large enough to matter.
    n, t, h, w = 2, 3, 100, 120
    p = softmax(0, n, t, 5, h, w, dtype="f8")
    p = p[:, :, :1] if c == 1 else p
    scale = 1 / 255 if dtype == "u1" else None
    p = p / 2 if kind == "logits" else p  # logits must not sum to 1
    values = np.round(p * 255).astype("u1") if scale else p.astype(dtype)
    for chunks in ((1, t, c, h, w), (2, 1, c, 50, w), (1, 1, 1, h, w)):
        array = Chunked(values, chunks, scale=scale)
        source = chunked_source(array, kind=kind, truth=labels(0, n, h, w, classes=max(c, 2)))
        batch = source.batches()[0]
        source.read(batch)  # compiled
        tracemalloc.start()
        source.read(batch)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        decoded = source.stack.tile_bytes(batch)  # `Chunked` gives views of what it holds
        assert 0.3 < (peak + decoded) / source.batch_bytes(batch) < 1.1, (chunks, peak)
