"""Arrays of NumPy and others, as they come from the caller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import ml_dtypes
import numpy as np
import pytest
from command import refused
from number_stores import numbers
from tensors import Labelled, Tensor
from written import ABOUT, NAMES, STACK

import uqeval
from uqeval.errors import DataError, UqevalError
from uqeval.maps.reduction import reduce_array
from uqeval.spelling import spelled
from uqeval.stores.described import described
from uqeval.stores.incoming import as_array, checked_floats, checked_labels, label_dtype
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert
from uqeval.usecases.observe import TemporalObserver

LABELS = STACK[:, 0].argmax(1)


def plain_masked(values: Any) -> Any:
    return np.ma.masked_array(values, np.arange(values.size).reshape(values.shape) % 3 == 0)


class Lazy(Labelled):
    """An array of xarray, whose `compute` drops the masks of the array inside."""

    def __init__(self, values: Any) -> None:
        super().__init__(values, None)
        self.data = da.from_array(values)

    def compute(self) -> Any:
        return np.asarray(self.values)


class Covered(np.ndarray[Any, Any]):
    """An array with a mask, such as those of Astropy."""

    mask = property(lambda self: np.arange(self.size).reshape(self.shape) % 3 == 0)


@pytest.mark.parametrize("foreground", [True, False])
@pytest.mark.parametrize(
    ("worst", "advice"),
    [
        (-1e-7, "clip(probs, 0, 1)"),
        (1.000001, "clip(probs, 0, 1)"),
        (1.5, "kind='logits'"),
        (-0.1, "kind='logits'"),
    ],
)
def test_values_beyond_0_and_1_by_rounding(
    tmp_path: Path, foreground: bool, worst: float, advice: str
) -> None:
    """They are refused, as all that are no probabilities, but they are hardly logits."""
    probs = np.full((2, 1, 6, 10), 0.25, np.float32)
    probs[1, 0, 2, 3] = worst
    if not foreground:
        probs = np.concatenate([1 - probs, probs], 1)
    np.savez(tmp_path / "p.npz", probs=probs)
    for call in (
        lambda: uqeval.evaluate(probs, np.zeros((2, 6, 10), np.uint8)),
        lambda: convert(tmp_path / "p.npz", tmp_path / "p.zarr"),
    ):
        with pytest.raises(DataError) as error:
            call()
        assert advice in spelled(str(error.value))


@pytest.mark.parametrize(
    "wrapped", [lambda v: v, da.from_array, Lazy, lambda v: v.data.view(Covered)]
)
def test_masked_values_are_refused(tmp_path: Path, wrapped: Callable[[Any], Any]) -> None:
    """Wherever arrays come in: what is below a mask is arbitrary."""

    def masked(values: Any) -> Any:
        return wrapped(plain_masked(values))

    arrays = numbers()
    writer = uqeval.PredictionWriter(tmp_path / "p.zarr", **ABOUT)
    evaluator = uqeval.Evaluator()
    for call in (
        lambda: uqeval.evaluate(arrays | {"target": masked(arrays["target"])}, None),
        lambda: uqeval.evaluate(arrays | {"valid": masked(arrays["valid"])}, None),
        lambda: uqeval.evaluate(STACK, masked(LABELS)),
        lambda: open_store(described(masked(LABELS), "labels"), role="labels"),
        lambda: writer.add(NAMES[0], masked(STACK[0])),
        lambda: writer.add_batch(NAMES, masked(STACK)),
        lambda: writer.add_labels(NAMES[0], masked(LABELS[0])),
        lambda: evaluator.update(STACK, masked(LABELS), NAMES),
        lambda: reduce_array(masked(STACK[0])),
    ):
        refused(call, "values of the masked array are masked", ".filled(255)", error=UqevalError)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_float16_is_rounded_once(dtype: str) -> None:
    """By way of float32, a number just above the middle of two becomes the middle itself."""
    middle = 0.5 + 2.0**-12
    p = np.array([middle + 2.0**-40, 0.5 - 2.0**-12 - 2.0**-40], dtype).reshape(2, 1, 1)
    stored = checked_floats(p, "float16", "probs", "here")
    np.testing.assert_array_equal(stored, p.astype(np.float16))


def test_a_masked_array_without_masked_values(tmp_path: Path) -> None:
    arrays = numbers()
    expected = uqeval.evaluate(arrays, None, "regression").results
    same = {name: np.ma.masked_array(values) for name, values in arrays.items()}
    assert uqeval.evaluate(same, None, "regression").results == expected


@pytest.mark.parametrize("void", [-(2**63), 2**40, 2**63])
def test_a_dtype_has_the_void_id(void: int) -> None:
    """Stores that other programs wrote may declare any id."""
    labels = np.array([[0, void]], np.int64 if void < 2**63 else np.uint64)
    np.testing.assert_array_equal(checked_labels(labels, 4, void, "labels"), labels)
    refused(lambda: label_dtype(4, 2**64), str(2**64), "more than 64 bits", error=DataError)


def test_masked_frames() -> None:
    frame, ids = np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), np.uint8)
    observer = TemporalObserver(classes=2)
    for given in ((plain_masked(frame), ids), (frame, plain_masked(ids))):
        refused(
            lambda given=given: observer.update(*given, name="a"),
            "frame",
            "masked",
            error=DataError,
        )


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e5m2])
def test_the_advice_for_labels_of_types_that_numpy_lacks_works(dtype: type) -> None:
    probs, labels = np.full((2, 4, 3, 3), 0.25, "f4"), np.zeros((2, 3, 3)).astype(dtype)
    advice = "class ids to numpy.uint8"
    refused(lambda: uqeval.evaluate(probs, labels, "failure"), "which NumPy lacks", advice)
    uqeval.evaluate(probs, labels.astype(np.uint8), "failure", workers=1)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_types_that_numpy_lacks_are_refused(dtype: type, tmp_path: Path) -> None:
    """NumPy calls some of them floating, others not; none has a tolerance."""
    probs = np.full((2, 4, 3, 3), 0.25).astype(dtype)
    labels = np.zeros((2, 3, 3), int)
    message = (f"holds {np.dtype(dtype)}, which NumPy lacks", "astype(numpy.float32)")
    refused(lambda: uqeval.evaluate(probs, labels, "failure"), *message)
    refused(lambda: uqeval.evaluate({"logits": probs, "labels": labels}, None, "failure"), *message)
    refused(lambda: uqeval.Evaluator("failure").update(probs, labels, ["a", "b"]), *message)
    with uqeval.PredictionWriter(
        tmp_path / "p.zarr", names=["a"], samples=1, classes=4, size=(3, 3)
    ) as writer:
        refused(lambda: writer.add("a", probs[0]), *message)
        writer.add("a", probs[0].astype("f4"))


class Negated(Tensor):
    """A tensor whose sign is a bit, which `np.asarray` refuses."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that has negative bit set.")

    def resolve_neg(self) -> Tensor:
        return Tensor(self.values)


class Meta(Tensor):
    """A tensor without values."""

    def cpu(self) -> Tensor:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def test_tensors_of_other_forms() -> None:
    np.testing.assert_array_equal(as_array(Negated(STACK), "probs"), STACK)
    says = "probs: Meta cannot be read as a NumPy array (Cannot copy out of meta tensor; no data!)"
    refused(lambda: as_array(Meta(STACK), "probs"), says, error=DataError)
