"""Figures of chosen items: maps of one model or of several, with the scores of the item."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from uqeval.errors import UsageError, all_listed, number_of, quoted
from uqeval.glossary import label_of
from uqeval.records.report import Report
from uqeval.report.figures.contract import Figure
from uqeval.report.figures.curves import format_number
from uqeval.report.figures.maps import Box, Strip, figure
from uqeval.usecases.gallery.opening import Pictures
from uqeval.usecases.gallery.paint import painted
from uqeval.usecases.gallery.video import Pairs
from uqeval.usecases.select import direction_of, score_of_items

#: Pictures that all models share; they are shown once.
_SHARED = ("image", "label", "target")
#: The largest number of characters of an item's name in a file name.
_LONGEST = 60


def item_figure(
    galleries: Mapping[str, tuple[Report, Pictures]],
    item: str,
    by: Sequence[str] = (),
    boxes: Sequence[Box] = (),
    frames: int | None = None,
) -> Figure:
    """Return the figure of an item, with the maps of all galleries.

    `galleries`: reports and their pictures, by the name of a model. `by`: scores of the item, such
    as `nmerci.nmerci`, to write next to each model; the models are in the order of the first one,
    the best first. `boxes`: rectangles to draw. `frames`: how many frames of a video to show, which
    end at the item (3 by default). Raises `UsageError` for an unknown item or score.
    """
    if any(isinstance(gallery.painter, Pairs) for _, gallery in galleries.values()):
        return _of_video(galleries, item, by, boxes, frames or 3)
    if frames is not None:
        raise UsageError("--frames is for the report of a video (uqeval tc); leave it out.")
    strips, values = [], []
    shared: list[Strip] = []
    for name, (report, gallery) in galleries.items():
        place = place_of(report, item)
        scores = [_score(report, place, field) for field in by]
        pictures = gallery.pictures(place)
        common = [p for p in pictures if len(galleries) > 1 and p.title.split(",")[0] in _SHARED]
        shared = shared or [Strip("", common)][: len(common)]
        of_models = [picture for picture in pictures if picture not in common]
        words = ", ".join(
            f"{label_of(*field.rsplit('.', 1))} {format_number(value)}"
            for field, value in zip(by, scores, strict=True)
        )
        head = ": ".join([part for part in (name if len(galleries) > 1 else "", words) if part])
        for group, of_group in groupby(of_models, lambda picture: picture.group):
            title = " · ".join(part for part in (head, group) if part)
            strips.append(Strip(title, list(of_group)))
            values.append(_rank(report, by, scores))
    order = sorted(range(len(strips)), key=lambda i: values[i])
    all_strips = [*shared, *(strips[i] for i in order)]
    return figure(file_name(item), item, [strip for strip in all_strips if strip.pictures], boxes)


def _of_video(
    galleries: Mapping[str, tuple[Report, Pictures]],
    item: str,
    by: Sequence[str],
    boxes: Sequence[Box],
    frames: int,
) -> Figure:
    """Return the film strip of an item of the only report."""
    if len(galleries) > 1:
        raise UsageError(
            f"--item takes one report of a video, and {len(galleries)} reports are given. Evaluate "
            "the models together: uqeval tc VIDEO PREDS PREDS -o FILE."
        )
    if by:
        raise UsageError("--by is for single images; a film strip shows TC_t. Leave it out.")
    ((report, gallery),) = galleries.values()
    assert isinstance(gallery.painter, Pairs)
    strips = film(gallery.painter, report, place_of(report, item), frames)
    return figure(file_name(item), item, strips, boxes)


def place_of(report: Report, item: str) -> int:
    """Return the index of an item in a report. Raises `UsageError` for an unknown name."""
    names = [str(item_record["name"]) for item_record in report.items]
    if item not in names:
        raise UsageError(
            f"--item {quoted(item)}: the report has no item of this name; its items are "
            f"{all_listed(names)}."
        )
    return names.index(item)


def file_name(item: str) -> str:
    """Return the name of the file of an item's figure, without its ending.

    A long name ends with a hash: file systems take at most 255 bytes.
    """
    name = re.sub(r"[^\w.-]+", "-", item)
    if len(name) > _LONGEST:
        digest = hashlib.sha256(item.encode(errors="surrogatepass")).hexdigest()
        name = f"{name[: _LONGEST - 9]}-{digest[:8]}"
    return f"item-{name}"


def _score(report: Report, place: int, field: str) -> float | None:
    """Return a score of an item. Raises `UsageError` if no item has it."""
    key, name = score_of_items(report, field)
    return (report.items[place].get(key) or {}).get(name)


def _rank(report: Report, by: Sequence[str], scores: Sequence[float | None]) -> float:
    """Return a number that is lower for a better first score; 0 for a score without a direction."""
    direction = direction_of(report, *score_of_items(report, by[0])) if by else None
    if direction is None:
        return 0.0
    if scores[0] is None:
        return float("inf")
    return scores[0] if direction == "lower" else -scores[0]


def film(pairs: Pairs, report: Report, item: int, frames: int) -> list[Strip]:
    """Return strips of the `frames` frames that end at the later frame of a pair.

    The first strip has the images, the others the predictions of one model (and flow) each. The
    title of a prediction gives TC_t, of the frame and the one before. Raises `UsageError` if the
    sequence has fewer frames before that pair.
    """
    source = pairs.source
    chain = [item]
    while len(chain) < frames - 1 and (before := _pair_before(pairs, chain[0])) is not None:
        chain.insert(0, before)
    if len(chain) + 1 < frames:
        raise UsageError(
            f"--frames {frames}: only {number_of(len(chain) + 1, 'frame')} of the sequence end at "
            f"{source.names[item]}. Choose a later --item, or fewer --frames."
        )
    places = [source.pairs[chain[0]].before, *(source.pairs[i].after for i in chain)]
    names = [source.frame_names[place] for place in places]
    images = [source.frames.read(place) for place in places]
    strips = [
        Strip(
            "", [painted(n, image, f"Frame {n}.") for n, image in zip(names, images, strict=True)]
        )
    ]
    size = images[0].shape[:2]
    for key, model, settings in pairs.variants:
        mtc = report.results[key].get("mtc")
        title = f"{pairs.group(settings)}: mTC {format_number(mtc)}"
        values = [None, *(report.items[i][key].get("tc") for i in chain)]
        strips.append(
            Strip(
                title,
                [
                    painted(
                        "prediction" if n == 0 else f"TC {format_number(value)}",
                        pairs.palette[source.models[model].read(place, size)],
                        f"Predicted classes of {name}.",
                    )
                    for n, (place, name, value) in enumerate(
                        zip(places, names, values, strict=True)
                    )
                ],
            )
        )
    return strips


def _pair_before(pairs: Pairs, item: int) -> int | None:
    """Return the pair that ends at the earlier frame of a pair; None at the start of a sequence."""
    before = pairs.source.pairs[item].before
    for i in range(item - 1, -1, -1):
        if pairs.source.pairs[i].after == before:
            return i
    return None
