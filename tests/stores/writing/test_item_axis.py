"""The index of items in arrays that a loop gives is compared with the names that it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from tensors import Labelled
from written import probs

import uqeval
from uqeval.errors import StoreError
from uqeval.writer import PredictionWriter

PROBS = probs(4, 3, 6, 6)
LABELS = PROBS.argmax(1).astype(np.uint8)
BATCH, LABELLED = ("item", "class", "y", "x"), ("item", "y", "x")
SAYS = "the items are not those of the names"
TIMES = [f"2026-01-0{k}T06:00" for k in (1, 2, 3, 4)]
#: Names, and the coordinates of these items in the same order.
KINDS: dict[str, tuple[list[str], Any]] = {
    "texts": ([*"abcd"], np.array([*"abcd"])),
    "objects": ([*"abcd"], np.array([*"abcd"], object)),
    "numbers": (["10", "020", "3e1", "40.0"], np.array([10, 20, 30, 40])),
    "times": ([f"{time}:00Z" for time in TIMES], np.array(TIMES, "M8[s]")),
    "times with a space": ([time.replace("T", " ") for time in TIMES], np.array(TIMES, "M8[ns]")),
}


def writer(path: Path, names: list[str]) -> PredictionWriter:
    return PredictionWriter(path / "p.zarr", names=names, samples=1, classes=3, size=(6, 6))


def along(values: Any, items: Any, dims: tuple[str, ...] = BATCH, name: str = "item") -> Labelled:
    """An array with a coordinate of its items, which is a scalar without their axis."""
    dims = tuple(name if axis == "item" else axis for axis in dims)
    items = np.asarray(items)
    return Labelled(values, dims, coords={name: Labelled(items, (name,) if items.ndim else ())})


@pytest.mark.parametrize("name", ["item", "station"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_in_another_order_than_its_names(tmp_path: Path, kind: str, name: str) -> None:
    names, items = KINDS[kind]
    with writer(tmp_path, names) as own:
        bad = along(PROBS[:2], items[1::-1], name=name)
        message = refused(
            lambda: own.add_batch(names[:2], bad), SAYS, f"{name!r}", error=StoreError
        )
        assert repr(str(items[1])) in message and repr(names[0]) in message
        assert own.missing() == names
        assert own.add_batch(names[1::-1], bad) == 2
        assert own.add_batch(names[2:], along(PROBS[2:], items[2:], name=name)) == 2


@pytest.mark.parametrize("kind", ["texts", "objects"])
def test_other_items_of_the_store(tmp_path: Path, kind: str) -> None:
    """Texts that are names of other items of the writer cannot be of these."""
    names, items = KINDS[kind]
    with writer(tmp_path, names) as own:
        others = along(PROBS[:2], items[2:])
        refused(lambda: own.add_batch(names[:2], others), SAYS)
        for k, name in enumerate(names):
            other = k - 1
            one = slice(k, k + 1) if k else slice(0, 1)
            for bad in (along(PROBS[one], items[[other]]),
                        along(PROBS[k], items[other], BATCH[1:])):  # fmt: skip
                refused(lambda: own.add(name, bad), SAYS)  # noqa: B023
                refused(lambda: own.add_batch([name], bad), SAYS)  # noqa: B023
            truth = along(LABELS[k], items[other], LABELLED[1:])
            refused(lambda: own.add_labels(name, truth), SAYS)  # noqa: B023
            truth = along(LABELS[one], items[[other]], LABELLED)
            refused(lambda: own.add_labels(name, truth), SAYS)  # noqa: B023
            assert own.add(name, along(PROBS[k], items[k], BATCH[1:]))
            assert own.add_labels(name, along(LABELS[one], items[one], LABELLED))


@pytest.mark.parametrize(
    ("names", "items"),
    [
        ([*"abcd"], np.array([3, 2, 1, 0])),  # names that are no numbers
        ([*"abcd"], np.array([*"dcbx"])),  # of other items, also
        (["3", "1", "0", "2"], np.arange(4)),  # a count
        (["0", "1", "2", "3"], np.array(["3", "1", "0", "2"])),
        (["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], np.array(TIMES, "M8[s]")),
        (["2026-01-01", "now", "2026-01-03", "nan"], np.array(TIMES[::-1], "M8[s]")),
    ],
)
def test_items_that_cannot_be_compared_with_the_names(
    tmp_path: Path, names: list[str], items: Any
) -> None:
    with writer(tmp_path, names) as own:
        assert own.add_batch(names, along(PROBS, items)) == 4


def test_a_number_of_one_item_may_be_its_position(tmp_path: Path) -> None:
    """Numbers of a batch, or of one item of it, count the items of a part of the data."""
    names = ["4", "3", "2", "1"]
    with writer(tmp_path, names) as own:
        own.add("4", along(PROBS[0], 1, BATCH[1:]))
        own.add("3", along(PROBS[1:2], [1]))
        own.add_batch(names[2:], along(PROBS[2:], [3, 4]))


def test_times_at_which_forecasts_began(tmp_path: Path) -> None:
    """They are often the valid times, which are the names, of other items."""
    names, began = [*TIMES[1:], "2026-02-01"], np.array(TIMES, "M8[s]")
    with writer(tmp_path, names) as own:
        own.add(names[0], along(PROBS[0], began[0], BATCH[1:], "time"))
        own.add(names[1], along(PROBS[1], began[1], BATCH[1:], "time"))
        own.add_batch(names[2:], along(PROBS[2:], began[2:], name="time"))


def test_one_coordinate_with_the_names_suffices(tmp_path: Path) -> None:
    """All predictions here come from the frame `b`, and each has its own name beside it."""
    with writer(tmp_path, [*"abcd"]) as own:
        for k, name in enumerate("abcd"):
            coords = {key: Labelled(np.asarray(v), ()) for key, v in
                      (("frame", "b"), ("image", name))}  # fmt: skip
            own.add(name, Labelled(PROBS[k], BATCH[1:], coords=coords))


@pytest.mark.parametrize("which", ["probs", "labels"])
@pytest.mark.parametrize("kind", KINDS)
def test_updates_of_an_evaluator(kind: str, which: str) -> None:
    names, items = KINDS[kind]
    with uqeval.Evaluator("segmentation") as own:

        def update(names: list[str], places: list[int], items: Any) -> int:
            stack, truth = PROBS[places], LABELS[places]
            if which == "probs":
                return own.update(along(stack, items), truth, names)
            return own.update(stack, along(truth, items, LABELLED), names)

        refused(lambda: update(names[:2], [0, 1], items[1::-1]), SAYS, which, error=StoreError)
        assert len(own) == 0
        assert update(names[:2], [0, 1], items[:2]) == 2
        # A padded batch, of which one item is new.
        padded = [names[2], names[0]]
        refused(lambda: update(padded, [2, 0], items[[0, 2]]), SAYS)
        assert update(padded, [2, 0], items[[2, 0]]) == 1
        if kind == "texts":  # of an item of an earlier update
            refused(lambda: update(names[3:], [3], items[:1]), SAYS)
        assert update(names[3:], [3], items[3:]) == 1
        assert own.report().results["segmentation"]["pixel_accuracy"] == 1


def test_new_items_of_a_padded_update_are_compared_with_each_other() -> None:
    """Probabilities and labels in another order, where an item before is repeated."""
    with uqeval.Evaluator("segmentation") as own:
        own.update(PROBS[:1], LABELS[:1], ["a"])
        stack, truth = along(PROBS, [5, 8, 7, 6]), along(LABELS, [5, 6, 7, 8], LABELLED)
        refused(lambda: own.update(stack, truth, [*"abcd"]), "the items are in another order")
        assert own.update(stack, along(LABELS, [5, 8, 7, 6], LABELLED), [*"abcd"]) == 3
