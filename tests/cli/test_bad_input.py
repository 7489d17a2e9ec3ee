"""Stores, labels and names that cannot be evaluated: a clear message, status 2, nothing written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import zarr
from command import pavpu_refused, refused, run_uqeval, run_well
from PIL import Image
from small_stores import (
    NAMES,
    C,
    H,
    N,
    T,
    W,
    labels,
    logits,
    probs,
    save,
    save_complete,
    save_label_folder,
)
from zarr.codecs import BloscCodec, ZstdCodec


def stored(
    path: Path,
    values: np.ndarray | None = None,
    planes: np.ndarray | None = None,
    **options: object,
) -> Path:
    """A store with both arrays, one of them changed by the test."""
    arrays = {"probs": probs() if values is None else values}
    arrays["labels"] = labels() if planes is None else planes
    return save(path / "bad.zarr", arrays, {"names": NAMES}, **options)


# ---- no store, or half of one


def test_there_is_nothing(tmp_path: Path) -> None:
    pavpu_refused(
        tmp_path, tmp_path / "no.zarr", says=["no.zarr: there is nothing here", "Check the path"]
    )


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    pavpu_refused(
        tmp_path, tmp_path / "empty", says=["empty is a folder with nothing in it", "expected"]
    )


def test_a_store_whose_writer_has_not_ended(tmp_path: Path) -> None:
    mark = {"format": "predictions", "version": 1, "complete": False}
    store = save_complete(tmp_path / "half.zarr", uqeval=mark)
    pavpu_refused(tmp_path, store, says=["half.zarr is unfinished", "run it again"])


def test_metadata_that_are_no_json(tmp_path: Path) -> None:
    store = save_complete(tmp_path / "s.zarr")
    (store / "probs/zarr.json").write_text('{"zarr_format": 3,')
    pavpu_refused(tmp_path, store, says=["s.zarr", "is not valid JSON"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("bad.npy", "is not a NumPy file"),
        ("notes.txt", "is a .txt file; expected a Zarr store"),
    ],
)
def test_a_file_that_is_something_else(tmp_path: Path, stores: Path, name: str, says: str) -> None:
    (tmp_path / name).write_bytes(b"hello")
    pavpu_refused(tmp_path, tmp_path / name, stores / "labels", says=[name, says])


def test_pickles_are_never_read(tmp_path: Path, stores: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([{}], dtype=object), allow_pickle=True)
    pavpu_refused(
        tmp_path, tmp_path / "p.npy", stores / "labels", says=["p.npy", "pickled objects"]
    )


# ---- chunks


def test_a_chunk_that_is_missing(tmp_path: Path) -> None:
    store = stored(tmp_path)
    (store / "probs/c/1/0/0/0/0").unlink()
    pavpu_refused(
        tmp_path, store, "--limit", "1",
        says=["bad.zarr/probs: 1 of 3 chunks are missing", "[1, 0, 0, 0, 0]", "--missing-chunks"],
    )  # fmt: skip


def test_label_chunks_that_zarr_left_out(tmp_path: Path) -> None:
    store = stored(tmp_path, planes=labels() * 0, config={"write_empty_chunks": False})
    pavpu_refused(
        tmp_path, store,
        says=["bad.zarr/labels: 3 of 3 chunks are missing", "write_empty_chunks=True"],
    )  # fmt: skip


def test_an_inner_chunk_of_a_shard_that_is_missing(tmp_path: Path) -> None:
    store = save(tmp_path / "bad.zarr", {"labels": labels()}, {"names": NAMES})
    shape = (N, T, C, H, W)
    array = zarr.open_group(str(store), mode="a").create_array(
        "probs", shape=shape, dtype="f4", shards=(1, T, C, H, W), chunks=(1, 1, C, H, W),
        config={"write_empty_chunks": False},
    )  # fmt: skip
    values = probs()
    values[1, 2] = 0
    array[...] = values
    pavpu_refused(
        tmp_path, store,
        says=["bad.zarr/probs: 1 of 12 chunks are missing, first chunk [1, 2, 0, 0, 0]"],
    )  # fmt: skip


def test_a_shard_that_is_cut(tmp_path: Path) -> None:
    store = save(tmp_path / "bad.zarr", {"labels": labels()}, {"names": NAMES})
    array = zarr.open_group(str(store), mode="a").create_array(
        "probs", shape=(N, T, C, H, W), dtype="f4", shards=(1, T, C, H, W), chunks=(1, 1, C, H, W)
    )
    array[...] = probs()
    shard = store / "probs/c/2/0/0/0/0"
    shard.write_bytes(shard.read_bytes()[:-100])
    pavpu_refused(
        tmp_path, store, says=["bad.zarr/probs: shard c/2/0/0/0/0 is damaged", "Copy it again"]
    )


@pytest.mark.parametrize("left", [0, 100])
def test_a_blosc_chunk_that_is_cut(tmp_path: Path, left: int) -> None:
    store = stored(tmp_path, compressors=[BloscCodec(cname="lz4")])
    chunk = store / "probs/c/1/0/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:left])
    pavpu_refused(tmp_path, store, says=["bad.zarr/probs: chunk c/1/0/0/0/0 is damaged: cut short"])


def test_a_chunk_whose_bits_have_changed(tmp_path: Path) -> None:
    store = stored(tmp_path, compressors=[ZstdCodec()])
    chunk = store / "probs/c/1/0/0/0/0"
    data = bytearray(chunk.read_bytes())
    data[40:60] = bytes(20)
    chunk.write_bytes(data)
    pavpu_refused(tmp_path, store, says=["bad.zarr/probs: chunk c/1/0/0/0/0 is damaged", "zstd"])


def test_an_uncompressed_chunk_that_is_cut(tmp_path: Path) -> None:
    store = stored(tmp_path, compressors=None)
    chunk = store / "labels/c/2/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    pavpu_refused(tmp_path, store, says=["bad.zarr/labels: chunk c/2/0/0 is damaged", "767"])


# ---- shapes


def test_wrong_rank(tmp_path: Path) -> None:
    store = save(tmp_path / "bad.zarr", {"probs": probs()[0, 0], "labels": labels()})
    pavpu_refused(tmp_path, store, says=["bad.zarr: 'labels' has 3 items and 'probs' has 5"])


def test_wrong_order_of_axes(tmp_path: Path) -> None:
    store = stored(tmp_path, probs().transpose(0, 1, 3, 4, 2))
    for number, window in enumerate(("4", "8")):  # one that fits into the 5 classes, and one not
        folder = tmp_path / str(number)
        folder.mkdir()
        pavpu_refused(
            folder, store, "--window", window,
            says=["bad.zarr/labels", "labels are 24×32", "predictions are 32×5", "class axis of",
                  "dimension_names"],
        )  # fmt: skip


def test_samples_and_classes_swapped(tmp_path: Path) -> None:
    store = stored(tmp_path, probs().transpose(0, 2, 1, 3, 4), labels() % 4)
    pavpu_refused(
        tmp_path, store, says=["bad.zarr/probs, item aachen", "sum to 1", "Check the order of axes"]
    )


def test_axes_that_nobody_knows(tmp_path: Path) -> None:
    store = save(
        tmp_path / "bad.zarr", {"probs": probs()}, dimension_names=["n", "c", "t", "u", "v"]
    )
    pavpu_refused(
        tmp_path, store, says=["bad.zarr/probs: dimension_names are ['n', 'c', 't', 'u', 'v']"]
    )


def test_fewer_classes_than_the_labels_have(tmp_path: Path) -> None:
    four = probs()[:, :, :4]
    store = stored(tmp_path, four / four.sum(axis=2, keepdims=True))
    pavpu_refused(
        tmp_path, store,
        says=["bad.zarr/labels, item aachen", "outside the 4 classes 0 … 3", "--ignore-index"],
    )  # fmt: skip


def test_another_size_of_labels(tmp_path: Path, stores: Path) -> None:
    store = stored(tmp_path, planes=labels()[:, :20])
    pavpu_refused(tmp_path, store, says=["bad.zarr/labels, item aachen: labels are 20×32", "24×32"])
    again = tmp_path / "png"
    planes = [*labels()[:2], labels()[2, :, :30]]
    folder = save_label_folder(again / "labels", planes)
    pavpu_refused(
        again, stores / "preds.zarr", folder, says=["celle.png, item celle: labels are 24×30"]
    )


def test_height_and_width_swapped(tmp_path: Path) -> None:
    store = stored(tmp_path, planes=labels().transpose(0, 2, 1))
    told = pavpu_refused(
        tmp_path, store,
        says=["labels are 32×24", "predictions are 24×32", "look swapped", "dimension_names",
              "transpose it"],
    )  # fmt: skip
    assert "Resize" not in told


def test_another_number_of_labels(tmp_path: Path, stores: Path) -> None:
    store = stored(tmp_path, planes=labels()[:2])
    pavpu_refused(tmp_path, store, says=["bad.zarr: 'labels' has 2 items and 'probs' has 3"])
    again = tmp_path / "npy"
    again.mkdir()
    np.save(again / "two.npy", labels()[:2])
    pavpu_refused(
        again, stores / "preds.zarr", again / "two.npy", says=["two.npy holds 2 labels", "3 items"]
    )


# ---- names


def test_items_without_names_and_label_files(tmp_path: Path, stores: Path) -> None:
    pavpu_refused(
        tmp_path, stores / "anonymous.zarr", stores / "labels",
        says=["labels: label files are matched", "anonymous.zarr gives its 3 items no names",
              "--names FILE"],
    )  # fmt: skip


def test_names_without_label_files(tmp_path: Path, stores: Path) -> None:
    folder = save_label_folder(tmp_path / "labels", labels()[:1], ["bonn"])
    pavpu_refused(
        tmp_path, stores / "preds.zarr", folder,
        says=["labels: 2 of 3 items have no label: aachen, celle", "look like bonn.png"],
    )  # fmt: skip


def test_a_label_store_that_lacks_an_item(tmp_path: Path, stores: Path) -> None:
    other = save(tmp_path / "l.zarr", {"labels": labels()}, {"names": ["aachen", "x", "celle"]})
    pavpu_refused(
        tmp_path, stores / "preds.zarr", other,
        says=["l.zarr: 1 of 3 items of", "preds.zarr have no label: bonn"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a\nb\n", "2 names for 3 items"),
        ("a\na\nb\n", "appears more than once: a"),
        ('{"a": 1}', "must be a list of texts"),
        (b"\xff\xfe\x00a", "is not text in UTF-8"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_names_file_that_does_not_fit(
    tmp_path: Path, stores: Path, text: str | bytes | None, says: str
) -> None:
    file = tmp_path / "names.txt"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    pavpu_refused(
        tmp_path,
        stores / "anonymous.zarr",
        stores / "labels.zarr",
        "--names",
        file,
        says=["names", says],
    )


def test_names_of_the_store_that_cannot_be(tmp_path: Path) -> None:
    store = save_complete(tmp_path / "bad.zarr", names=["a", "a", "b"])
    says = ["bad.zarr: attribute names: an item name appears more than once: a"]
    pavpu_refused(tmp_path, store, says=says)


def test_class_names_that_cannot_be(tmp_path: Path) -> None:
    store = save_complete(tmp_path / "bad.zarr", class_names=["road", "car"])
    pavpu_refused(tmp_path, store, says=["bad.zarr: 2 class_names for 5 classes"])


# ---- label values


def test_labels_that_are_numbered_from_1(tmp_path: Path) -> None:
    planes = labels()
    planes[planes != 255] += 1
    store = stored(tmp_path, planes=planes)
    told = pavpu_refused(tmp_path, store, says=["numbered from 1 to 5", "start at 0: subtract 1"])
    assert "--ignore-index" not in told
    planes[0, :3] = 0
    advice = "np.where(labels == 0, 255, labels - 1)", "5 is void, give --ignore-index 5"
    (tmp_path / "void").mkdir()
    said = run_uqeval("pavpu", stored(tmp_path / "void", planes=planes))
    refused(said, "ids run from 1 to 5 and 0 is void", *advice)


@pytest.mark.parametrize("value", [65536 + 1, 2**32 + 1, -1])
def test_labels_never_wrap_around(tmp_path: Path, value: int) -> None:
    planes = labels().astype("i8")
    planes[1, 10, 11] = value
    store = stored(tmp_path, planes=planes)
    pavpu_refused(
        tmp_path, store,
        says=["bad.zarr/labels, item bonn: 1 of 768 pixels have labels outside the 5 classes",
              f"{value} (first at row 10, column 11)", "ignore_index 255"],
    )  # fmt: skip


def test_a_label_that_is_no_class(tmp_path: Path, stores: Path) -> None:
    planes = labels()
    planes[2, 5, 6] = 5
    folder = save_label_folder(tmp_path / "labels", planes)
    pavpu_refused(
        tmp_path, stores / "preds.zarr", folder,
        says=["celle.png, item celle: 1 of 768 pixels", "0 … 4", "5 (first at row 5, column 6)"],
    )  # fmt: skip


def test_void_that_is_not_named_as_such(tmp_path: Path, complete: Path) -> None:
    pavpu_refused(
        tmp_path, complete, "--ignore-index", "254", says=["other than ignore_index 254: 255"]
    )


@pytest.mark.parametrize("options", [(), ("--threshold-scope", "item")])
def test_a_set_that_is_all_void(tmp_path: Path, options: tuple[str, ...]) -> None:
    store = stored(tmp_path, planes=np.full((N, H, W), 255, "u1"))
    pavpu_refused(
        tmp_path, store, *options,
        says=["bad.zarr: nothing is left to evaluate", "3 items are ignore_index 255 (void)"],
    )  # fmt: skip


def test_label_files_that_are_no_ids(tmp_path: Path, stores: Path) -> None:
    folder = save_label_folder(tmp_path / "labels")
    Image.fromarray(np.zeros((H, W, 3), np.uint8)).save(folder / "bonn.png")
    pavpu_refused(
        tmp_path, stores / "preds.zarr", folder, says=["bonn.png is RGB", "grey", "palette"]
    )
    again = tmp_path / "cut"
    folder = save_label_folder(again / "labels")
    file = folder / "celle.png"
    file.write_bytes(file.read_bytes()[:-30])
    pavpu_refused(again, stores / "preds.zarr", folder, says=["celle.png is damaged or cut short"])


def test_labels_of_another_kind(tmp_path: Path, stores: Path) -> None:
    store = stored(tmp_path, planes=labels().astype("f4"))
    pavpu_refused(
        tmp_path, store, says=["bad.zarr/labels holds float32, expected class ids as integers"]
    )
    again = tmp_path / "map"
    again.mkdir()
    pavpu_refused(
        again, stores / "preds.zarr", stores / "labels.zarr", "--label-map", "cityscapes",
        says=["--label-map cityscapes", "labels.zarr"],
    )  # fmt: skip


# ---- probabilities


@pytest.mark.parametrize(
    ("value", "kind"),
    [(np.nan, "NaN"), (np.inf, "infinite"), (-0.5, "negative")],
)
def test_what_is_no_probability(tmp_path: Path, value: float, kind: str) -> None:
    values = probs(dtype="f2")
    values[1, 2, 3, 4, 5] = value
    values[1, 2, 0, 4, 5] += 0.5 if value == -0.5 else 0.0
    store = stored(tmp_path, values)
    pavpu_refused(
        tmp_path, store,
        says=["bad.zarr/probs, item bonn: 1 of 15360 probabilities", f"are {kind}, first in",
              "sample 2, class 3, row 4, column 5"],
    )  # fmt: skip


def test_a_negative_value_that_the_sum_does_not_show(tmp_path: Path) -> None:
    values = probs()
    values[0, 1, :, 7, 8] = [-0.25, 0.5, 0.25, 0.5, 0.0]
    pavpu_refused(
        tmp_path, stored(tmp_path, values), says=["item aachen", "are negative", "row 7, column 8"]
    )


@pytest.mark.parametrize("chunks", [(1, 1, 1, H, W), (2, 2, 2, 8, 16)])
def test_sums_that_are_not_1(tmp_path: Path, chunks: tuple[int, ...]) -> None:
    values = probs()
    values[1, 2, :, 9, 20] *= 0.99
    store = save(tmp_path / "labels.zarr", {"labels": labels()})
    group = zarr.create_group(str(tmp_path / "bad.zarr"), attributes={"names": NAMES})
    group.create_array("probs", shape=values.shape, dtype="f4", chunks=chunks)[...] = values
    pavpu_refused(
        tmp_path, tmp_path / "bad.zarr", store,
        says=["bad.zarr/probs, item bonn: the class probabilities of 1 of", "do not sum to 1",
              "first sum is 0.99, in sample 2, row 9, column 20 (tolerance 0.0001)"],
    )  # fmt: skip


def test_logits_that_are_called_probs(tmp_path: Path) -> None:
    store = stored(tmp_path, abs(logits()))
    pavpu_refused(
        tmp_path, store, says=["bad.zarr/probs", "do not sum to 1", "call the array `logits`"]
    )


def test_logits_that_are_no_numbers(tmp_path: Path, stores: Path) -> None:
    values = logits()
    values[2, 0, 0, 0, 0] = np.nan
    store = save(tmp_path / "bad.zarr", {"logits": values}, {"names": NAMES})
    pavpu_refused(
        tmp_path, store, stores / "labels",
        says=["bad.zarr/logits, item celle: 1 of 15360 logits", "NaN or infinite"],
    )  # fmt: skip


def test_integers_without_a_scale(tmp_path: Path) -> None:
    store = stored(tmp_path, (probs() * 255).round().astype("u1"))
    pavpu_refused(
        tmp_path, store, says=["bad.zarr/probs: uint8 probs with scale None", "0.00392157"]
    )


# ---- maps stores


def maps_store(path: Path, **changes: np.ndarray) -> Path:
    arrays = {"predictions": labels() % C, "energy": abs(logits()[:, 0, 0]), "labels": labels()}
    return save(path / "maps.zarr", arrays | changes, {"uqeval": {"classes": C}})


def test_maps_that_are_not_there(tmp_path: Path) -> None:
    store = maps_store(tmp_path)
    message = pavpu_refused(
        tmp_path, store, says=["maps.zarr has no map 'entropy'", "energy, predictions"]
    )
    assert "uqeval reduce" in message


def test_the_suggested_commands_can_be_pasted(tmp_path: Path) -> None:
    """With the options without which the store cannot be read."""
    names = tmp_path / "items of b.txt"
    names.write_text("\n".join(NAMES))
    arrays = {"predictions": labels() % C}
    save(tmp_path / "ids.zarr", arrays)
    save(tmp_path / "maps.zarr", arrays | {"energy": abs(logits()[:, 0, 0])})
    save_label_folder(tmp_path / "labels")
    options = ["--names", names.name, "--classes", str(C)]
    for store, marks in (("ids.zarr", ("(uqeval ", ") and")), ("maps.zarr", ("`: uqeval ", "\n"))):
        done = run_uqeval("calibration", store, "labels", *options, cwd=tmp_path)
        message = refused(done, "--names 'items of b.txt'", f"--classes {C}")
        words = shlex.split(f"{message}\n".split(marks[0])[1].split(marks[1])[0])
        run_well(*words, cwd=tmp_path)


def test_top_k_of_a_maps_store(tmp_path: Path) -> None:
    pavpu_refused(
        tmp_path, maps_store(tmp_path), "--uncertainty", "energy", "--top-k", "2",
        says=["maps.zarr: --top-k needs `mean_probs` or `label_rank`"],
    )  # fmt: skip


def test_maps_with_values_that_cannot_be(tmp_path: Path) -> None:
    energy = abs(logits()[:, 0, 0])
    energy[1, 2, 3] = np.nan
    store = maps_store(tmp_path, energy=energy)
    pavpu_refused(
        tmp_path, store, "--uncertainty", "energy",
        says=["maps.zarr/energy, item 1: 1 of 768 values are NaN", "row 2, column 3"],
    )  # fmt: skip
    again = tmp_path / "ids"
    again.mkdir()
    pavpu_refused(
        again, maps_store(again, predictions=labels()), "--uncertainty", "energy",
        says=["maps.zarr/predictions, item 0: predicted ids run from 0 to 255; expected 0 … 4"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "fault", "advice"),
    [
        (2.0, "above 1.0078, which rounding cannot explain", "Write the map again"),
        (1.01, "above 1.0078, which rounding cannot explain", "Write the map again"),
        (-0.25, "negative or above 2, so they are not probabilities", "Write the map again"),
        (-1e-6, "negative or above 2, so they are not probabilities", "clip(confidence, 0, 1)"),
    ],
)
def test_maps_of_probabilities_outside_0_and_1(
    tmp_path: Path, value: float, fault: str, advice: str
) -> None:
    confidence = np.full(labels().shape, 0.5, np.float32)
    confidence[1, 2, 3] = value
    store = maps_store(tmp_path, confidence=confidence)
    outcome = run_uqeval("pavpu", store, "--uncertainty", "confidence")
    refused(
        outcome, "maps.zarr/confidence, item 1: 1 of 768 values of the map confidence are",
        f"{fault}: the first is {value:g} at row 2, column 3", advice,
    )  # fmt: skip


def test_maps_of_probabilities_may_exceed_1_by_rounding(tmp_path: Path) -> None:
    confidence = np.full(labels().shape, 1 + 2.0**-7, np.float32)
    run_well("pavpu", maps_store(tmp_path, confidence=confidence), "--uncertainty", "confidence")


def test_ids_without_a_number_of_classes(tmp_path: Path) -> None:
    store = maps_store(tmp_path)
    document = json.loads((store / "zarr.json").read_text())
    document["attributes"] = {}
    (store / "zarr.json").write_text(json.dumps(document))
    pavpu_refused(tmp_path, store, "--uncertainty", "energy", says=["Give --classes N, or store"])


def test_samples_that_are_not_there(tmp_path: Path) -> None:
    for name in ("mutual_information", "std"):
        folder = tmp_path / name
        store = stored(folder, probs()[:, :1])
        pavpu_refused(
            folder, store, "--uncertainty", name,
            says=["bad.zarr holds one sample", f"{name} is undefined"],
        )  # fmt: skip


# ---- ensembles


def test_members_that_do_not_belong_together(tmp_path: Path, stores: Path) -> None:
    predictions, planes = stores / "preds.zarr", stores / "labels"
    few = save(tmp_path / "few.zarr", {"probs": probs()[:2]})
    pavpu_refused(
        tmp_path, predictions, few, planes, says=["few.zarr holds 2 items", "preds.zarr holds 3"]
    )
    others = {
        "named": save(tmp_path / "o.zarr", {"probs": probs()}, {"names": ["aachen", "x", "celle"]}),
        "kind": save(tmp_path / "k.zarr", {"logits": logits()}),
    }
    says = {
        "named": ["name their items differently, first item 1: ('x',) and ('bonn',)"],
        "kind": ["members of one ensemble must have the same kind", "probs", "k.zarr: logits"],
    }
    for name, other in others.items():
        (tmp_path / name).mkdir()
        pavpu_refused(tmp_path / name, predictions, other, planes, says=says[name])
