"""Names of items and files: which belong together, and which never do."""

from __future__ import annotations

import random
import re
import time
import unicodedata
from collections.abc import Sequence

import pytest

from uqeval.errors import StoreError
from uqeval.stores.item_files import Files
from uqeval.stores.item_folders import Folders
from uqeval.stores.matching import match_files, match_some, warnings_of_match


def matched(
    names: Sequence[str], files: Sequence[str], cases: dict[str, str] | None = None
) -> list[str]:
    found = match_files("labels", files, names, "label", cases=cases)
    return [found[name] for name in names]


#: Data sets: names of items, their files, and whether a warning appears that they may be of other
#: sequences. For `{a,b}`, there is a name for each.
LAYOUTS = {
    "Cityscapes": (
        "leftImg8bit/val/{frankfurt/f_1,lindau/l_1}_leftImg8bit",
        "gtFine/val/{frankfurt/f_1,lindau/l_1}_gtFine_labelTrainIds.png",
        False,
    ),
    "Cityscapes, one city": (
        "leftImg8bit/val/frankfurt/f_{1,2}_leftImg8bit",
        "gtFine/val/frankfurt/f_{1,2}_gtFine_labelTrainIds.png",
        False,
    ),
    "Cityscapes, without city": ("val/{f_1,l_1}", "gtFine/val/{f/f_1,l/l_1}.png", False),
    "CamVid": ("test/0001TP_{00,01}", "testannot/0001TP_{00,01}.png", True),
    "BDD100K": ("images/10k/val/{7d,8e}", "labels/sem_seg/masks/val/{7d,8e}.png", False),
    "ADE20K": ("images/validation/ADE_{1,2}", "annotations/validation/ADE_{1,2}.png", False),
    "VOC": ("JPEGImages/2007_{1,2}", "SegmentationClass/2007_{1,2}.png", False),
    "nnU-Net": ("imagesTs/la_{1,2}", "labelsTs/la_{1,2}.png", False),
    "COCO": ("{train,val}2017/{9,139}", "stuff_{train,val}2017/{9,139}.png", True),
    "COCO, one set": ("val2017/{9,139}", "stuff_val2017/{9,139}.png", True),
    "YOLO": ("{train,val}/images/{x,y}", "{train,val}/labels/{x,y}.png", False),
    "YOLO, numbers": ("{train,val}/images/1", "{train,val}/labels/1.png", False),
    "sets": ("{train,val}_images/{x,y}", "{train,val}_labels/{x,y}.png", True),
    "cities": ("{aachen,bonn}/images/{a_1,b_1}", "{aachen,bonn}/labels/{a_1,b_1}.png", False),
    "sequences": ("seq{1,2}/images/0001", "seq{1,2}/labels/0001.png", False),
    "one sequence": ("seq1/images/{1,2}", "seq1/labels/{1,2}.png", False),
    "KITTI semantics": ("image_2/{0,1}_10", "semantic/{0,1}_10.png", False),
    "KITTI depth": (
        "drive_000{2,3}/image_02/{5,5}",
        "drive_000{2,3}/proj_depth/groundtruth/image_02/{5,5}.png",
        False,
    ),
    "KITTI depth, one drive": (
        "drive_2/image_02/{5,6}",
        "drive_2/proj_depth/groundtruth/image_02/{5,6}.png",
        False,
    ),
    "KITTI raw": (
        "2011_09_26/drive_000{2,3}/image_02/data/5",
        "val/drive_000{2,3}/proj_depth/groundtruth/image_02/5.png",
        True,
    ),
    "patients and visits": ("{1/1,1/2,2/1}/rgb/0", "{1/1,1/2,2/1}/seg/0.png", False),
    "cameras": ("images/s1/{left,right}/1", "labels/s1/{left,right}/1.png", False),
    # Another spelling, or one that nothing can tell from another one of the same data.
    "Unicode": (
        unicodedata.normalize("NFC", "zürich/ü{1,2}"),
        unicodedata.normalize("NFD", "zürich/ü{1,2}.png"),
        False,
    ),
    "Windows": ("images\\val\\{1,2}.jpg", "labels/val/{1,2}.png", False),
    "archives": ("{train/train,test/test}/x", "gt/{train,test}/x.png", False),
    "cases in cases": ("{case1/case1,case2/case2}/3", "gt/{case1,case2}/3.png", False),
    "data sets of other depths": (
        "{camvid,kitti/images,kitti/images}/{x,y,z}",
        "{camvid,kitti/labels,kitti/labels}/{x,y,z}.png",
        False,
    ),
    "other sequence": ("seq2/cam0/000{1,2}", "seq1/cam0/000{1,2}.png", True),
    "other sequence of cameras": ("s2/{left,right}/1", "s1/{left,right}/1.png", True),
    "other sequence, the number of its camera": ("00/00/5", "02/00/5.png", True),
    "other drive": ("drive_0002_sync/image_02/5", "drive_0013_sync/image_02/5.png", True),
    "other patient and visit": ("1/2/0", "2/1/0.png", True),
    "other sequence of images": ("seq2/images/1", "seq1/labels/1.png", True),
    "other camera": ("d/image_02/1", "d/proj_depth/groundtruth/image_03/1.png", True),
}


def several(pattern: str) -> list[str]:
    """Return a name for each alternative of `{a,b}`."""
    alternatives = [part.split(",") for part in re.findall(r"{(.*?)}", pattern)]
    plain = re.sub(r"{.*?}", "{}", pattern)
    names = [plain.format(*parts) for parts in zip(*alternatives, strict=True)]
    return names or [pattern]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_data_sets(layout: str) -> None:
    item, file, is_doubtful = LAYOUTS[layout]
    names, files = several(item), several(file)
    assert matched(names, files) == files
    assert matched(names[::-1], files) == files[::-1]
    found = match_files("labels", files, names, "label")
    warnings = warnings_of_match("labels", files, found, "label")
    assert ["in folders of different names" in text for text in warnings] == [True] * is_doubtful


@pytest.mark.parametrize("layout", [key for key, row in LAYOUTS.items() if not row[2]])
def test_items_do_not_need_others(layout: str) -> None:
    """Each item has the same file alone, among the files of all, as with all others."""
    names, files = map(several, LAYOUTS[layout][:2])
    for name, file in zip(names, files, strict=True):
        assert matched([name], files) == matched([name], [file]) == [file]
    one_by_one = Files(files)  # as frames of a camera
    assert [one_by_one.file_of(name, "labels", "label") for name in names] == files


@pytest.mark.parametrize(
    ("item", "file", "message"),
    [
        ("{train,val}_images/x", "{train,val}_labels/x.png", "'train_images/x' could have the"),
        ("seq{1,2}/images/1", "seq1/labels/1.png", "seq1/labels/1.png is in another folder than "),
        ("seq2/images/1", "seq{1,2}/labels/{1,2}.png", "seq1/labels/1.png is in another folder"),
        ("s{1,2}/im/{1,3}", "s{1,3}/gt/{1,3}.png", "s3/gt/3.png is in another folder than s2/im/3"),
        ("{a,b}/cam/{1,2}", "{a,c}/cam/{1,2}.png", "c/cam/2.png is in another folder than b/cam/2"),
        ("d{1,2}/image_02/5", "d{1,2}/image_0{2,3}/5.png", "d1/image_02/5.png is in another"),
        ("{a,b,d}/{1,1,2}", "{c,e}/{1,2}.png", "2 of 3 items have no label: a/1, b/1"),
        ("images/{a,b}/1", "labels/1.png", "'images/a/1' and 'images/b/1' both match labels/1"),
        ("{1/1,2/1}/0", "1/{1,2}/0.png", "1/1/0.png is in another folder than 2/1/0"),
        ("{1/2/0,2/1/1}", "{1/2/1,2/1/0}.png", "2 of 2 items have no label: 1/2/0, 2/1/1"),
        ("1/2/0", "{1,2}/0.png", "'1/2/0' could have the label 2/0.png or 1/0.png"),
        ("1/2/0", "{1/0,0,2/9}.png", "'1/2/0' could have the label 0.png or 1/0.png"),
        (
            "{kitti/0,bdd/train/1}",
            "{kitti/train/0,kitti/val/0,bdd/train/1}.png",
            "'kitti/0' could have the label kitti/val/0.png or kitti/train/0.png",
        ),
        ("x{1,2}", "x{1,2}_L.png", "files there look like x1_L.png"),
        ("case_{1,2}_0000", "case_{1,2}.png", "2 of 2 items have no label: case_1_0000"),
    ],
)
def test_layouts_that_are_refused(item: str, file: str, message: str) -> None:
    for files in (several(file), several(file)[::-1]):
        with pytest.raises(StoreError, match=re.escape(message)):
            matched(several(item), sorted(files))


def random_paths(number: random.Random, folders: Sequence[str]) -> list[str]:
    paths = {
        "/".join([*number.choices(folders, k=number.randint(0, 3)), number.choice("123")])
        for _ in range(number.randint(1, 6))
    }
    return sorted(paths)


def test_orders_and_items_change_no_file() -> None:
    """Pairs do not depend on the order of items and files, and no item has another file without
    the others; but a file may be left for it if it is only the end of the item's name.
    """

    def pairs(files: Sequence[str], names: Sequence[str]) -> dict[str, str]:
        try:
            return match_some("labels", files, names, "label")
        except StoreError:
            return {}

    count = 0
    for seed in range(3000):
        number = random.Random(seed)
        folders = number.sample(["a", "b", "c", "images", "labels"], number.randint(2, 5))
        names, files = random_paths(number, folders), random_paths(number, folders)
        found = pairs(files, names)
        shuffled = number.sample(names, len(names))
        assert pairs(number.sample(files, len(files)), shuffled) == found
        for name, file in pairs(files, shuffled[: len(names) // 2 + 1]).items():
            other = found.get(name, file)
            if name == other or not f"/{name}".endswith(f"/{other}") | f"/{other}".endswith(
                f"/{name}"
            ):
                count += 1
                assert other == file, (names, files)
    assert count > 500


@pytest.mark.parametrize(
    ("item", "file", "other"),
    [
        ("s{}/{}", "s{}/{}", ""),
        ("images/s{}/{}", "labels/s{}/{}", ""),
        ("s{}/images/{}", "s{}/labels/{}", ""),
        ("s{}/{}", "labels/s{}/{}", "s{}/other"),
        ("images/s{}/{}", "s{}/{}", "images/other"),
    ],
)
def test_many_sequences_take_linear_time(item: str, file: str, other: str) -> None:
    def seconds(sequences: int) -> float:
        spots = [(s, f) for s in range(sequences) for f in range(10)]
        names, files, others = (
            [text.format(*spot) for spot in spots] for text in (item, file, other)
        )
        files += {*others} - {""}
        start = time.process_time()
        assert len(match_files("labels", files, names, "label")) == len(names)
        return time.process_time() - start

    seconds(10)
    assert seconds(800) < 30 * seconds(100)  # 64 times as long if each is compared with all


@pytest.mark.parametrize(
    ("names", "files"),
    [
        # Other names of the outer folders, in which the data set keeps its images and its labels.
        (("images/bonn/x", "images/celle/y"), ("labels/bonn/x.png", "labels/celle/y.png")),
        (("images/bonn/1", "images/celle/1"), ("labels/bonn/1.png", "labels/celle/1.png")),
        (("images/bonn/1",), ("labels/bonn/1.png",)),
        (("images/1", "images/2"), ("labels/1.png", "labels/2.png")),
        (("images/val/1", "images/train/2"), ("gt/1.png", "gt/2.png")),
        (("images/1", "images/2"), ("gt/val/1.png", "gt/train/2.png")),
        (
            ("leftImg8bit/val/bonn/b_0_leftImg8bit", "leftImg8bit/val/celle/c_0_leftImg8bit"),
            ("gtFine/val/bonn/b_0_gtFine_labelIds.png", "gtFine/val/celle/c_0_gtFine_labelIds.png"),
        ),
        # Flat, on either side, and of another depth.
        (("bonn/x", "celle/y"), ("x.png", "y.png")),
        (("x", "y"), ("bonn/x.png", "celle/y.png")),
        (("bonn/1", "celle/1"), ("gt/val/bonn/1.png", "gt/train/celle/1.png")),
        (("data/val/bonn/1", "data/val/celle/1"), ("bonn/1.png", "celle/1.png")),
        (("a/val/1",), ("a/val/1.png", "b/a/val/1.png")),
        (("x/val/1", "x/val/2"), ("val/1.png", "val/2.png")),
        # A folder at another depth, and a file of no item.
        (("a/s2/data/0",), ("data/a/s2/0.png", "overview.png")),
        (("data/s2/data/0",), ("data/s2/0.png", "s2/overview.png")),
        (("data/a/1",), ("a/1.png", "data/b/2.png")),
        # Repeated folders, and data sets of other depths.
        (("1/1/a",), ("labels/1/1/a.png", "labels/1/2/a.png")),
        (("kitti/images/y", "camvid/x"), ("kitti/labels/y.png", "camvid/x.png")),
    ],
)
def test_names_and_files_that_belong_together(names: Sequence[str], files: Sequence[str]) -> None:
    others = ["bonn/other.png", "other.png"] if any("bonn" in file for file in files) else []
    assert matched(names, files) == list(files[: len(names)])
    assert matched(names[::-1], [*others, *files]) == list(files[: len(names)])[::-1]


@pytest.mark.parametrize(
    ("names", "files", "absent"),
    [
        (("seq1/1", "seq2/3"), ("seq1/1", "seq1/3", "seq2/1", "seq2/2"), "seq2/3"),
        (("seq1/1", "seq2/3"), ("seq1/1", "seq1/3"), "seq2/3"),
        (("seq1/1", "seq2/3"), ("seq1/1", "seq3/3"), "seq2/3"),
        (("seq1/1", "seq1/3"), ("seq1/1", "seq2/3"), "seq1/3"),
        (("seq1/1", "seq2/3"), ("seq2/1", "seq1/3"), "seq1/1, seq2/3"),
        (("seq1/1",), ("seq1/2", "seq2/1"), "seq1/1"),
        (("seq1/1", "seq2/1"), ("seq1/1",), "seq2/1"),
        (("rgb/seq1/1", "rgb/seq2/3"), ("gt/seq1/1", "gt/seq1/3", "gt/seq2/1"), "rgb/seq2/3"),
        (("rgb/seq2/3",), ("gt/seq1/3", "gt/seq2/1"), "rgb/seq2/3"),
        (("a/day/1", "b/day/2"), ("a/day/1", "a/day/2"), "b/day/2"),
        (("v/00/00/5", "v/01/00/5"), ("gt/v/01/00/5", "gt/v/02/00/5"), "v/00/00/5"),
        (("a/rgb/1", "a/rgb/2", "b/rgb/3"), ("1", "a/2", "b/3"), "a/rgb/1"),
    ],
)
def test_files_of_another_sequence(names: Sequence[str], files: Sequence[str], absent: str) -> None:
    files = [f"{file}.png" for file in files]
    message = rf"{absent.count(',') + 1} of {len(names)} items have no label: {absent} \(files"
    with pytest.raises(StoreError, match=rf"{message}.* is in another folder than"):
        matched(names, files)
    lost = absent.split(", ")
    if len(lost) < len(names):
        assert match_some("l", files, names, "label").keys() == set(names) - set(lost)
    seen = Folders(names)
    for name in lost:
        assert Files(files, folders_of_items=seen).file_of(name, "labels", "label") is None


def test_slices_belong_to_their_case_only() -> None:
    cases = {"A/0000": "A", "A/0001": "A", "B/0000": "B", "B/0001": "B", "B/0002": "B"}
    first = ["A/0000", "A/0001"]
    assert matched([f"fold/{name}" for name in cases], list(cases), cases) == list(cases)
    for names, message in (
        (["A/0000", "C/0000", "C/0001"], "1 of 2 cases have no label: C (cases there look like A"),
        (["0000"], "1 of 1 cases have no label: 0000 "),
        ([*first, "A/0002"], "the label of the case 'A' has 2 slices, but the case has 3: A/0002."),
    ):
        with pytest.raises(StoreError, match=re.escape(message)):
            matched(names, list(cases), cases)
    with pytest.raises(StoreError, match="1 of 1 cases have no label: B"):
        matched(["B/0000"], first, dict.fromkeys(first, "A"))


def test_folders_of_other_names_are_named() -> None:
    """Without a folder in common, `images` and `labels` look like two sequences."""

    def warnings(*files: str) -> list[str]:
        found = dict(zip(("a/1", "a/2"), files, strict=True))
        return warnings_of_match("l", files, found, "label")

    (warning,) = warnings("b/1.png", "b/2.png")
    assert "2 items and their label files" in warning and "'a/1' and b/1.png" in warning
    assert not warnings("1.png", "2.png")
    assert not warnings("b/a/1.png", "b/a/2.png")
