"""HDF5 files, whole or by the place of an array or a group, read by chunk."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_uqeval, run_well
from split import split

import uqeval
from uqeval.disk.outputs import refuse_overlap
from uqeval.errors import StoreError, UqevalError, UsageError
from uqeval.stores.class_ids import declared_void
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert

h5py = pytest.importorskip("h5py", reason="stores in HDF5 need uqeval[hdf5]")

RNG = np.random.default_rng(7)
PROBS = np.moveaxis(RNG.dirichlet(np.ones(4), (3, 2, 8, 12)), -1, 2).astype("f4")
LABELS = RNG.integers(0, 4, (3, 8, 12)).astype(np.uint8)


def saved(path: Path, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        group = file.create_group("run/a")
        group.create_dataset("probs", data=PROBS, **options)
        group.create_dataset("names", data=["a", "b", "c"])
        group.attrs["class_names"] = ["road", "car", "tree", "sky"]
        group.attrs["ignore_index"] = np.int64(255)
        file.create_dataset("labels", data=LABELS)
        file.create_dataset("numbers", data=np.ones((3, 8, 12)))
        file.create_dataset("nothing", shape=(3, 8, 12), dtype="u1", chunks=(1, 8, 12))
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/probs")
        file.create_dataset("raw", (4,), "f4", external=[("/etc/hostname", 0, 16)])
    return path


@pytest.mark.parametrize(
    "options",
    [{}, {"chunks": (1, 1, 4, 5, 12)}, {"chunks": (2, 2, 2, 8, 6), "compression": "gzip"}],
)
def test_the_scores_are_those_of_the_arrays(tmp_path: Path, options: dict[str, Any]) -> None:
    at = f"{saved(tmp_path / 's.h5', **options)}::"
    expected = uqeval.evaluate(PROBS, LABELS, metrics=("calibration",)).results["calibration"]
    assert split([f"{at}/run/a", f"{at}labels"]) == ([f"{at}/run/a"], f"{at}labels")
    for inside in ("/run/a", "run/a/probs"):
        report = uqeval.evaluate(f"{at}{inside}", f"{at}labels", metrics=("calibration",))
        assert report.results["calibration"]["ece"] == expected["ece"]
    group = open_store(f"{at}/run/a", role="predictions")
    assert group.names == ("a", "b", "c") and group.attributes["ignore_index"] == 255
    part = group.arrays["probs"][1]
    assert part.states() and part.array.fingerprint()
    if "chunks" in options:
        assert part.array.chunks == options["chunks"]


def test_what_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "s.h5")
    (tmp_path / "bad.h5").write_bytes(b"no HDF5")
    with h5py.File(tmp_path / "huge.h5", "w") as file:
        file.create_dataset("probs", shape=(10**12, 2, 4, 4), dtype="f4", chunks=(1, 2, 4, 4))
        file.create_dataset("bare", shape=(10**12, 2, 4, 4), dtype="f4")
    for inside, says in [
        (f"{path}::/nowhere", "nothing here; / holds elsewhere, labels"),
        (f"{path}::/elsewhere", "elsewhere is a link to other.h5::/probs, another file"),
        (f"{path}::/raw", "are in other files"),
        (f"{path}::/nothing", "chunks are missing"),
        (f"{path}::/run/a/names", "expected numbers"),
        (f"{tmp_path / 'bad.h5'}", "cannot be opened as an HDF5 file"),
        (f"{tmp_path / 'none.h5'}::/x", "there is nothing here"),
        (f"{tmp_path / 'huge.h5'}", r"claims the shape .*missing"),
        (f"{tmp_path / 'huge.h5'}::/bare", r"claims the shape .*missing"),
    ]:
        with pytest.raises(UqevalError, match=says):
            uqeval.evaluate(inside, LABELS, metrics=("segmentation",), classes=4)


@pytest.mark.parametrize("name", ["probs", "labels", "softmax", "names", "ignore_index"])
def test_links_under_names_that_are_read(tmp_path: Path, name: str) -> None:
    """A file without them has other scores; the advice of the message works."""
    path = tmp_path / "l.h5"
    with h5py.File(path, "w") as file:
        arrays = {"probs": PROBS, "labels": LABELS, "names": ["a", "b", "c"], "ignore_index": 255}
        for own, values in arrays.items():
            file[own if own != name else "in/it"] = values
        if name == "softmax":
            file.move("probs", "in/it")
        file[name] = h5py.SoftLink("/in/it")
        file["other"] = h5py.SoftLink("/nowhere")
    says = f"l.h5::/{name} is a soft link to /in/it"
    advice = f"del group['{name}']; group['{name}'] = group['/in/it']"
    refused(lambda: open_store(path, role="predictions"), says, advice)
    with h5py.File(path, "a") as group:
        exec(advice, {"group": group})
    store = open_store(path, role="predictions")
    assert set(store.arrays) == {"probs", "labels"} and store.names == ("a", "b", "c")
    assert "other is a link, which is not followed" in store.warnings[0]


PAIRS = np.array([(1, 2)] * 3, [("a", "i4"), ("b", "i4")])


@pytest.mark.parametrize("inside", ["/", "/probs"])
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("names", PAIRS, "holds [('a', '<i4'), ('b', '<i4')] of shape (3,)"),
        ("names", np.array([b"a", b"b", b"c"], "V1"), "holds |V1 of shape (3,)"),
        ("names", np.array([0, 1, 2], h5py.enum_dtype({"a": 0})), "holds uint8 of shape (3,)"),
        ("names", np.ones(3, complex), "holds complex128 of shape (3,)"),
        ("names", [["a"], ["b"], ["c"]], "holds texts of shape (3, 1)"),
        ("names", "a", "holds texts of shape ()"),
        ("names", h5py.Reference, "holds references of shape (3,)"),
        ("names", h5py.Empty(h5py.string_dtype()), "is empty"),
        ("names", h5py.Empty("f4"), "is empty"),
        ("names", h5py.Group, "is a group"),
        ("names", np.dtype("f4"), "is a type without values"),
        ("ignore_index", PAIRS[0], "holds [('a', '<i4'), ('b', '<i4')] of shape ()"),
        ("ignore_index", "255", "holds texts of shape ()"),
        ("ignore_index", [[7, 7]], "holds int64 of shape (1, 2)"),
        ("class_names", [1, 2, 3, 4], "holds int64 of shape (4,)"),
    ],
)
def test_what_describes_the_arrays_and_has_another_type(
    tmp_path: Path, inside: str, name: str, content: Any, says: str
) -> None:
    """It is not ignored: items would be matched by position, or void pixels evaluated."""
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as file:
        file["probs"] = PROBS
        if content is h5py.Group:
            file.create_group(name)
        elif content is h5py.Reference:
            file.create_dataset(name, data=[file["probs"].ref] * 3, dtype=h5py.ref_dtype)
        else:
            file[name] = content
    advice = f"del group['{name}']; group['{name}'] ="
    refused(
        lambda: open_store(f"{path}::{inside}", role="predictions"),
        f"{path}::/{name} {says}, expected ", advice,
    )  # fmt: skip
    with h5py.File(path, "a") as group:  # the file is closed, and the advice works
        del group[name]
    assert open_store(f"{path}::{inside}", role="predictions").names is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (h5py.Group, "is a group"),
        (h5py.Empty("?"), "is empty"),
        (np.dtype("?"), "is a type without values"),
    ],
)
def test_a_mask_that_has_no_numbers(tmp_path: Path, content: Any, says: str) -> None:
    """It is not ignored: void pixels would be evaluated."""
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as file:
        file["probs"] = PROBS
        if content is h5py.Group:
            file.create_group("valid")
        else:
            file["valid"] = content
    refused(
        lambda: open_store(str(path), role="predictions"),
        f"{path}::/valid {says}, expected true and false", "del group['valid']",
    )  # fmt: skip


@pytest.mark.parametrize("inside", ["/", "/probs"])
@pytest.mark.parametrize("is_attribute", [False, True])
def test_the_void_id_as_a_matrix_of_one_number(
    tmp_path: Path, is_attribute: bool, inside: str
) -> None:
    """Other languages, such as MATLAB, write numbers so."""
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as file:
        file["probs"] = PROBS
        place = file.attrs if is_attribute else file
        place["ignore_index"] = np.array([[7.0]])
    store = open_store(f"{path}::{inside}", role="predictions")
    assert declared_void(store.attributes, store.path) == 7 and len(store.arrays) == 1


@pytest.mark.parametrize("inside", ["/", "/probs"])
def test_an_attribute_names_that_is_empty(tmp_path: Path, inside: str) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["probs"], file.attrs["names"] = PROBS, h5py.Empty("f4")
    with pytest.raises(StoreError, match="attribute names is empty or cannot be read, expected"):
        open_store(f"{tmp_path / 's.h5'}::{inside}", role="predictions")


@pytest.mark.parametrize("link", [h5py.SoftLink("/in/it"), h5py.ExternalLink("x.h5", "/labels")])
def test_links_under_names_that_are_not_read(tmp_path: Path, link: Any) -> None:
    """Labels from another store replace those of a link; one that is read is refused."""
    expected = uqeval.evaluate(PROBS, LABELS, metrics="segmentation").results
    path, other, maps = (str(tmp_path / f"{name}.h5") for name in ("p", "l", "m"))
    arrays = {path: {"probs": PROBS}, other: {"labels": LABELS},
              maps: {"predictions": LABELS, "entropy": np.ones(LABELS.shape)}}  # fmt: skip
    for own, members in arrays.items():
        with h5py.File(own, "w") as file:
            for name, values in members.items():
                file[name] = values
            file["softmax" if own == other else "labels"] = link
    report = uqeval.evaluate(path, other, metrics="segmentation")
    assert report.results == expected
    assert any("p.h5::labels is a link, which is not followed" in w for w in report.warnings)
    assert any("l.h5::softmax is a link, which is not followed" in w for w in report.warnings)
    convert(path, tmp_path / "c.zarr", labels=other)
    assert uqeval.evaluate(tmp_path / "c.zarr", metrics="segmentation").results == expected
    says = "::/labels is a (soft )?link to"
    for given in ([path, None], [path, path], [maps, other]):  # maps are of their own labels
        with pytest.raises(StoreError, match=says):
            uqeval.evaluate(*given, metrics="segmentation")


def test_virtual_datasets_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "s.h5")
    layout = h5py.VirtualLayout(LABELS.shape, "u1")
    layout[:] = h5py.VirtualSource(".", "labels", LABELS.shape)
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset("virtual", layout)
    refused(lambda: open_store(f"{path}::/virtual", role="labels"), "is a virtual dataset")


@pytest.mark.parametrize("mark", [b"SNOD", b"HEAP", b"TREE", b"probs"])
def test_damaged_metadata_are_refused(tmp_path: Path, mark: bytes) -> None:
    """h5py raises errors without a common base, when it opens, lists or reads."""
    path, bad = saved(tmp_path / "s.h5", chunks=(1, 2, 4, 8, 12)), tmp_path / "bad.h5"
    data = path.read_bytes()

    def ending(file: Path) -> Any:
        try:
            return uqeval.evaluate(f"{file}::/run/a", LABELS, ["segmentation"]).results
        except UqevalError as error:
            assert "bad.h5" in str(error)
            return "refused"

    endings = []
    for found in re.finditer(mark, data):
        for at in (found.start(), found.end() + 1):
            bad.write_bytes(data[:at] + bytes([data[at] ^ 0x7F]) + data[at + 1 :])
            endings.append(ending(bad))
    assert "refused" in endings
    whole = ending(path)  # damage may be where nothing is read
    assert all(own in ("refused", whole) for own in endings)


def test_bytes_beside_members_of_all_kinds(tmp_path: Path) -> None:
    """Bytes are texts if an array has an axis of their length; others may be files or logs."""
    probs = np.full((4, 3, 2, 2), 1 / 3, np.float32)
    with h5py.File(tmp_path / "p.h5", "w") as file:
        file["probs"], file["labels"] = probs, np.zeros((4, 2, 2), np.uint8)
        file["scalar"], file["no_values"] = np.bytes_(b"a"), h5py.Empty("S3")
        file["none"], file["log"] = np.zeros(0, "S3"), np.full(9, b"\xff\xfe", "S9")
        file["characters"], file["group/x"] = np.full((4, 2), b"a", "S1"), np.arange(3)
        file["type"], file["link"] = np.dtype("i4"), h5py.SoftLink("/nowhere")
        file["item"] = np.array([b"a", b"b", b"c", b"d"])
    store = open_store(tmp_path / "p.h5", role="predictions")
    assert store.items == 4
    assert [text for text in store.warnings if "link" not in text] == []


def test_missing_chunks_of_one_axis(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("probs", data=np.full((4, 3), 1 / 3))
        file.create_dataset("labels", (4,), "u1", chunks=(2,), fillvalue=3)[:2] = 1
    done = run_uqeval("failure", tmp_path / "s.h5")
    refused(done, "s.h5::/labels: 1 of 2 chunks are missing, first chunk [1] (from [2] on)")


def test_missing_chunks(tmp_path: Path) -> None:
    """They are counted, refused, and read as the fill value where that is wanted."""
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.create_dataset("probs", data=PROBS)
        values = file.create_dataset("labels", (3, 8, 12), "u1", chunks=(1, 4, 12), fillvalue=3)
        values[0], values[2, :4] = 1, 2
    done = run_uqeval("pavpu", tmp_path / "s.h5")
    refused(done, "s.h5::/labels: 3 of 6 chunks are missing, first chunk [1, 0, 0]")
    assert "--missing-chunks fill" in done.stderr
    assert "HDF5 would read them as the fill value" in " ".join(done.stderr.split())
    assert "Zarr" not in done.stderr and "write_empty_chunks" not in done.stderr
    labels = np.full_like(LABELS, 3)
    labels[0], labels[2, :4] = 1, 2
    report = uqeval.evaluate(tmp_path / "s.h5", metrics=("pavpu",), missing_chunks="fill")
    expected = uqeval.evaluate(PROBS, labels, metrics=("pavpu",)).results
    assert report.results["segmentation"] == expected["segmentation"]
    inspected = run_uqeval("inspect", tmp_path / "s.h5", "--format", "json")
    assert inspected.status == 2
    assert "HDF5 would read them" in inspected.stdout and "Zarr would" not in inspected.stdout
    arrays = json.loads(inspected.stdout)["arrays"]
    missing = {own["name"]: own["missing_chunks"] for own in arrays}
    assert missing == {"probs": 0, "labels": 3}
    np.save(tmp_path / "probs.npy", PROBS)
    arguments = ["convert", tmp_path / "probs.npy", tmp_path / "out.zarr", "--labels",
                 f"{tmp_path / 's.h5'}::/labels"]  # fmt: skip
    refused(run_uqeval(*arguments), "/labels: chunk [1, 0, 0] is not stored")
    assert not (tmp_path / "out.zarr").exists()
    run_well(*arguments, "--missing-chunks", "fill")
    converted = uqeval.evaluate(tmp_path / "out.zarr", metrics=("pavpu",))
    assert converted.results["segmentation"] == expected["segmentation"]


def test_outputs_never_go_into_the_file(tmp_path: Path) -> None:
    path = saved(tmp_path / "s.h5")
    with pytest.raises(UsageError, match=r"s\.h5"):
        refuse_overlap([path], [f"{path}::/run/a"])


def test_arrays_that_are_only_in_groups(tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as file:
        file["run/a/probs"], file["run/b/probs"], file["run/text"] = PROBS, PROBS, "x"
    says = [f"s.h5 holds no arrays itself; its groups do. Give the path of a group: {path}::/run/"]
    says.append(f"{path}::/run/a, {path}::/run/b.")
    refused(run_uqeval("inspect", path), *says)
    says[0] = "s.h5::/run holds no arrays itself"
    refused(run_uqeval("inspect", f"{path}::/run"), *says)


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    (tmp_path / "s.h5").write_bytes(b"")
    with pytest.raises(UsageError, match="pip install h5py"):
        open_store(tmp_path / "s.h5", role="predictions")
    with pytest.raises(StoreError, match="nothing here"):
        open_store(tmp_path / "t.h5", role="predictions")


def test_convert(tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as file:
        file["probs"], file["labels"] = PROBS, LABELS
        file["probs"].attrs["_FillValue"] = [np.nan]  # as xarray writes it
    with h5py.File(tmp_path / "bare.h5", "w") as file:
        file["scores"] = np.moveaxis(np.log(PROBS), 2, -1)
    convert(path, tmp_path / "s.zarr")
    for source, key in ((tmp_path / "bare.h5", "scores"), (f"{tmp_path}/bare.h5::/scores", None)):
        target = tmp_path / f"{key}.zarr"
        convert(source, target, kind="logits", axes="NTHWC", key=key)
        stored = open_store(target, role="predictions").arrays["logits"][0]
        assert np.allclose(stored.array.read((slice(None),) * 5), np.log(PROBS))
    found = open_store(tmp_path / "s.zarr", role="labels").arrays["labels"][0]
    assert np.array_equal(found.array.read((slice(None),) * 3), LABELS)
    with pytest.raises(UsageError, match="give its name with --key"):
        convert(path, tmp_path / "no.zarr", kind="logits")
