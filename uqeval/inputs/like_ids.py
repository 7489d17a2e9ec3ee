"""Frames that look like images of class ids, given by mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqeval.stores.frames import Frames

#: An image of a camera has more different grey values than this; one of class ids, fewer classes.
_FEW = 32


def like_ids(frames: Frames, i: int, classes: int, void: int) -> str:
    """A warning where frame `i` looks like an image of class ids; empty where it does not."""
    import numpy as np

    from uqeval.stores.image_folder import ImageFolder

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
