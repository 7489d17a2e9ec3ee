"""Film strips of a video: consecutive frames, and below them the predictions of each model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqeval.errors import UsageError, number_of
from uqeval.report.figures.curves import format_number
from uqeval.report.figures.maps import Strip
from uqeval.usecases.gallery.paint import painted

if TYPE_CHECKING:
    from uqeval.records.report import Report
    from uqeval.usecases.gallery.video import Pairs


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
