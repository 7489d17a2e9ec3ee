"""`PredictionWriter`: what comes in is stored as it is, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from tensors import Labelled
from written import ABOUT, CLASSES, NAMES, RNG, SAMPLES, SIZE, STACK, fill, probs, stored

import uqeval
from uqeval.errors import DataError, OutputError, StoreError, UsageError
from uqeval.maps.reduction import reduce_array
from uqeval.stores.map_names import COMPUTED
from uqeval.stores.store import open_store
from uqeval.stores.zarr import writer as zw
from uqeval.writer import PredictionWriter


def by_item(writer: PredictionWriter) -> None:
    for name in reversed(NAMES):
        assert writer.add(name, STACK[NAMES.index(name)])


def by_sample(writer: PredictionWriter) -> None:
    for t in (2, 0, 3, 1):
        for i, name in enumerate(NAMES):
            assert writer.add(name, STACK[i, t], sample=t)


def by_batch_of_samples(writer: PredictionWriter) -> None:
    for t in range(SAMPLES):
        assert writer.add_batch(NAMES, STACK[:, t], sample=t) == 3


def by_batch_of_one(writer: PredictionWriter) -> None:
    for i, name in enumerate(NAMES):
        for t in range(SAMPLES):
            assert writer.add(name, STACK[i, t][None], sample=t)


def by_batch_of_items(writer: PredictionWriter) -> None:
    assert writer.add_batch(NAMES, STACK) == 3


WAYS = (by_item, by_batch_of_samples, by_batch_of_one, by_batch_of_items, by_sample)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_every_way_gives_the_same_store(
    tmp_path: Path, way: Callable[[PredictionWriter], None], dtype: Any
) -> None:
    path = tmp_path / "p.zarr"
    with PredictionWriter(path, **ABOUT, dtype=dtype, class_names=list("xyz")) as writer:
        way(writer)
    np.testing.assert_array_equal(np.stack(stored(path)), STACK.astype(dtype))
    store = open_store(path, role="predictions")
    assert store.names == NAMES
    assert store.attributes["class_names"] == ["x", "y", "z"]
    assert not (path / zw.HIDDEN).exists()
    assert [p.name for p in tmp_path.iterdir()] == ["p.zarr"]


class Fake:
    """Like a tensor of a framework that NumPy knows nothing of: methods must be called in turn."""

    def __init__(self, values: np.ndarray, *methods: str, dtype: str = "fake.float32") -> None:
        self._values, self._methods, self.dtype = values, methods, dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._methods:
            raise AttributeError(name)
        rest = tuple(method for method in self._methods if method != name)
        dtype = "fake.float32" if name == "float" else self.dtype
        return lambda: type(self)(self._values, *rest, dtype=dtype)


class WithArray(Fake):
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if {"detach", "cpu"} & set(self._methods) or "bfloat16" in self.dtype:
            raise TypeError("needs grad, is on a GPU, or has a dtype that NumPy lacks")
        return self._values


class WithDlpack(Fake):
    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


class Jaxlike(WithArray):
    def astype(self, dtype: str) -> Jaxlike:
        return Jaxlike(self._values, dtype=dtype)


@pytest.mark.filterwarnings("ignore:.*bfloat16")
@pytest.mark.parametrize(
    "tensor",
    [
        lambda v: WithArray(v, "detach", "cpu"),
        lambda v: WithArray(v, "detach", "cpu", "float", dtype="torch.bfloat16"),
        lambda v: Jaxlike(v, dtype="bfloat16"),
        WithDlpack,
    ],
)
def test_tensors_of_any_framework(tmp_path: Path, tensor: Callable[[np.ndarray], Any]) -> None:
    with PredictionWriter(tmp_path / "p.zarr", **ABOUT) as writer:
        for i, name in enumerate(NAMES):
            writer.add(name, tensor(STACK[i]))
    np.testing.assert_array_equal(np.stack(stored(tmp_path / "p.zarr")), STACK.astype("f2"))


def test_names_in_any_list(tmp_path: Path) -> None:
    """An iterator, an array, and a slice of a table, which has no position 0."""

    class Slice(list[str]):
        ndim = 1

        def __getitem__(self, at: Any) -> Any:
            raise KeyError(at)

        def tolist(self) -> list[str]:
            return list(self)

    for k, names in enumerate((iter(NAMES), np.array(NAMES), Slice(NAMES))):
        with PredictionWriter(tmp_path / f"{k}.zarr", **ABOUT) as writer:
            assert writer.add_batch(names, STACK) == 3
            assert writer.done(np.str_("a"), sample=np.int64(0))  # type: ignore[arg-type]


def test_names_and_samples_of_other_types(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path / "p.zarr", **ABOUT)
    own: Any = writer  # without its types
    for call, says in (
        (lambda: own.add(["a"], STACK[0]), "name=['a']; expected a text"),
        (lambda: own.add(b"a", STACK[0]), "name=b'a'; expected a text"),
        (lambda: own.add("a", STACK[0, 0], sample="0"), "sample='0'; expected a whole number"),
        (lambda: own.add_batch("a", STACK[:1]), "names='a'; expected a list of texts"),
        (lambda: own.add_batch(NAMES, STACK, sample=0.5), "sample=0.5; expected a whole number"),
        (lambda: own.add_labels(None, STACK[0, 0, 0]), "name=None; expected a text"),
        (lambda: own.done("a", "0"), "sample='0'; expected a whole number"),
    ):
        refused(call, says, error=UsageError)


@pytest.mark.parametrize("has_samples", [True, False])
def test_a_batch_of_one_item_with_named_axes(tmp_path: Path, has_samples: bool) -> None:
    """`add` takes one item with an axis of items, so `add_batch` takes one without it."""
    axes = ("sample", "class", "y", "x")
    with PredictionWriter(tmp_path / "p.zarr", **ABOUT) as writer:
        for name, own in zip(NAMES, STACK, strict=True):
            if has_samples:
                assert writer.add_batch([name], Labelled(own, axes)) == 1
            for t in () if has_samples else range(SAMPLES):
                assert writer.add_batch([name], Labelled(own[t], axes[1:]), sample=t) == 1
        says = (
            "and the axes [sample, class, y, x], expected [2, C, H, W] or [2, T, C, H, W]. They "
            "are of one item: give each item to add(name, values)."
        )
        refused(lambda: writer.add_batch(["a", "b"], Labelled(STACK[0], axes)), says)
    np.testing.assert_array_equal(np.stack(stored(tmp_path / "p.zarr")), STACK.astype("f2"))


def test_shapes_of_batches_have_a_call_that_works(tmp_path: Path) -> None:
    writer, one, several = (
        PredictionWriter(tmp_path / "p.zarr", **ABOUT), STACK[0], STACK[1:].swapaxes(0, 1)
    )  # fmt: skip
    says = "If they are of one item, give add('a', values)"
    refused(lambda: writer.add_batch(["a"], one), says)
    assert writer.add("a", one)
    refused(lambda: writer.add_batch(["b", "c"], several), "give values.swapaxes(0, 1)")
    assert writer.add_batch(["b", "c"], several.swapaxes(0, 1)) == 2
    two = Labelled(STACK[:2], ("item", "sample", "class", "y", "x"))
    message = refused(lambda: writer.add_batch(["a"], two), "batch of 1 items")
    assert message.endswith("expected [1, C, H, W] or [1, T, C, H, W].")  # `add` refuses it too
    for values, part in ((STACK[:1], "0"), (one[:, None], ":, 0")):
        says = f"Leave out the axis of items: values[{part}]."
        refused(partial(writer.add, "a", values), says)


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path / "p.zarr", **ABOUT)
    for value in ([[1.0]], None, Fake(STACK[0], "detach", "cpu")):
        with pytest.raises(DataError, match=r"item 'a' is a .*expected an array"):
            writer.add("a", value)
    elsewhere = Jaxlike(STACK[0], "cpu")
    elsewhere.cpu = lambda: elsewhere  # does not come to the CPU
    with pytest.raises(DataError, match=r"item 'a': Jaxlike cannot be read .* on the CPU first"):
        writer.add("a", elsewhere)


def bad(change: Callable[[np.ndarray], Any]) -> np.ndarray:
    values = STACK[0].copy()
    result = change(values)
    return values if result is None else np.asarray(result)


def put(value: float) -> Callable[[np.ndarray], None]:
    def change(values: np.ndarray) -> None:
        values[2, 1, 4, 5] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (put(np.nan), "item 'b', sample 2: 1 of 180 values are NaN, first in class 1, row 4, col"),
        (put(np.inf), "item 'b', sample 2: 1 of 180 values are infinite"),
        (put(-0.1), "item 'b', sample 2: values from -0.1 to .* declare kind='logits', or give"),
        (
            lambda v: v * 7,
            "All sums are about 7, so these may be scaled probabilities: divide them",
        ),
        (
            lambda v: np.abs(np.log(v)),
            "are values above 1. If these are logits, declare kind='logits'",
        ),
        (lambda v: np.log(v) * 4, "item 'b', sample 0: values from -.*logits"),
        (lambda v: v * 0.99, "item 'b', sample 0: .* 60 of 60 pixels do not sum to 1"),
        (lambda v: v * 0, "do not sum to 1, the worst to 0 "),
        (lambda v: v.transpose(0, 2, 3, 1), r"item 'b' has the shape \[4, 6, 10, 3\], expected"),
        (lambda v: v[:3], r"has the shape \[3, 3, 6, 10\], expected \[4, 3, 6, 10\] \(or \[3, 6"),
        (lambda v: v[0], r"has the shape \[3, 6, 10\], expected \[4, 3, 6, 10\]"),
        (lambda v: v.astype(int), "holds int64, expected floating point"),
    ],
)
def test_bad_values_are_refused_before_they_are_written(
    tmp_path: Path, change: Callable[[np.ndarray], Any], says: str
) -> None:
    writer = PredictionWriter(tmp_path / "p.zarr", **ABOUT)
    writer.add("a", STACK[0])
    with pytest.raises(DataError, match=says):
        writer.add("b", bad(change))
    assert not writer.done("b")
    fill(writer, ("b", "c"))  # the refused one left nothing behind
    writer.close()
    np.testing.assert_array_equal(np.stack(stored(tmp_path / "p.zarr")), STACK.astype("f2"))


def test_other_refusals(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path / "p.zarr", **ABOUT)
    with pytest.raises(DataError, match="'d' is not among the 3 names"):
        writer.add("d", STACK[0])
    with pytest.raises(DataError, match="sample 4 is not among 0 … 3"):
        writer.add("a", STACK[0, 0], sample=4)
    with pytest.raises(DataError, match="batch of 2 items"):
        writer.add_batch(("a", "b"), STACK)
    writer.add("a", STACK[0])
    with pytest.raises(DataError, match="item 'b', sample 1 is added alone"):
        writer.add("b", STACK[1, 1], sample=1)
    with pytest.raises(DataError, match="labels of item 'a': 60 pixels have ids outside 0 … 2"):
        writer.add_labels("a", np.full(SIZE, 7))
    refused(
        lambda: writer.add_labels("a", np.arange(60).reshape(SIZE) % 4),
        "run from 1 to 3 and 0 is void, save np.where(labels == 0, 255, labels - 1)",
        "3 is void, give ignore_index=3",
        error=DataError,
    )
    refused(lambda: writer.add_labels("a", np.full(SIZE, 3)), "subtract 1", error=DataError)
    with pytest.raises(DataError, match="float64, expected class ids"):
        writer.add_labels("a", np.zeros(SIZE))
    for wrong in ({"kind": "softmax"}, {"samples": 0}, {"class_names": ["one"]}, {"dtype": "f8"}):
        with pytest.raises(UsageError):
            PredictionWriter(tmp_path / "q.zarr", **{**ABOUT, **wrong})
    with pytest.raises(StoreError, match="more than once"):
        PredictionWriter(tmp_path / "q.zarr", **{**ABOUT, "names": ["a", "a"]})
    with pytest.raises(OutputError, match="local folder"):
        PredictionWriter("s3://bucket/q.zarr", **ABOUT)


def test_a_sum_is_judged_as_it_is_stored(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path / "p.zarr", **ABOUT)
    writer.add("a", STACK[0] * np.float32(1.00155))  # so near the limit that rounding decides
    with pytest.raises(DataError, match=r"tolerance 0.002"):
        writer.add("b", STACK[1] * np.float32(1.0026))
    with pytest.raises(DataError, match=r"float32\)\. .*too coarse"):
        PredictionWriter(tmp_path / "q.zarr", **ABOUT, dtype="float32").add(
            "a", STACK[0].astype("f2")
        )


def test_logits_and_single_class(tmp_path: Path) -> None:
    logits = 100 * RNG.normal(size=(3, SAMPLES, CLASSES, *SIZE))
    with PredictionWriter(tmp_path / "l.zarr", **ABOUT, kind="logits") as writer:
        with pytest.raises(DataError, match=r"1e.05 do not fit float16"):
            writer.add("a", np.full((SAMPLES, CLASSES, *SIZE), 1e5))
        with pytest.raises(DataError, match=r"720 of|180 of 180 logits are NaN"):
            writer.add("a", logits[0] * np.nan)
        writer.add_batch(NAMES, logits)
    np.testing.assert_array_equal(stored(tmp_path / "l.zarr", "logits"), logits.astype("f2"))
    about = {**ABOUT, "classes": 1, "samples": 1}
    for keep in ("samples", "maps"):
        with PredictionWriter(tmp_path / keep, **about, keep=keep) as writer:
            with pytest.raises(DataError, match=r"values from 1.5 to 1.5"):
                writer.add("a", np.full((1, *SIZE), 1.5))
            for name in NAMES:
                writer.add(name, np.full((1, *SIZE), 0.25))
    assert np.all(np.stack(stored(tmp_path / "maps", "confidence")) == 0.75)


def test_different_sizes_and_names_that_would_leave_the_folder(tmp_path: Path) -> None:
    names = ["../up", "a/b", "100%", ".hidden", "plain ü"]
    stacks = [probs(SAMPLES, CLASSES, 5 + i, 7) for i in range(len(names))]
    path = tmp_path / "deep" / "p.zarr"
    with PredictionWriter(path, **{**ABOUT, "names": names, "size": None}) as writer:
        for i, (name, stack) in enumerate(zip(names, stacks, strict=True)):
            for t in range(SAMPLES):
                writer.add(name, stack[t], sample=t)
            writer.add_labels(name, np.full((5 + i, 7), i % CLASSES))
        with pytest.raises(DataError, match=r"'../up': the shape is"):
            writer.add("../up", probs(CLASSES, 5, 8), sample=0)
    assert {p.name for p in (path / "items").iterdir() if p.is_dir()} == {
        "%2E.%2Fup", "a%2Fb", "100%25", "%2Ehidden", "plain ü",
    }  # fmt: skip
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["p.zarr"]
    found = zw.open_array(path / "items" / zw.item_folder("a/b") / "probs")
    np.testing.assert_array_equal(found[...], stacks[1].astype("f2"))


@pytest.mark.parametrize("way", WAYS[:4])
@pytest.mark.parametrize("dtype", ["float16", None])
def test_maps_are_those_of_the_stack(
    tmp_path: Path, way: Callable[[PredictionWriter], None], dtype: Any
) -> None:
    path = tmp_path / "m.zarr"
    with PredictionWriter(path, **ABOUT, keep="maps", mean_probs=True, dtype=dtype) as writer:
        way(writer)
    for i in range(3):
        for name, values in reduce_array(STACK[i].astype(dtype or "f4")).items():
            np.testing.assert_array_equal(stored(path, name)[i], values)
    ours = open_store(path, role="predictions").attributes["uqeval"]
    assert ours == {
        "format": "maps", "version": 1, "complete": True, "samples": 4, "classes": 3,
        "arrays": sorted({*COMPUTED, "predictions"} - {"prediction"}),
    }  # fmt: skip


def test_maps_with_mean_probabilities_have_all_scores_of_the_mean(tmp_path: Path) -> None:
    """Without them, the error names the argument."""
    ids = RNG.integers(0, CLASSES, (3, *SIZE))
    metrics = ["calibration", "sparsification", "failure"]
    results = {}
    for name, more in (("p", {"dtype": "float32"}), ("m", {"keep": "maps", "mean_probs": True}),
                       ("few", {"keep": "maps"})):  # fmt: skip
        with PredictionWriter(tmp_path / f"{name}.zarr", **ABOUT, **more) as writer:
            fill(writer)
            for item, label in zip(NAMES, ids, strict=True):
                writer.add_labels(item, label)
        if name == "few":
            with pytest.raises(StoreError, match=r"no map 'brier'.*mean_probs=True\) writes"):
                uqeval.evaluate(tmp_path / "few.zarr", metrics=metrics)
        else:
            results[name] = uqeval.evaluate(tmp_path / f"{name}.zarr", metrics=metrics).results
    for family, field in (
        ("calibration", "brier"), ("calibration", "nll"), ("calibration", "classwise_ece"),
        ("sparsification", "ause"), ("failure", "auroc"),
    ):  # fmt: skip
        own, of_samples = (results[name][family][field] for name in ("m", "p"))
        assert own == pytest.approx(of_samples, abs=1e-6)


def test_float16_in_float32_is_told_how_it_is_accepted(tmp_path: Path) -> None:
    half = probs(1, CLASSES, 40, 50).astype("f2")
    about = {"names": ["a"], "samples": 1, "classes": CLASSES, "size": (40, 50), "keep": "maps"}
    with pytest.raises(DataError, match="Or give dtype='float16'"):
        PredictionWriter(tmp_path / "m.zarr", **about).add("a", half)
    with PredictionWriter(tmp_path / "h.zarr", **about, dtype="float16") as writer:
        assert writer.add("a", half)
    with pytest.raises(DataError, match=r"softmax ran over the classes"):
        PredictionWriter(tmp_path / "n.zarr", **about).add("a", half * np.float16(0.9))


def test_maps_hold_one_item_in_memory(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path / "m.zarr", **ABOUT, keep="maps")
    writer.add("a", STACK[0, 0], sample=0)
    with pytest.raises(DataError, match="'b' comes too early"):
        writer.add("b", STACK[1, 0], sample=0)
    with pytest.raises(DataError, match="'a', sample 0: this was written already"):
        writer.add("a", STACK[0, 0], sample=0)


@pytest.mark.parametrize("repeated", ["error", "skip"])
def test_a_refused_first_sample_locks_no_item(tmp_path: Path, repeated: Any) -> None:
    path = tmp_path / "m.zarr"
    with PredictionWriter(path, **ABOUT, keep="maps", repeated=repeated) as writer:
        for name, stack in zip(NAMES, STACK, strict=True):
            with pytest.raises(DataError, match="do not sum to 1"):
                writer.add(name, stack[0] / 2, sample=0)
            assert all(writer.add(name, values, sample=t) for t, values in enumerate(stack))
    assert len(stored(path, "entropy")) == len(NAMES)


def test_labels_for_all_or_none(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    ids = RNG.integers(0, CLASSES, (3, *SIZE))
    ids[0, 0] = 255
    writer = PredictionWriter(path, **ABOUT)
    fill(writer)
    writer.add_labels("a", ids[0])
    assert writer.missing() == ["b", "c"]
    for i in (1, 2):
        writer.add_labels(NAMES[i], ids[i])
    writer.close()
    found = np.stack(stored(path, "labels"))
    np.testing.assert_array_equal(found, ids)
    assert found.dtype == np.uint8


def test_labels_that_are_bool(tmp_path: Path) -> None:
    path, ids = tmp_path / "p.zarr", RNG.random(SIZE) < 0.5
    with PredictionWriter(path, **ABOUT | {"names": ["a"]}) as writer:
        fill(writer, ("a",))
        writer.add_labels("a", ids)
    np.testing.assert_array_equal(stored(path, "labels")[0], ids.astype(np.uint8))


@pytest.mark.parametrize("void", [-(2**31), -(2**15) - 1, -1, 65536, 2**31 - 1])
def test_void_pixels_of_any_id_stay_void(tmp_path: Path, void: int) -> None:
    labels = np.zeros(SIZE, np.int64)
    labels[0] = void
    about = ABOUT | {"names": ["a"], "ignore_index": void}
    with PredictionWriter(tmp_path / "p.zarr", **about) as writer:
        writer.add("a", STACK[0])
        writer.add_labels("a", labels)
    np.testing.assert_array_equal(stored(tmp_path / "p.zarr", "labels")[0], labels)


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("ignore_index", 2**40, "ignore_index=1099511627776; expected a number up to 2147483647"),
        ("ignore_index", -(2**63), "-9223372036854775808; expected a number from -2147483648 on"),
        ("samples", 2**31, "samples=2147483648; expected a number up to 2147483647"),
        ("size", (2**31, 1), "size=2147483648; expected"),
        ("classes", 65536, "65536 classes; at most 65535"),
    ],
)
def test_numbers_that_no_command_reads_are_refused(
    tmp_path: Path, option: str, value: Any, says: str
) -> None:
    refused(
        lambda: PredictionWriter(tmp_path / "p.zarr", **ABOUT | {option: value}),
        says,
        error=UsageError,
    )
    assert not list(tmp_path.iterdir())


def test_an_option_without_effect_is_refused(tmp_path: Path) -> None:
    def act() -> None:
        PredictionWriter(tmp_path / "p.zarr", **ABOUT, mean_probs=True)

    refused(act, "mean_probs=True", "keep='samples'", "keep='maps'", error=UsageError)
    assert not list(tmp_path.iterdir())


def test_labels_of_another_size_than_the_predictions(tmp_path: Path) -> None:
    """Without `size`, the first array of an item gives its size."""
    about = ABOUT | {"size": None}
    writer = PredictionWriter(tmp_path / "p.zarr", **about)
    labels = np.zeros((6, 8), np.uint8)
    writer.add(NAMES[0], STACK[0])
    with pytest.raises(DataError, match=r"labels of item 'a': the shape is \[6, 8\], expected"):
        writer.add_labels(NAMES[0], labels)
    writer.add_labels(NAMES[1], labels)
    with pytest.raises(DataError, match=r"item 'b': .*, 6, 10\], expected \[6, 8\]"):
        writer.add(NAMES[1], STACK[1])
