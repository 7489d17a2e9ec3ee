"""The index and the columns of tables, and names of items: their order is compared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import refused
from tensors import ArrowTable, Frame, Index, Labelled, Table

import uqeval

COUNT = np.arange(6)
NUMBERS = np.arange(1.0, 7)
evaluate = partial(uqeval.evaluate, workers=1)


def rmse(predictions: Any, target: Any) -> Any:
    return evaluate(predictions, target, "regression").results["regression"]["rmse"]


LETTERS = Index([*"abcdef"])


@pytest.mark.parametrize(("own", "other", "says"), [
    (Index(COUNT), Index(COUNT), ""), (Index(COUNT), Index(COUNT + 3), ""),
    (Index(COUNT), Index(COUNT[::-1]), "give the arrays without it, such as df.to_numpy()"),
    (LETTERS, LETTERS, ""), (LETTERS, Index([*"fedcba"]), "from f to a"),
    (Index([*"abcdef"], "sample"), Index([*"fedcba"], "sample"), "from f to a"),
])  # fmt: skip
def test_indices_of_pandas(own: Index, other: Index, says: str) -> None:
    predictions = {"mean": Table(NUMBERS, own), "std": Table(NUMBERS, own)}
    target = Table(NUMBERS + 1, other)
    table = Table(np.eye(6), own, Index(COUNT)), Table(COUNT, other)
    if says:
        refused(lambda: rmse(predictions | {"target": target}, None), says)
        refused(lambda: rmse(predictions, target), says)
        refused(lambda: evaluate(*table, "segmentation"), says)
    else:
        assert rmse(predictions | {"target": target}, None) == rmse(predictions, target) == 1
        assert evaluate(*table, "segmentation").results["segmentation"]["miou"] == 1


SHUFFLED = [3, 0, 5, 1, 4, 2]
PLAIN, TURNED_LETTERS = np.eye(6), Index([*"fedcba"], "image")


def table_of(index: Index) -> Table:
    return Table(PLAIN, index, Index(COUNT))


@pytest.mark.parametrize(("own", "other"), [
    (table_of(LETTERS), Table(COUNT, TURNED_LETTERS)),
    (table_of(Index([*"abcdef"], "id")), Table(COUNT, TURNED_LETTERS)),
    (table_of(Index(COUNT + 1, "id")), Table(COUNT, Index(COUNT[::-1] + 1, "image"))),
    (
        Labelled(PLAIN, ("dim_0", "dim_1"), coords={"dim_0": [*"abcdef"]}),
        Table(COUNT, TURNED_LETTERS),
    ),
    (
        Labelled(PLAIN, ("sid", "class"), coords={"sid": [*"abcdef"]}),
        Labelled(COUNT, ("image",), coords={"image": [*"fedcba"]}),
    ),
])  # fmt: skip
def test_indices_of_items_with_other_names(own: Any, other: Any) -> None:
    says = "the items are in another order"
    refused(lambda: evaluate(own, other, "segmentation"), says)
    refused(lambda: evaluate({"probs": own, "labels": other}, None, "segmentation"), says)
    assert evaluate(own, COUNT, "segmentation")


@pytest.mark.parametrize("other", [
    Index(SHUFFLED, "image"), Index(COUNT, "image"), Index([*"fedcbz"], "image"),
    Index([*"abcdef"], "image"), Index([str(k) for k in SHUFFLED], "image"),
])  # fmt: skip
def test_indices_of_items_that_say_nothing_of_each_other(other: Index) -> None:
    """A count from 0 is of any items, and other values are of other items."""
    texts = other.values.dtype.kind == "U"
    counts = Index(COUNT.astype(np.str_)) if "0" in other.values.tolist() else LETTERS
    own = table_of(counts if texts else Index(COUNT))
    report = evaluate(own, Table(COUNT, other), "segmentation")
    assert report.results["segmentation"]["miou"] == 1


def test_columns_of_samples_are_items() -> None:
    samples = Table(np.array([NUMBERS, NUMBERS]), Index([0, 1]), LETTERS)
    assert rmse({"samples": samples}, Table(NUMBERS, LETTERS)) == 0
    says = "the items are in another order"
    refused(lambda: rmse({"samples": samples}, Table(NUMBERS, TURNED_LETTERS)), says)


def test_index_and_columns_of_one_name() -> None:
    own = Table(PLAIN, Index([*"abcdef"], "k"), Index([f"c{k}" for k in COUNT], "k"))
    report = evaluate(own, Table(COUNT, Index([*"abcdef"], "k")), "segmentation")
    per_class = report.results["segmentation"]["per_class"]
    assert [each["name"] for each in per_class] == own.columns.values.tolist()
    says = "the items are in another order"
    for name in ("k", None):
        labels = Table(COUNT, Index([*"fedcba"], name))
        refused(lambda: evaluate(own, labels, "segmentation"), says)  # noqa: B023
        refused(lambda: evaluate({"probs": own, "labels": labels}, None), says)  # noqa: B023


def test_times_with_and_without_a_zone() -> None:
    days = np.array([f"2026-01-0{day}" for day in range(1, 7)], "M8[ns]")
    zone = timezone(timedelta(hours=5))
    aware = np.array([
        datetime(2026, 1, day, tzinfo=UTC).astimezone(zone) for day in range(1, 7)
    ])  # fmt: skip
    own = table_of(Index(days))
    assert evaluate(own, Table(COUNT, Index(aware)), "segmentation")
    says = "the items are in another order"
    refused(lambda: evaluate(own, Table(COUNT, Index(aware[::-1])), "segmentation"), says)


def test_names_of_items_are_compared_with_an_index() -> None:
    table, labels = table_of(LETTERS), Table(COUNT, LETTERS)
    names, turned = [*"abcdef"], [*"fedcba"]
    says = "names of items"
    for own in (table, PLAIN):
        assert evaluate({"probs": own, "names": names}, labels, "segmentation")
        refused(lambda: evaluate({"probs": own, "names": turned}, labels), says)  # noqa: B023
    assert evaluate(table, {"labels": COUNT, "names": names}, "segmentation")
    refused(lambda: evaluate(table, {"labels": COUNT, "names": turned}), says)
    refused(lambda: evaluate({"probs": table, "names": turned}, None, "divergence"), says)
    refused(lambda: evaluate([table, {"probs": PLAIN, "names": turned}], COUNT), says)
    with uqeval.Evaluator("segmentation") as evaluator:
        refused(lambda: evaluator.update(table, labels, turned), "are not those of the names")
        evaluator.update(table, labels, names)
    named = {"probs": PLAIN[::-1], "names": turned}, {"labels": COUNT, "names": names}
    assert evaluate(*named, "segmentation").results["segmentation"]["miou"] == 1
    for others in ([*"uvwxyz"], [str(k) for k in SHUFFLED]):  # of other items
        assert evaluate({"probs": table, "names": others}, labels, "segmentation")


@pytest.mark.parametrize(
    ("names", "index"),
    [
        (["10", "030", "2e1", "40", "50", "60"], np.array([10, 30, 20, 40, 50, 60])),
        ([f"2026-02-0{k}T00:00Z" for k in (1, 3, 2, 4, 5, 6)],
         np.array([f"2026-02-0{k}" for k in (1, 3, 2, 4, 5, 6)], "M8[ns]")),
    ],
)  # fmt: skip
def test_names_that_are_numbers_or_times_are_compared_with_an_index(names: Any, index: Any) -> None:
    own = {"probs": table_of(Index(index)), "names": names}
    assert evaluate(own, COUNT, "segmentation")
    own = {"probs": table_of(Index(index[::-1])), "names": names}
    refused(lambda: evaluate(own, COUNT), "names of items")


def test_stored_numbers_are_compared_with_names_that_are_numbers(tmp_path: Path) -> None:
    names = [*"162345"]
    for k, order in enumerate((names, names[::-1])):
        group = zarr.create_group(tmp_path / f"{k}.zarr", attributes={"names": names})
        probs = np.repeat(PLAIN[:, :, None, None], 2, 2)
        group.create_array("probs", data=probs, dimension_names=("item", "class", "y", "x"))
        group.create_array("item", data=np.array(order, np.int64), dimension_names=("item",))
    labels = np.repeat(COUNT[:, None, None], 2, 1)
    assert evaluate(tmp_path / "0.zarr", labels, "segmentation")
    refused(lambda: evaluate(tmp_path / "1.zarr", labels), "names of items")


def test_advice_about_an_index_that_counts() -> None:
    own, shuffled = table_of(Index(COUNT)), Table(COUNT, Index(SHUFFLED))
    says = "the same place belong together, give the arrays without it, such as df.to_numpy(); sort"
    refused(lambda: evaluate(own, shuffled, "segmentation"), says)
    shuffled = Table(COUNT, Index(np.array(SHUFFLED) + 1))
    own = table_of(Index(COUNT + 1))
    refused(lambda: evaluate(own, shuffled, "segmentation"), "Expected the same order. Sort both")


@pytest.mark.parametrize("table", [Frame, ArrowTable])
def test_names_of_columns_of_polars_and_pyarrow(table: Any) -> None:
    report = evaluate(table(PLAIN, [*"abcdef"]), COUNT, "segmentation")
    per_class = report.results["segmentation"]["per_class"]
    assert [each["name"] for each in per_class] == [*"abcdef"]
    says = "the classes are in another order than their ids"
    refused(lambda: evaluate(table(PLAIN, [*"543210"]), COUNT, "segmentation"), says)
    names = {"class_names": [*"fedcba"]}
    refused(
        lambda: evaluate({"probs": table(PLAIN, [*"abcdef"]), **names}, COUNT), "the classes have"
    )
    plain = table(PLAIN, [f"column_{k}" for k in COUNT])
    assert not evaluate({"probs": plain, **names}, COUNT, "segmentation").warnings


@pytest.mark.parametrize(("predictions", "advice"), [
    (Table(PLAIN, LETTERS, Index(COUNT[::-1])), "table[sorted(table.columns, key=int)]"),
    (
        Labelled(PLAIN, ("item", "class"), coords={"class": [*"543210"]}),
        "ds.sortby(ds['class'].astype(int)) of xarray; if labels are positions, remove the",
    ),
    ({"probs": PLAIN[:, :3] + 1 / 3, "class": COUNT[2::-1]}, "probs.take(numpy.argsort(class),"),
])  # fmt: skip
def test_advice_about_classes_fits_the_kind_of_array(predictions: Any, advice: str) -> None:
    refused(lambda: evaluate(predictions, COUNT, "segmentation"), advice)
