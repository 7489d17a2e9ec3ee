"""Detect frames that look like images of class ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqeval.stores.video.frames import Frames

#: A camera image has more distinct grey values than this; an image of class ids has fewer.
_FEW = 32


def like_ids(frames: Frames, i: int, classes: int, void: int) -> str:
    """Return a warning if frame `i` looks like an image of class ids, else an empty text."""
    import numpy as np

    from uqeval.stores.video.image_folder import ImageFolder

    values = frames.single_channel(i) if isinstance(frames, ImageFolder) else None
    if values is None:
        return ""
    distinct = np.unique(values)
    if distinct.size > _FEW or not ((distinct < classes) | (distinct == void)).all():
        return ""
    return (
        f"{frames.where_of(i)}: looks like an image of class ids, not of what a camera saw (one "
        f"channel, {distinct.size} different values): no optical flow of it says how anything "
        "moves. Give the camera's images as the video, and ids as predictions or labels."
    )
