"""Converted stores are read back unchanged; sources that are not as declared are refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from command import refused, run_uqeval, run_well
from number_stores import numbers, with_target
from PIL import Image
from scenes import zarr_group
from small_stores import save
from written import stored

import uqeval
from uqeval.errors import DataError, OutputError, StoreError, UqevalError, UsageError
from uqeval.stores.store import open_store
from uqeval.stores.writing import convert as module
from uqeval.stores.writing.converted_numbers import Recoding
from uqeval.stores.writing.new_store import items_in_chunk
from uqeval.stores.zarr import writer as zw
from uqeval.usecases.convert import convert

RNG = np.random.default_rng(0)


def probs(*shape: int, dtype: str = "f2") -> np.ndarray:
    e = np.exp(RNG.normal(size=shape))
    return (e / e.sum(axis=-3, keepdims=True)).astype(dtype)


STACK = probs(3, 4, 5, 9, 8)
LOGITS = STACK - np.float16(1)
LABELS = RNG.integers(0, 5, (3, 9, 8))


@pytest.fixture(params=[2**28, 1])
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole items at a time, and the smallest tiles there are."""
    monkeypatch.setattr(module, "_TILE_BYTES", request.param)
    monkeypatch.setattr(zw, "CHUNK_BYTES", 2**23 if request.param > 1 else 900)


def npy(path: Path) -> Path:
    np.save(path / "s.npy", STACK)
    return path / "s.npy"


def fortran(path: Path) -> Path:
    np.save(path / "s.npy", np.asfortranarray(STACK))
    return path / "s.npy"


def npz(path: Path) -> Path:
    np.savez(path / "s.npz", softmax=STACK, other=np.ones(3))
    return path / "s.npz"


def deflated(path: Path) -> Path:
    np.savez_compressed(path / "s.npz", anything=STACK)
    return path / "s.npz"


def group(path: Path) -> Path:
    store = zarr.create_group(str(path / "s"), zarr_format=2)
    for kind, values in (("probs", STACK), ("labels", LABELS)):
        # Chunks across items, which are read together and written apart.
        chunks = (2, *values.shape[1:-2], 4, 3)
        array = store.create_array(kind, shape=values.shape, dtype=values.dtype, chunks=chunks)
        array[...] = values
    return path / "s"


def bare(path: Path) -> Path:
    array = zarr.create_array(
        str(path / "s"), shape=STACK.shape, dtype="f2", chunks=(1, 1, 5, 9, 8)
    )
    array[...] = STACK
    return path / "s"


def files(path: Path) -> Path:
    for i, values in enumerate(STACK):
        np.save(path / f"item{i}.npy", values)
    return path


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("source", [npy, fortran, npz, deflated, group, bare, files])
def test_probabilities_read_back_as_they_were(tmp_path: Path, source: Any) -> None:
    (tmp_path / "in").mkdir()
    convert(source(tmp_path / "in"), tmp_path / "out.zarr", names=["item0", "item1", "item2"])
    np.testing.assert_array_equal(stored(tmp_path / "out.zarr"), STACK)
    store = open_store(tmp_path / "out.zarr", role="predictions")
    assert store.names == ("item0", "item1", "item2")
    assert store.arrays["probs"][0].array.missing() == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out.zarr"]
    if source is group:
        np.testing.assert_array_equal(stored(tmp_path / "out.zarr", "labels"), LABELS)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("axes", ["NTHWC", "TNCHW", "ncwht", "NCHW", "TCHW", "HWC"])
def test_axes_are_as_declared(tmp_path: Path, axes: str) -> None:
    canonical = "NTCHW"
    values = STACK
    for letter in "TN":
        if letter not in axes.upper():
            values = values.take(0, axis=canonical.index(letter))
            canonical = canonical.replace(letter, "")
    np.save(tmp_path / "s.npy", values.transpose([canonical.index(a) for a in axes.upper()]))
    convert(tmp_path / "s.npy", tmp_path / "out", axes=axes)
    found = np.stack(stored(tmp_path / "out"))
    np.testing.assert_array_equal(found, values if "N" in axes.upper() else values[None])


@pytest.mark.usefixtures("tiles")
def test_files_of_different_sizes(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    stacks = {f"im{i}": probs(4, 5, 6 + i, 8) for i in range(3)}
    for name, values in stacks.items():
        np.savez_compressed(folder / f"{name}.npz", probs=values)
    calls: list[tuple[int, int]] = []
    convert(folder, tmp_path / "out", progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    for found, values in zip(stored(tmp_path / "out"), stacks.values(), strict=True):
        np.testing.assert_array_equal(found, values)
    convert(tmp_path / "out", tmp_path / "again", compression="zstd")
    assert open_store(tmp_path / "again", role="predictions").names == tuple(stacks)
    convert(folder, tmp_path / "two", names=["im2", "im0"])
    np.testing.assert_array_equal(stored(tmp_path / "two")[0], stacks["im2"])
    with pytest.raises(StoreError, match=r"1 of 1 items have no prediction: im9"):
        convert(folder, tmp_path / "three", names=["im9"])


def test_labels_come_along(tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    folder.mkdir()
    for i, ids in enumerate(LABELS):
        Image.fromarray(np.where(ids == 4, 255, ids).astype(np.uint8)).save(folder / f"i{i}.png")
    convert(npy(tmp_path), tmp_path / "out", labels=folder, names=["i2", "i0", "i1"])
    expected = np.where(LABELS == 4, 255, LABELS)[[2, 0, 1]]
    np.testing.assert_array_equal(stored(tmp_path / "out", "labels"), expected)
    convert(folder, tmp_path / "alone")
    np.testing.assert_array_equal(
        stored(tmp_path / "alone", "labels", "labels"), np.where(LABELS == 4, 255, LABELS)
    )
    assert open_store(tmp_path / "alone", role="labels").names == ("i0", "i1", "i2")
    np.save(tmp_path / "ids.npy", LABELS)
    convert(tmp_path / "ids.npy", tmp_path / "ids", kind="labels", class_names=list("abcde"))
    np.testing.assert_array_equal(stored(tmp_path / "ids", "labels", "labels"), LABELS)


@pytest.mark.parametrize("void", [-1, 3, 70000])
@pytest.mark.parametrize("declares", ["option", "labels", "source"])
def test_the_void_id_of_labels(tmp_path: Path, void: int, declares: str) -> None:
    own = {"ignore_index": void}
    ids = np.where(LABELS == 3, void, LABELS)
    of_labels, of_source = (own if declares == name else {} for name in ("labels", "source"))
    labels = save(tmp_path / "labels", {"labels": ids}, of_labels)
    source = save(tmp_path / "probs", {"probs": STACK}, of_source)
    options = own if declares == "option" else {}
    convert(source, tmp_path / "out", labels=labels, **options)
    np.testing.assert_array_equal(stored(tmp_path / "out", "labels"), ids)
    assert open_store(tmp_path / "out", role="predictions").attributes["ignore_index"] == void


def test_a_command_names_the_option_of_the_void_id(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", probs=STACK, labels=np.where(LABELS == 3, -1, LABELS))
    words = ("convert", tmp_path / "s.npz", tmp_path / "out")
    refused(
        run_uqeval(*words, cwd=tmp_path), "first is -1", "If -1 is void, give --ignore-index -1."
    )
    run_well(*words, "--ignore-index", "-1", cwd=tmp_path)


def test_other_arrays_and_attributes_come_along(tmp_path: Path) -> None:
    group = zarr.create_group(str(tmp_path / "s"), attributes={"ignore_index": 7, "site": "north"})
    arrays = {
        "mean": RNG.normal(size=(3, 9, 8)), "valid": RNG.random((3, 9, 8)) > 0.5,
        "frames": RNG.integers(0, 255, (3, 9, 8, 3), np.uint8), "mine": RNG.random((3, 9, 8)),
        "flow": RNG.normal(size=(2, 9, 8, 2)), "probs": RNG.integers(0, 2, (3, 2, 9, 8), np.uint8),
    }  # fmt: skip
    arrays["probs"][:, 1] = 255 - arrays["probs"][:, 0]
    for kind, values in arrays.items():
        scale = {"scale": 1 / 255} if kind == "probs" else {}
        group.create_array(kind, data=values, chunks=(1, *values.shape[1:]), attributes=scale)
    convert(tmp_path / "s", tmp_path / "out")
    store = open_store(tmp_path / "out", role="predictions")
    for kind, values in arrays.items():
        np.testing.assert_array_equal(stored(tmp_path / "out", kind), values)
    assert store.attributes["ignore_index"] == 7 and store.attributes["site"] == "north"
    assert store.arrays["probs"][0].array.attributes == {"scale": 1 / 255}
    arrays["probs"][1, 0, 2, 3] += 20
    group["probs"][:] = arrays["probs"]
    with pytest.raises(DataError, match=r"item 1: .* row 2, column 3 do not sum to 1"):
        convert(tmp_path / "s", tmp_path / "bad")


def change(*at: int, to: float) -> np.ndarray:
    values = STACK.astype(np.float32)
    values /= values.sum(axis=2, keepdims=True)
    values[at] = to
    return values


@pytest.mark.parametrize(
    ("values", "options", "says"),
    [
        (change(1, 2, 3, 8, 7, to=np.nan), {}, "item 1, sample 2: .*NaN, first in class 3, row 8"),
        (change(1, 2, 3, 8, 7, to=-1), {}, "item 1, sample 2: .*not probabilities.*--kind=logits"),
        (
            change(1, 2, 3, 8, 7, to=np.inf) - 1,
            {"kind": "logits"},
            "infinite, first in class 3, row 8",
        ),
        (STACK, {"kind": "logits"}, "the logits look like probabilities"),
        (STACK, {"axes": "NCTHW"}, "do not sum to 1"),
        (STACK, {"axes": "NCHW"}, "axes 'NCHW' are 4, but"),
        (STACK, {"axes": "NTCHH"}, "expected letters of NTCHW"),
        (STACK, {"names": ["a"]}, "1 names for 3 items"),
        (STACK, {"key": "x"}, "--key x names an array of a .npz file"),
        (STACK.astype("f4") * 255, {}, "sums are 255, .*: divide them by 255"),
        (STACK[0, 0, 0], {}, "Give --kind: probs"),
        (LABELS, {}, "may hold any of several kinds. Give --kind: probs"),
        (np.full((1, 2, 3, 3), 128, np.uint8), {}, "with scale None"),
    ],
)
def test_what_is_not_as_declared_is_refused(
    tmp_path: Path, values: np.ndarray, options: dict[str, Any], says: str
) -> None:
    np.save(tmp_path / "s.npy", values)
    with pytest.raises(UqevalError, match=says):
        convert(tmp_path / "s.npy", tmp_path / "out", **options)
    assert [p.name for p in tmp_path.iterdir()] == ["s.npy"]


@pytest.mark.parametrize("form", ["npz", "several", "zarr", "h5", "folder"])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("samples", (3, 1, 9, 8)),
        ("mean", (3, 9, 8)),
        ("logits", (3, 2, 9, 8)),
        ("valid", (3, 9, 8)),
    ],
)
def test_an_array_of_a_known_name_has_its_kind(
    tmp_path: Path, form: str, name: str, shape: tuple[int, ...]
) -> None:
    """[N, 1, H, W] in [0, 1] would be foreground probabilities, too."""
    values = np.full(shape, 0.3, bool if name == "valid" else "f4")
    key, source = name, tmp_path / f"s.{form}"
    if form == "npz":
        np.savez(source, **{name: values})
        key = None
    elif form == "several":
        source = tmp_path / "s.npz"
        np.savez(source, **{name: values, "other": np.ones(3)})
    elif form == "zarr":
        zarr_group(source, {name: values, "other": np.ones(3)})
    elif form == "h5":
        with h5py.File(source, "w") as file:
            file[name], file["other"] = values, np.ones(3)
    else:
        source.mkdir()
        for item in "abc":
            np.savez(source / f"{item}.npz", **{name: values[0], "other": np.ones(3)})
    convert(source, tmp_path / "out", key=key)
    assert set(open_store(tmp_path / "out", role="predictions").arrays) == {name}
    np.testing.assert_array_equal(stored(tmp_path / "out", name), values)


@pytest.mark.parametrize("form", ["npz", "folder"])
@pytest.mark.parametrize("name", ["mean", "mean_probs", "samples"])
def test_scores_beside_class_labels_are_probabilities(tmp_path: Path, name: str, form: str) -> None:
    """Whatever their name: labels of classes are no target."""
    source, key = tmp_path / "s.npz", None
    if form == "npz":
        np.savez(source, **{name: STACK[:, 0]})
    else:
        source, key = tmp_path / "s", name
        source.mkdir()
        for item, values in zip("abc", STACK[:, 0], strict=True):
            np.savez(source / f"{item}.npz", **{name: values, "other": np.ones(3)})
    np.save(tmp_path / "y.npy", STACK[:, 0].argmax(1).astype("u1"))
    convert(source, tmp_path / "out", labels=tmp_path / "y.npy", key=key)
    assert set(open_store(tmp_path / "out", role="predictions").arrays) == {"probs", "labels"}


@pytest.mark.parametrize("labelled", [False, True])
def test_an_array_pred_without_classes_may_hold_class_ids(tmp_path: Path, labelled: bool) -> None:
    np.savez(tmp_path / "s.npz", pred=LABELS)
    np.save(tmp_path / "y.npy", LABELS)
    labels = tmp_path / "y.npy" if labelled else None
    says = "Give --kind: probs, logits, labels or predictions"
    refused(lambda: convert(tmp_path / "s.npz", tmp_path / "out", labels=labels), says)
    convert(tmp_path / "s.npz", tmp_path / "out", labels=labels, kind="predictions")


@pytest.mark.parametrize("form", ["npz", "key", "h5", "npy"])
@pytest.mark.parametrize("name", ["mean", "std", "samples", "target"])
def test_numbers_beside_class_labels_are_no_probabilities(
    tmp_path: Path, form: str, name: str
) -> None:
    """The message was that they do not sum to 1, with the advice --kind=logits."""
    values, source, key = np.full((3, 9, 8), 7.0, "f4"), tmp_path / f"s.{form}", None
    if form == "npy":
        np.save(source, values)
    elif form == "h5":
        with h5py.File(source, "w") as file:
            file[name] = values
        source = f"{source}::/{name}"
    else:
        source, key = tmp_path / "s.npz", name if form == "key" else None
        np.savez(source, **{name: values} | ({"other": np.ones(3)} if key else {}))
    np.save(tmp_path / "y.npy", LABELS)
    labels, says = tmp_path / "y.npy", "may hold any of several kinds. Give --kind"
    refused(lambda: convert(source, tmp_path / "out", labels=labels, key=key), says)
    if form == "npz":
        np.savez(source, **{name: values[0]})
        refused(lambda: convert(source, tmp_path / "out", labels=labels), says)


def test_a_single_image_of_numbers_is_one_item(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", mean=np.ones((9, 8)))
    convert(tmp_path / "s.npz", tmp_path / "out")
    (image,) = stored(tmp_path / "out", "mean")
    assert image.shape == (9, 8)


def test_probabilities_that_are_called_predictions(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", predictions=STACK)
    says = "Call class probabilities `probs`"
    refused(lambda: convert(tmp_path / "s.npz", tmp_path / "out"), says, error=StoreError)
    convert(tmp_path / "s.npz", tmp_path / "out", kind="probs")
    np.testing.assert_array_equal(stored(tmp_path / "out", "probs"), STACK)


def test_class_scores_of_images_with_labels(tmp_path: Path) -> None:
    scores = np.random.default_rng(0).dirichlet(np.ones(4), 6).astype("f4")
    np.save(tmp_path / "s.npy", scores)
    np.save(tmp_path / "labels.npy", np.arange(6) % 4)
    with pytest.raises(UsageError, match="may hold any of several kinds"):
        convert(tmp_path / "s.npy", tmp_path / "out")
    convert(tmp_path / "s.npy", tmp_path / "out", labels=tmp_path / "labels.npy")
    store = open_store(tmp_path / "out", role="predictions")
    assert set(store.arrays) == {"probs", "labels"} and len(store.arrays["probs"]) == 6


def test_destinations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = npy(tmp_path), tmp_path / "out"
    convert(source, out)
    with pytest.raises(OutputError, match="exists"):
        convert(source, out)
    np.save(source, STACK[:2])
    convert(source, out, overwrite=True)
    assert len(stored(out)) == 2
    for place in ("s3://bucket/s", tmp_path / "out.zip"):
        with pytest.raises(OutputError, match="local folder"):
            convert(source, place)
    with pytest.raises(UsageError, match="contains the input"):
        convert(source, tmp_path, overwrite=True)
    with pytest.raises(StoreError, match="nothing here"):
        convert(tmp_path / "nowhere", tmp_path / "x")
    with pytest.raises(UsageError, match="give its name with --key"):
        convert(out, tmp_path / "x", axes="NTCHW")
    convert(out, tmp_path / "x", axes="NTCHW", key="probs")

    async def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("zarr.storage.LocalStore.set", full)
    with pytest.raises(OutputError, match="No space left"):
        convert(source, tmp_path / "y")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "s.npy", "x"]


def test_a_video_with_flows_of_both_directions(tmp_path: Path) -> None:
    """There is a flow less than frames."""
    flow = np.arange(2 * 4 * 6 * 2, dtype=np.float32).reshape(2, 4, 6, 2)
    frames = np.zeros((3, 4, 6, 3), np.uint8)
    np.savez(tmp_path / "v.npz", frames=frames, flow=flow, flow_forward=-flow)
    convert(tmp_path / "v.npz", tmp_path / "v.zarr")
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "v.zarr")["flow_forward"][:], -flow)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_probabilities_as_integers_with_what_is_lost(tmp_path: Path, dtype: str) -> None:
    values = STACK.astype(dtype) if dtype == "f2" else probs(3, 4, 5, 9, 8, dtype=dtype)
    np.savez(tmp_path / "s.npz", probs=values, labels=LABELS, names=np.array(["a", "b", "c"]))
    recoding = Recoding()
    convert(tmp_path / "s.npz", tmp_path / "out", compression="zstd-4", recoding=recoding)
    array = zarr.open_group(tmp_path / "out")["probs"]
    assert array.dtype == np.uint16 and array.attrs["scale"] == 1 / 65535
    read = array[:] / 65535
    exact = values.astype(np.float64)
    sums = exact.sum(axis=2, keepdims=True)
    assert np.abs(read - exact / sums).max() <= 0.5 / 65535 * (1 + 1e-9)
    differences = np.abs(read - exact)
    assert recoding.largest == differences.max() and recoding.values == values.size
    item = "abc"[int(differences.max(axis=(1, 2, 3, 4)).argmax())]
    assert recoding.where.endswith(f"item '{item}'")
    np.testing.assert_allclose(recoding.worst_sum, np.abs(sums - 1).max(), rtol=1e-9)
    np.testing.assert_array_equal(stored(tmp_path / "out", "labels"), LABELS)
    uqeval.evaluate(str(tmp_path / "out"), metrics=["segmentation"])  # sums are accepted


@pytest.mark.parametrize("kind", ["mean_probs", "logits", "mean", "std", "samples"])
@pytest.mark.parametrize("form", ["floats", "integers", "both"])
def test_recoded_stores_of_each_kind_are_evaluated(tmp_path: Path, kind: str, form: str) -> None:
    """Their scores are those of the source."""
    rng = np.random.default_rng(1)
    of_classes = kind in ("mean_probs", "logits")
    root = zarr.create_group(str(tmp_path / "in"))
    for i, name in enumerate("ab"):
        whole = in_steps(probs(3, 9, 8, dtype="f4"), 255)
        maps = {"predictions": whole.argmax(axis=0).astype("u1"), "labels": LABELS[i] % 3}
        if not of_classes:
            whole = rng.integers(50, 255, (4, 9, 8) if kind == "samples" else (9, 8), "u1")
            maps = {
                "target": rng.random((9, 8)),
                "mean": rng.random((9, 8)),
                "std": np.ones((9, 8)),
            }
            maps = {k: v for k, v in maps.items() if k == "target" or kind in ("mean", "std")}
        is_whole = form == "integers" or (form == "both" and i == 0)
        scale = 1 / 255 if kind == "mean_probs" else 0.1
        group = root.create_group(f"items/{name}", attributes={"name": name})
        if kind == "logits":
            del maps["predictions"]
        for array, values in (maps | {kind: whole if is_whole else whole * scale}).items():
            own = {"scale": scale} if array == kind and is_whole else {}
            group.create_array(array, data=values, attributes=own)
    convert(tmp_path / "in", tmp_path / "out", recoding=Recoding())
    metrics = "calibration" if of_classes else "regression"
    expected = uqeval.evaluate(tmp_path / "in", None, metrics).results[metrics]
    found = uqeval.evaluate(tmp_path / "out", None, metrics).results[metrics]
    assert found["nll"] == pytest.approx(expected["nll"], rel=1e-4)


def test_only_floating_point_probabilities_become_integers(tmp_path: Path) -> None:
    """A foreground probability is not divided by anything; logits and integers stay."""
    foreground = np.array([0, 1e-6, 0.25, 1], np.float32).reshape(1, 1, 1, 2, 2)
    integers = np.full((1, 2, 5, 4, 6), 51, np.uint8)
    folder = tmp_path / "scaled"
    folder.mkdir()
    np.savez(folder / "a.npz", probs=integers[0], scale=1 / 255)
    np.savez(tmp_path / "f.npz", probs=foreground)
    np.savez(tmp_path / "l.npz", logits=LOGITS)
    found = {}
    for source in ("f.npz", "l.npz", "scaled"):
        recoding, out = Recoding(), tmp_path / f"{source}.zarr"
        convert(tmp_path / source, out, recoding=recoding)
        found[source] = recoding, zarr.open_group(out)
    recoding, group = found["f.npz"]
    assert group["probs"][:].ravel().tolist() == [0, 0, 16384, 65535]
    assert recoding.worst_sum == 0 and recoding.largest == pytest.approx(0.25 / 65535)
    assert "rounded to multiples of 1.5e-05: the largest change of a value is 3.8e-06" in (
        recoding.loss()
    )
    assert found["l.npz"][1]["logits"].dtype == np.float16
    assert found["scaled"][1]["probs"].dtype == np.uint8
    for source in ("l.npz", "scaled"):
        assert found[source][0].loss() == (
            "no floating-point probabilities: all values are unchanged"
        )


def in_steps(values: np.ndarray, steps: int) -> np.ndarray:
    """Probabilities [class, y, x] as multiples of 1/steps that sum to 1."""
    whole = np.floor(values.astype(np.float64) * steps).astype(int)
    whole[0] += steps - whole.sum(axis=0)
    return whole.astype(np.uint8 if steps < 256 else np.uint16)


@pytest.mark.parametrize(
    "forms", [(255, None), (None, 255), (255, 100), (255, 65535), (65535, None)]
)
@pytest.mark.parametrize("recommended", [False, True])
def test_integers_of_several_scales_become_probabilities(
    tmp_path: Path, forms: tuple[int | None, int | None], recommended: bool
) -> None:
    (tmp_path / "in").mkdir()
    expected = []
    for name, steps, values in zip("ab", forms, probs(2, 3, 9, 8, dtype="f4"), strict=True):
        if steps:
            arrays = {"probs": in_steps(values, steps), "scale": 1 / steps}
            expected.append(arrays["probs"] / steps)
        else:
            arrays = {"probs": values}
            expected.append(values)
        np.savez(tmp_path / "in" / f"{name}.npz", **arrays)
    recoding = Recoding() if recommended else None
    convert(tmp_path / "in", tmp_path / "out", recoding=recoding)
    array = zarr.open_group(tmp_path / "out")["probs"]
    assert array.dtype == (np.uint16 if recommended else np.float32)
    assert dict(array.attrs) == ({"scale": 1 / 65535} if recommended else {})
    found = array[:] * array.attrs.get("scale", 1)
    np.testing.assert_allclose(found, expected, atol=2e-5 if recommended else 1e-7)
    uqeval.evaluate(tmp_path / "out", np.zeros((2, 9, 8), "u1"), metrics="segmentation")


def test_integers_of_one_scale_stay_integers(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, dtype in (("a", "u1"), ("b", "u2")):
        values = in_steps(probs(3, 9, 8, dtype="f4"), 255).astype(dtype)
        np.savez(tmp_path / "in" / f"{name}.npz", probs=values, scale=1 / 255)
    convert(tmp_path / "in", tmp_path / "out")
    array = zarr.open_group(tmp_path / "out")["probs"]
    assert array.dtype == np.uint16 and array.attrs["scale"] == 1 / 255


@pytest.mark.parametrize("kind", ["logits", "mean", "std", "samples"])
def test_scaled_integers_beside_floats_are_converted(tmp_path: Path, kind: str) -> None:
    """The new store has the numbers that evaluations read; 7 is no number of the first item."""
    shape = {"logits": (3, 9, 8), "samples": (4, 9, 8)}.get(kind, (9, 8))
    whole = RNG.integers(8, 250, shape).astype("u1")
    floats = (RNG.random(shape) * 20 - 3).astype("f4")
    expected = [whole * 0.1, floats]
    own: dict[str, Any] = {"scale": 0.1}
    if kind != "logits":
        whole[..., 2, 3], expected[0][..., 2, 3] = 7, np.nan
        own["_FillValue"] = 7
    root = zarr.create_group(str(tmp_path / "in"))
    for name, values, attributes in (("a", whole, own), ("b", floats, {})):
        group = root.create_group(f"items/{name}", attributes={"name": name})
        group.create_array(kind, data=values, attributes=attributes)
        if kind == "std":
            group.create_array("mean", data=floats)
    convert(tmp_path / "in", tmp_path / "out")
    array = zarr.open_group(str(tmp_path / "out"))[kind]
    assert array.dtype == (np.float32 if kind == "logits" else np.float64)
    assert dict(array.attrs) == {}
    np.testing.assert_allclose(np.squeeze(array[:]), expected, rtol=1e-7)


def test_fill_values_and_missing_scales_of_integers_beside_floats(tmp_path: Path) -> None:
    def refuse(says: str, kind: str, dtype: str = "u1", **attributes: Any) -> None:
        root = zarr.create_group(str(tmp_path / "in"), overwrite=True)
        for name, of_item, own in (("a", dtype, attributes), ("b", "f4", {})):
            group = root.create_group(f"items/{name}", attributes={"name": name})
            group.create_array(kind, data=np.full((3, 9, 8), 7, of_item), attributes=own)
        with pytest.raises(UqevalError, match=says):
            convert(tmp_path / "in", tmp_path / "out")

    refuse("item 'a': .*_FillValue.* declare to be no number, 7", "logits", scale=1, _FillValue=7)
    for kind in ("samples", "logits"):
        refuse(f"a/{kind}: uint8 {kind} with scale None", kind)
        refuse(f"a/{kind}: uint8 {kind} with scale 2", kind, scale=2)
        refuse(f"a/{kind}: {kind} of dtype int16; expected .* uint8 or uint16", kind, "i2", scale=1)


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2"])
@pytest.mark.parametrize("kind", ["mean", "std", "variance", "samples"])
@pytest.mark.parametrize("form", ["zarr", "npz"])
def test_integers_without_a_scale_are_refused_as_in_an_evaluation(
    tmp_path: Path, form: str, kind: str, dtype: str
) -> None:
    numbers = np.full((2, 3, 9, 8) if kind == "samples" else (2, 9, 8), 7, dtype)
    plane = np.ones((2, 9, 8))
    arrays = {"target": plane, kind: numbers}
    if kind in ("std", "variance"):
        arrays["mean"] = plane
    elif kind == "mean":
        arrays["std"] = plane
    source = tmp_path / f"s.{form}"
    if form == "npz":
        np.savez(source, **arrays)
    else:
        root = zarr.create_group(str(source))
        for name, values in arrays.items():
            root.create_array(name, data=values)
    own = refused(lambda: uqeval.evaluate(source, None, "regression", workers=1), "scale")
    assert refused(lambda: convert(source, tmp_path / "out")) == own
    assert not (tmp_path / "out").exists()
    if form == "zarr" and dtype != "i2":
        root[kind].attrs["scale"] = 0.5
        convert(source, tmp_path / "out")
        given = [uqeval.evaluate(path, None, "regression", workers=1).results
                 for path in (source, tmp_path / "out")]  # fmt: skip
        assert given[0] == given[1]


def test_numbers_of_a_regression_beside_classes_are_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", probs=STACK, mean=np.ones(LABELS.shape, np.uint8))
    convert(tmp_path / "s.npz", tmp_path / "out")
    assert uqeval.evaluate(tmp_path / "out", LABELS, "segmentation", workers=1)


@pytest.mark.parametrize("other", ["f2", "f4", "f8", "u2"])
def test_rounded_sums_of_integers_that_floats_do_not_allow(tmp_path: Path, other: str) -> None:
    """An evaluation accepts sums of rounded integers, but not of the same numbers as floats."""
    (tmp_path / "in").mkdir()
    whole = np.full((3, 9, 8), 85, "u1")
    whole[:, 2, 3] = 86, 85, 85
    values = probs(3, 9, 8, dtype="f4")
    steps = {"scale": 1 / 65535} if other == "u2" else {}
    values = in_steps(values, 65535) if steps else values.astype(other)
    np.savez(tmp_path / "in" / "a.npz", probs=whole, scale=1 / 255)
    np.savez(tmp_path / "in" / "b.npz", probs=values, **steps)
    truth = np.zeros((2, 9, 8), "u1")
    expected = uqeval.evaluate(tmp_path / "in", truth, metrics="segmentation").results
    says = r"item 'a' holds uint8 with scale 0\.00392157, and other items .*Give --recommended"
    with pytest.raises(DataError, match=says):
        convert(tmp_path / "in", tmp_path / "out")
    convert(tmp_path / "in", tmp_path / "out", recoding=Recoding())
    assert uqeval.evaluate(tmp_path / "out", truth, metrics="segmentation").results == expected


def test_integer_logits_that_are_probabilities_as_floats(tmp_path: Path) -> None:
    """The rounding to such steps is too coarse to judge integers, that of floats is not."""
    (tmp_path / "in").mkdir()
    whole = in_steps(probs(19, 9, 8, dtype="f4"), 19)
    np.savez(tmp_path / "in" / "a.npz", logits=whole, scale=1 / 19)
    convert(tmp_path / "in", tmp_path / "alone")
    np.savez(tmp_path / "in" / "b.npz", logits=RNG.normal(size=(19, 9, 8)))
    with pytest.raises(DataError, match=r"item 'a': the logits look like probabilities"):
        convert(tmp_path / "in", tmp_path / "out")


def test_sums_that_the_new_dtype_does_not_allow(tmp_path: Path) -> None:
    """Evaluations would refuse the new store."""
    (tmp_path / "in").mkdir()
    np.savez(tmp_path / "in" / "a.npz", probs=np.full((3, 9, 8), 85 / 256, "f2"))
    np.savez(tmp_path / "in" / "b.npz", probs=probs(3, 9, 8, dtype="f4"))
    with pytest.raises(DataError, match=r"item 'a'.* do not sum to 1"):
        convert(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("marked", [0, 1])
def test_items_with_other_void_ids_stay_in_groups(tmp_path: Path, marked: int) -> None:
    """One array cannot have the void ids of both."""
    root = zarr.create_group(str(tmp_path / "s"))
    for i, name in enumerate("ab"):
        group = root.create_group(f"items/{name}", attributes={"name": name})
        group.create_array("probs", data=probs(3, 9, 8))
        own = {"ignore_index": 7} if i == marked else {}
        group.create_array("zone", data=np.ones((9, 8), "u1"), attributes=own)
    convert(tmp_path / "s", tmp_path / "out")
    zones = [zarr.open_array(str(tmp_path / f"out/items/{name}/zone")) for name in "ab"]
    assert [zone.attrs.get("ignore_index") == 7 for zone in zones] == [i == marked for i in (0, 1)]


def test_many_small_items_share_chunks(tmp_path: Path) -> None:
    values = probs(200, 3, 2, 2)
    truth = np.arange(800, dtype="u1").reshape(200, 2, 2) % 3
    np.savez(tmp_path / "in.npz", probs=values, labels=truth)
    convert(tmp_path / "in.npz", tmp_path / "out")
    for kind, expected in (("probs", values), ("labels", truth)):
        np.testing.assert_array_equal(np.stack(stored(tmp_path / "out", kind)), expected)
        assert zarr.open_group(str(tmp_path / "out"))[kind].chunks[0] == 4
        assert len(list((tmp_path / "out" / kind / "c").iterdir())) == 50


def test_items_share_chunks_only_if_they_are_many_and_small() -> None:
    assert [items_in_chunk(n, 40) for n in (0, 1, 64, 65, 10_000)] == [1, 1, 1, 2, 157]
    assert [items_in_chunk(10_000, size) for size in (0, 10**5, 2**19, 2**20)] == [157, 10, 2, 1]


def test_the_unit_of_numbers_stays(tmp_path: Path) -> None:
    target = numbers()["target"]
    path = with_target(tmp_path / "r.zarr", target, units="m")
    convert(path, tmp_path / "c.zarr")
    assert zarr.open_group(str(tmp_path / "c.zarr"))["target"].attrs["units"] == "m"


@pytest.mark.parametrize("same", [True, False])
def test_attributes_that_differ_by_item(tmp_path: Path, same: bool) -> None:
    """Items of equal sizes were refused; they stay in groups."""
    zarr_group(tmp_path / "r.zarr", {})
    zarr_group(tmp_path / "r.zarr/items", {})
    arrays, names = numbers(), ("mean", "std", "target")
    for k, invalid in enumerate((-1, -1 if same else -2, -1)):
        of_item: dict[str, Any] = {name: arrays[name][k] for name in names}
        target = np.where(np.isnan(of_item["target"]), invalid, of_item["target"])
        of_item["target"] = target, {"attributes": {"invalid": invalid}}
        zarr_group(tmp_path / f"r.zarr/items/i{k}", of_item, name=f"i{k}")
    convert(tmp_path / "r.zarr", tmp_path / "c.zarr")
    assert (tmp_path / "c.zarr/items").exists() != same
    expected = uqeval.evaluate({name: arrays[name] for name in names}, None, "regression")
    for path in ("r.zarr", "c.zarr"):
        found = uqeval.evaluate(tmp_path / path, None, "regression").results
        assert found == expected.results


@pytest.mark.parametrize("source", ["s.h5::/probs", "s.h5 key", "s.zarr/probs", "s.zarr key",
                                    "s.npz key"])  # fmt: skip
def test_names_beside_one_array_match_the_labels(tmp_path: Path, source: str) -> None:
    """As they do in an evaluation of the array."""
    names = np.array(["c", "a", "b"])
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["probs"], file["names"] = STACK, names.astype("S")
    zarr_group(tmp_path / "s.zarr", {"probs": STACK}, names=names.tolist())
    np.savez(tmp_path / "s.npz", probs=STACK, names=names)
    order = [1, 2, 0]
    np.savez(tmp_path / "l.npz", labels=LABELS[order], names=names[order])
    path, _, key = source.partition(" ")
    written = tmp_path / "out.zarr"
    assert not convert(
        tmp_path / path, written, key="probs" if key else None, labels=tmp_path / "l.npz"
    )
    store = open_store(written, role="predictions")
    assert store.names == tuple(names)
    assert (stored(written, "labels") == LABELS).all()
    if not key:
        report = uqeval.evaluate(tmp_path / path, tmp_path / "l.npz", metrics="calibration")
        whole = uqeval.evaluate(written, metrics="calibration")
        assert report.results["calibration"] == whole.results["calibration"]


def test_names_beside_one_array_that_are_a_link(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["probs"], file["names"] = STACK, h5py.SoftLink("/others")
    for path, key in ((tmp_path / "s.h5", "probs"), (f"{tmp_path / 's.h5'}::/probs", None)):
        refused(lambda p=path, k=key: convert(p, tmp_path / "out", key=k), "names is a soft link",
                error=StoreError)  # fmt: skip


@pytest.mark.parametrize("name", ["target", "flow"])
def test_names_beside_one_image_or_flow_are_of_no_item(tmp_path: Path, name: str) -> None:
    """A target without an axis of items is one image, and flow is between two."""
    values = np.ones((9, 8)) if name == "target" else np.zeros((2, 9, 8, 2), "f4")
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file[name], file["names"] = values, np.array([b"a", b"b", b"c"])
    role: Any = name
    assert open_store(f"{tmp_path / 's.h5'}::/{name}", role=role).names is None


def alone(path: Path, form: str, **arrays: Any) -> Path:
    """A file or a group of arrays, with names of three items and of the classes, and a coordinate
    of the rows."""
    names, classes, rows = ["c", "a", "b"], list("uvwxy"), np.arange(9.0)
    if form == "npz":
        np.savez(path / "s.npz", names=names, class_names=classes, **arrays)
        return path / "s.npz"
    if form == "zarr":
        return zarr_group(path / "s.zarr", arrays | {"y": rows}, names=names, class_names=classes)
    with h5py.File(path / "s.h5", "w") as file:
        file["names"], file["class_names"], file["y"] = names, classes, rows
        for name, values in arrays.items():
            file[name] = values
    return path / "s.h5"


@pytest.mark.parametrize("form", ["npz", "zarr", "h5"])
@pytest.mark.parametrize("name", ["p", "softmax", "mean_probs"])
def test_the_only_array_is_read_alone(tmp_path: Path, form: str, name: str) -> None:
    """Names, attributes and coordinates beside it are no arrays of their own."""
    values = STACK[:, 0] if name == "mean_probs" else STACK
    assert not convert(alone(tmp_path, form, **{name: values}), tmp_path / "out.zarr")
    assert (stored(tmp_path / "out.zarr", "probs") == values).all()
    store = open_store(tmp_path / "out.zarr", role="predictions")
    assert store.names == ("c", "a", "b")
    assert store.attributes["class_names"] == list("uvwxy")


@pytest.mark.parametrize("form", ["npz", "zarr", "h5"])
def test_two_arrays_of_other_names_need_a_key(tmp_path: Path, form: str) -> None:
    source = alone(tmp_path, form, p=STACK, q=STACK)
    refused(lambda: convert(source, tmp_path / "out"), "expected probs or logits", error=StoreError)


@pytest.mark.parametrize("form", ["folder", "npz", "zarr", "h5"])
def test_mean_probabilities_beside_labels_are_one_sample(tmp_path: Path, form: str) -> None:
    """No command reads mean_probs without predictions."""
    means = STACK[:, 0]
    np.savez(tmp_path / "l.npz", labels=LABELS, names=["c", "a", "b"])
    if form == "folder":
        source = tmp_path / "items"
        source.mkdir()
        for name, values in zip("cab", means, strict=True):
            np.savez(source / f"{name}.npz", mean_probs=values)
        labels = tmp_path / "l.npz"
    else:
        source, labels = alone(tmp_path, form, mean_probs=means, labels=LABELS), None
    convert(source, tmp_path / "out.zarr", labels=labels)
    score = uqeval.evaluate(tmp_path / "out.zarr", metrics="calibration").results["calibration"]
    expected = uqeval.evaluate({"probs": means, "labels": LABELS}, metrics="calibration")
    assert score["brier"] == pytest.approx(expected.results["calibration"]["brier"], abs=1e-9)


@pytest.mark.parametrize("form", ["npz", "zarr", "h5"])
def test_the_void_id_beside_one_array_counts_in_every_format(tmp_path: Path, form: str) -> None:
    source = tmp_path / f"s.{form}"
    others = np.ones((3, 2), "f4")
    if form == "npz":
        np.savez(source, probs=STACK, other=others, ignore_index=2)
    elif form == "h5":
        with h5py.File(source, "w") as file:
            file["probs"], file["other"], file.attrs["ignore_index"] = STACK, others, 2
    else:
        group = zarr.open_group(source, mode="w", attributes={"ignore_index": 2})
        group["probs"], group["other"] = STACK, others
    convert(source, tmp_path / "out", key="probs")
    assert open_store(tmp_path / "out", role="predictions").attributes["ignore_index"] == 2
