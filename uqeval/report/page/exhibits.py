"""The exhibits of a page: items with pictures."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from uqeval.errors import printable
from uqeval.keys import Key
from uqeval.records.report import Report
from uqeval.report.page.gallery import Gallery, Meanings, Picture
from uqeval.report.page.item_table import ranking_of
from uqeval.report.page.side_by_side import SideBySide
from uqeval.report.tables.cells import cell
from uqeval.report.tables.items import columns_of, worst_first

#: Bytes of pictures that a page may embed; above this, pictures are files in a folder.
MOST_BYTES = 3_500_000
#: Exhibits in HTML. The page's script makes further ones on demand: pictures delay a page.
MOST_IN_HTML = 24


@dataclass(frozen=True)
class Shown:
    """A picture on a page. `meanings`: index in the page's list of colour meanings, -1 for none.
    `scale`: the lowest and the highest value of a map."""

    title: str
    source: str
    alt: str
    meanings: int
    scale: str
    shape: str


@dataclass(frozen=True)
class Exhibit:
    """An item of the gallery: its index, name, rank ("Worst 1"), the score that ranks it, all its
    scores, and pictures by group.
    """

    item: int
    name: str
    rank: str
    why: str
    scores: list[tuple[str, str]]
    groups: list[tuple[str, list[Shown]]]


@dataclass
class PictureFiles:
    """Pictures in a folder next to the page, if they are too many to embed.

    `folder`: its name in links of the page. `files`: bytes by file name, filled while the page is
    made; empty if the page embeds the pictures.
    """

    folder: str
    most: int = MOST_BYTES
    files: dict[str, bytes] = field(default_factory=dict)

    def add(self, png: bytes) -> str:
        """Return the address of a picture, whose name is a hash of its bytes."""
        name = f"{hashlib.sha256(png).hexdigest()[:32]}.png"
        self.files[name] = png
        return f"{self.folder}/{name}"


@dataclass
class Pictured:
    """The exhibits of a page, and the meanings of colours that their pictures share."""

    exhibits: list[Exhibit] = field(default_factory=list)
    meanings: list[Meanings] = field(default_factory=list)

    @property
    def items(self) -> set[int]:
        """Return the indices of the items with pictures."""
        return {exhibit.item for exhibit in self.exhibits}

    @property
    def data(self) -> dict[str, Any]:
        """Return data for the page's script: meanings of colours and further exhibits."""
        from uqeval.report.figures.style import ramp

        has_scales = any(
            p.scale for e in self.exhibits for _, pictures in e.groups for p in pictures
        )
        return {
            "meanings": [dict(pictures) for pictures in self.meanings],
            "ramp": [rgb.tobytes().hex() for rgb in ramp()] if has_scales else [],
            "more": [_plain(asdict(exhibit)) for exhibit in self.exhibits[MOST_IN_HTML:]],
        }


def _plain(value: Any) -> Any:
    """Return a record for JSON, with texts without control characters."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return (
        {name: _plain(entry) for name, entry in value.items()} if isinstance(value, dict) else value
    )


def exhibits_of(
    report: Report, gallery: Gallery, most: int, files: PictureFiles | None
) -> Pictured:
    """Return the `most` worst items and a third as many good ones, with their pictures; the first
    items if no score ranks them.

    `files` receives the pictures if they are too large to embed; None: embed them all. Raises
    `UqevalError`.
    """
    chosen = [
        (i, rank, why, _scores(report, i), gallery.pictures(i))
        for i, rank, why in _chosen(report, most)
    ]
    return _pictured(report, chosen, files)


def compared_exhibits(
    report: Report, gallery: SideBySide, most: int, files: PictureFiles | None
) -> Pictured:
    """Return the `most` items on which models differ most, as indices of the first report."""
    by = f"by difference of {gallery.column.title}" if gallery.column else "by name"
    chosen = [
        (i, f"Differs {n}", by, gallery.scores(i), gallery.pictures(i))
        for n, i in enumerate(gallery.order()[:most], 1)
    ]
    return _pictured(report, chosen, files)


def _pictured(
    report: Report,
    chosen: Sequence[tuple[int, str, str, list[tuple[str, str]], list[Picture]]],
    files: PictureFiles | None,
) -> Pictured:
    size = sum(len(picture.png) for *_, pictures in chosen for picture in pictures)
    outside = files if files is not None and size > files.most else None
    pictured = Pictured()
    for i, rank, why, scores, pictures in chosen:
        groups = [
            (group, [_shown(picture, outside, pictured.meanings) for picture in of_group])
            for group, of_group in groupby(pictures, lambda picture: picture.group)
        ]
        name = str(report.items[i]["name"])
        pictured.exhibits.append(Exhibit(i, name, rank, why, scores, groups))
    return pictured


def _chosen(report: Report, most: int) -> Iterator[tuple[int, str, str]]:
    ranking = ranking_of(columns_of(report))
    if ranking is None:  # no score says which is worse
        for i in range(min(most, len(report.items))):
            yield i, f"Item {i + 1}", "in the order of the report"
        return
    order = worst_first(report, ranking)
    good = list(reversed(order[most:]))[: max(1, most // 3)]
    for word, items in (("Worst", order[:most]), ("Best", good)):
        for n, i in enumerate(items, 1):
            yield i, f"{word} {n}", f"by {ranking.title}"


def _scores(report: Report, i: int) -> list[tuple[str, str]]:
    item = report.items[i]
    return [
        (c.title, cell(item[c.key], c.name).text)
        for c in columns_of(report)
        if isinstance(item.get(c.key), dict) and Key.parse(c.key).region is None
    ]


def _shown(picture: Picture, files: PictureFiles | None, meanings: list[Meanings]) -> Shown:
    place = -1
    if picture.meanings:
        if picture.meanings not in meanings:
            meanings.append(picture.meanings)
        place = meanings.index(picture.meanings)
    source = _data(picture.png) if files is None else files.add(picture.png)
    return Shown(
        picture.title, source, picture.alt, place, _pair(picture.scale), _pair(picture.shape)
    )


def _pair(numbers: Sequence[float] | None) -> str:
    return "" if numbers is None else " ".join(f"{number:.9g}" for number in numbers)


def _data(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
