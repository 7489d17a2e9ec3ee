"""Names of items and files: which belong together, and which never do."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from uqeval.errors import StoreError
from uqeval.stores.matching import Files, Folders, match_files, match_some, warnings_of_match


def matched(
    names: Sequence[str], files: Sequence[str], cases: dict[str, str] | None = None
) -> list[str]:
    found = match_files("labels", files, names, "label", cases=cases)
    return [found[name] for name in names]


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
