"""Folders of label PNGs: matched with items by name, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from png_files import ALL, IDS, save

from uqeval.errors import DataError, StoreError
from uqeval.stores.array import Store
from uqeval.stores.files.label_folder import open_label_folder, open_sparse_labels
from uqeval.stores.store import open_store


def read(store: Store) -> list[list[Any]]:
    assert all(part.index is None for part in store.arrays["labels"])
    return [part.array.read(ALL).tolist() for part in store.arrays["labels"]]


def files(store: Store) -> list[str]:
    return [part.array.where for part in store.arrays["labels"]]


def test_order_is_that_of_the_items(tmp_path: Path) -> None:
    for index, name in enumerate("abc"):
        save(tmp_path / f"{name}.png", IDS + index)
    store = open_label_folder(tmp_path, ["c", "a", "b"])
    assert store.names == ("c", "a", "b")
    assert read(store) == [(IDS + 2).tolist(), IDS.tolist(), (IDS + 1).tolist()]
    assert store.warnings == ()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("a.jpg", "a.png"),
        ("a.png", "a.png"),
        ("images/val/a.jpg", "a.png"),
        ("a", "deep/down/a.PNG"),
        ("scene.01", "scene.01.png"),
        ("scene.01.tif", "scene.01.png"),
        ("v1.5", "v1.5.png"),
        ("frankfurt_0_leftImg8bit.png", "frankfurt/frankfurt_0_gtFine_labelTrainIds.png"),
        ("frankfurt_0", "frankfurt/frankfurt_0_gtFine_labelTrainIds.png"),
        ("val/frankfurt/frankfurt_0_leftImg8bit", "frankfurt_0_gtCoarse_labelTrainIds.png"),
    ],
)
def test_names_and_files_that_match(tmp_path: Path, name: str, file: str) -> None:
    save(tmp_path / file)
    assert files(open_label_folder(tmp_path, [name])) == [str(tmp_path / file)]


def test_folders_tell_files_of_one_stem_apart(tmp_path: Path) -> None:
    save(tmp_path / "day/1.png", IDS)
    save(tmp_path / "night/1.png", IDS + 1)
    for names in (["night/1", "day/1.jpg"], ["img/night/1.png", "img/day/1.png"]):
        store = open_label_folder(tmp_path, names)
        assert read(store) == [(IDS + 1).tolist(), IDS.tolist()]
    with pytest.raises(StoreError, match=r"'1' .*day/1\.png or night/1\.png"):
        open_label_folder(tmp_path, ["1"])


def test_one_file_is_not_two_labels(tmp_path: Path) -> None:
    save(tmp_path / "1.png")
    with pytest.raises(StoreError, match=r"'day/1' and 'night/1' both match 1\.png"):
        open_label_folder(tmp_path, ["day/1", "night/1"])


def test_missing_labels_are_an_error(tmp_path: Path) -> None:
    save(tmp_path / "img_0.png")
    names = [f"img_{i}" for i in range(8)]
    with pytest.raises(StoreError) as caught:
        open_label_folder(tmp_path, names)
    message = str(caught.value)
    assert "7 of 8 items have no label: img_1, img_2, img_3, img_4, img_5 and 2 more" in message
    assert "img_6" not in message
    assert "look like img_0.png" in message and "--names FILE can rename" in message


def test_another_file_next_to_the_images(tmp_path: Path) -> None:
    save(tmp_path / "img_0.png")
    np.save(tmp_path / "notes.npy", np.zeros((4, 5), "u1"))
    refused(
        lambda: open_store(tmp_path, role="labels", names=["img_0"]), "1 of 1 items have no label",
        "PNG files are not read where a folder also has .npy files",
    )  # fmt: skip


def test_unused_labels_are_a_warning(tmp_path: Path) -> None:
    for name in "abc":
        save(tmp_path / f"{name}.png")
    (warning,) = open_label_folder(tmp_path, ["b"]).warnings
    assert "2 label files belong to no item: a.png, c.png" in warning


def test_without_names(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    with pytest.raises(StoreError, match="--names FILE"):
        open_label_folder(tmp_path, None)


def test_names_twice(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    with pytest.raises(StoreError, match="appears more than once: a"):
        open_label_folder(tmp_path, ["a", "a"])


@pytest.mark.parametrize("name", ["../secret", "/etc/../secret", "..", "a/../../secret"])
def test_names_never_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    save(tmp_path / "secret.png")
    save(tmp_path / "labels/a.png")
    with pytest.raises(StoreError, match="no label"):
        open_label_folder(tmp_path / "labels", [name])


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    save(tmp_path / "disk/a.png")
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels/linked").symlink_to(tmp_path / "disk")
    (tmp_path / "labels/b.png").symlink_to(tmp_path / "disk/a.png")
    (tmp_path / "disk/loop").symlink_to(tmp_path / "labels")
    assert len(files(open_label_folder(tmp_path / "labels", ["a", "b"]))) == 2


def test_hidden_files_are_left_out(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    (tmp_path / "._a.png").write_bytes(b"what macOS leaves behind")
    save(tmp_path / ".cache/a.png")
    assert open_label_folder(tmp_path, ["a"]).warnings == ()


def test_the_first_bad_file_is_found_at_once(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    save(tmp_path / "b.png", mode="RGB")
    with pytest.raises(StoreError, match=r"b\.png is RGB"):
        open_label_folder(tmp_path, ["a", "b"])


def cityscapes(root: Path, *kinds: str) -> Path:
    for number in range(2):
        for kind in kinds:
            mode = "RGBA" if kind == "color" else None
            ids = np.array([[7, 0], [33, 26]] if kind == "labelIds" else [[0, 255], [18, 13]], "u1")
            save(root / f"frankfurt/frankfurt_{number}_gtFine_{kind}.png", ids, mode)
    return root


NAMES = ["frankfurt_0_leftImg8bit", "frankfurt_1_leftImg8bit"]
EVERY = ("labelIds", "labelTrainIds", "color", "instanceIds")


def test_train_ids_stand_before_ids(tmp_path: Path) -> None:
    store = open_label_folder(cityscapes(tmp_path, *EVERY), NAMES)
    assert all("labelTrainIds" in file for file in files(store))
    assert store.warnings == ()


@pytest.mark.parametrize("label_map", [None, "cityscapes"])
def test_camera_images_beside_the_labels_are_no_labels(
    tmp_path: Path, label_map: str | None
) -> None:
    folder = cityscapes(tmp_path, *EVERY)
    expected = files(open_label_folder(folder, NAMES, label_map=label_map))
    for name in NAMES:
        save(folder / f"images/{name}.png", np.zeros((2, 2), np.uint8))
    store = open_label_folder(folder, NAMES, label_map=label_map)
    assert files(store) == expected and store.warnings == ()
    store = open_label_folder(folder / "images", NAMES)  # ids may have the names of the images
    assert all("leftImg8bit" in file for file in files(store))


def test_the_map_reads_ids(tmp_path: Path) -> None:
    store = open_label_folder(cityscapes(tmp_path, *EVERY), NAMES, label_map="cityscapes")
    assert all("labelIds" in file for file in files(store))
    assert read(store)[0] == [[0, 255], [18, 13]]
    assert store.arrays["labels"][0].array.read(ALL).dtype == np.uint8
    assert store.warnings == ()


def test_the_map_is_the_published_one(tmp_path: Path) -> None:
    save(tmp_path / "a.png", np.arange(34, dtype=np.uint8)[None])
    (ids,) = read(open_label_folder(tmp_path, ["a"], label_map="cityscapes"))
    kept = [i for i, train in enumerate(ids[0]) if train != 255]
    assert kept == [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
    assert [ids[0][i] for i in kept] == list(range(19))


def test_ids_without_a_map_are_warned_of(tmp_path: Path) -> None:
    store = open_label_folder(cityscapes(tmp_path, "labelIds", "color"), NAMES)
    assert read(store)[0] == [[7, 0], [33, 26]]
    assert any("--label-map cityscapes" in warning for warning in store.warnings)


def test_train_ids_are_never_mapped(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="only labelTrainIds"):
        open_label_folder(cityscapes(tmp_path, "labelTrainIds"), NAMES, label_map="cityscapes")
    save(tmp_path / "plain/a.png", np.array([[0, 255]], np.uint8))
    with_map = open_label_folder(tmp_path / "plain", ["a"], label_map="cityscapes")
    with pytest.raises(DataError, match=r"a\.png: 1 pixels .* first is 255"):
        read(with_map)


def test_ids_of_16_bits_through_the_map(tmp_path: Path) -> None:
    save(tmp_path / "a.png", np.array([[7, 300]], np.uint16))
    store = open_label_folder(tmp_path, ["a"], label_map="cityscapes")
    with pytest.raises(DataError, match="first is 300"):
        read(store)


def test_a_map_that_nobody_knows(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    with pytest.raises(StoreError, match="'kitti' is not known"):
        open_label_folder(tmp_path, ["a"], label_map="kitti")


def test_fingerprint_knows_the_map(tmp_path: Path) -> None:
    save(tmp_path / "a.png")
    prints = {
        open_label_folder(tmp_path, ["a"], label_map=label_map)
        .arrays["labels"][0]
        .array.fingerprint()
        for label_map in (None, "cityscapes")
    }
    assert len(prints) == 2


def test_nothing_is_opened_for_good(tmp_path: Path) -> None:
    for number in range(40):
        save(tmp_path / f"{number}.png")
    before = len(list(Path("/proc/self/fd").iterdir()))
    store = open_label_folder(tmp_path, [str(number) for number in range(40)])
    read(store)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_predictions_of_frames(tmp_path: Path) -> None:
    save(tmp_path / "v_1.png", IDS, "P")
    save(tmp_path / "v_2.png", IDS.astype(np.uint16) + 300)
    store = open_label_folder(tmp_path, ["v_2", "v_1"], kind="predictions")
    assert list(store.arrays) == ["predictions"]
    found = [part.array.read(ALL) for part in store.arrays["predictions"]]
    assert [a.dtype for a in found] == [np.uint16, np.uint8]
    assert found[0].tolist() == (IDS + 300.0).tolist() and found[1].tolist() == IDS.tolist()
    # --names cannot rename files.
    with pytest.raises(StoreError, match=r"have no prediction: v_3 .*rename them as the items\.$"):
        open_label_folder(tmp_path, ["v_2", "v_3"], kind="predictions")
    with pytest.raises(StoreError, match=r"prediction files .* the frames have no names"):
        open_label_folder(tmp_path, None, kind="predictions")
    (warning,) = open_label_folder(tmp_path, ["v_2"], kind="predictions").warnings
    assert "1 prediction file belongs to no item: v_1.png" in warning


def test_labels_of_some_frames(tmp_path: Path) -> None:
    save(tmp_path / "v_2.png", IDS)
    save(tmp_path / "w_2.png", IDS)
    parts, (warning,) = open_sparse_labels(tmp_path, ["v_1", "v_2", "v_3"])
    assert [part is not None for part in parts] == [False, True, False]
    assert parts[1] and parts[1].array.read(ALL).tolist() == IDS.tolist()
    assert "1 label file belongs to no item: w_2.png" in warning
    with pytest.raises(
        StoreError,
        match=r"none of the 2 items has its label: .*v_1, v_3.*v_2\.png.* as the items\.$",
    ):
        open_sparse_labels(tmp_path, ["v_1", "v_3"])
    with pytest.raises(StoreError, match="no names"):
        open_sparse_labels(tmp_path, None)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no such files are there"):
        open_sparse_labels(tmp_path / "empty", ["v_1"])
    save(tmp_path / "rgb/v_1.png", np.zeros((2, 3, 3), np.uint8))
    with pytest.raises(StoreError, match="RGB"):
        open_sparse_labels(tmp_path / "rgb", ["v_1"])


def test_sparse_labels_with_a_label_map(tmp_path: Path) -> None:
    save(tmp_path / "x_2_gtFine_labelIds.png", IDS + 7)
    (first, second), _ = open_sparse_labels(
        tmp_path, ["x_1_leftImg8bit", "x_2_leftImg8bit"], label_map="cityscapes"
    )
    assert first is None and second is not None
    assert second.array.read(ALL)[0, 0] == 0
