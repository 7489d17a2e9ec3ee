"""Names of items, and lists of their files."""

from __future__ import annotations

from pathlib import Path

from command import refused

from uqeval.errors import StoreError
from uqeval.stores import names as n


def test_a_link_to_a_folder_beside_it_counts_as_a_copy(tmp_path: Path) -> None:
    """Whichever of the two is listed first on the disk."""
    for folder in ("seq1", "seq2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.png").touch()
    links = ["aaa", "latest", "zz"]
    for link in links:
        (tmp_path / link).symlink_to("seq1")
    expected = sorted(f"{folder}/1.png" for folder in ("seq1", "seq2", *links))
    assert n.files_below(f"{tmp_path}/", (".png",)) == expected


def test_links_to_parents_end(tmp_path: Path) -> None:
    for folder, other in (("a", "b"), ("b", "a")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.png").touch()
        (tmp_path / folder / other).symlink_to(tmp_path / other)
        (tmp_path / folder / "up").symlink_to(tmp_path)
    expected = ["a/1.png", "a/b/1.png", "b/1.png", "b/a/1.png"]
    assert n.files_below(tmp_path, (".png",)) == expected


def test_chains_of_links_that_double_are_refused(tmp_path: Path) -> None:
    for level in range(40):
        (tmp_path / str(level)).mkdir()
        for link in "ab":
            (tmp_path / f"{level}/{link}").symlink_to(tmp_path / str(level + 1))
    (tmp_path / "40").mkdir()
    refused(
        lambda: n.files_below(tmp_path / "0", (".png",)),
        "1,003 chains of symbolic links lead to", "but only 2 different links", error=StoreError,
    )  # fmt: skip


def test_many_links_to_one_folder_are_no_chains(tmp_path: Path) -> None:
    """Each sequence may have a link to the same calibration, and a split links to sequences."""
    (tmp_path / "calib").mkdir()
    (tmp_path / "split").mkdir()
    for k in range(1001):
        (tmp_path / f"labels/{k}").mkdir(parents=True)
        (tmp_path / f"labels/{k}/calib").symlink_to(tmp_path / "calib")
        (tmp_path / f"split/{k}").symlink_to(tmp_path / f"labels/{k}")
    (tmp_path / "labels/0/x.png").touch()
    (tmp_path / "link").symlink_to("labels")
    for folder in ("labels", "split", "link"):
        assert n.files_below(tmp_path / folder, [".png"]) == ["0/x.png"]


def test_names_in_files_may_have_the_suffix_of_a_file() -> None:
    items = ("a", "b/c", "d.png", "e_leftImg8bit")
    given = ["a.png", "b/c.jpg", "d", "e", "c.png", "frame.01"]
    assert n.as_items(given, items) == ("a", "b/c", "d.png", "e_leftImg8bit", "c.png", "frame.01")
    # The exact name counts first, and two candidates are ambiguous.
    assert n.as_items(["a", "a.png", "x.png", "x.jpg"], ["a", "x"]) == (
        "a", "a.png", "x.png", "x.jpg",
    )  # fmt: skip
    assert n.as_items(["x"], ["x.png", "x.jpg"]) == ("x",)
    assert n.as_items(["e\u0301.png"], ["\u00e9"]) == ("\u00e9",)
