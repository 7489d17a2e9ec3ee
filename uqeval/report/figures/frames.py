"""The axis of a video's frames, with some of their names and the starts of sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from uqeval.report.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Characters that fit in a row below a figure, and the space between two names.
_LETTERS, _SPACE = 84, 4
#: The largest number of ticks.
_MOST = 8


@dataclass(frozen=True)
class FrameAxis:
    """Frames in their order: their names and sequences."""

    names: Sequence[str]
    sequences: Sequence[str]

    @property
    def parts(self) -> list[tuple[str, int, int]]:
        """Return each sequence with its first frame (inclusive) and its last one (exclusive)."""
        spans, first = [], 0
        for name, names_of_sequence in groupby(self.sequences):
            last = first + len(list(names_of_sequence))
            spans.append((name, first, last))
            first = last
        return spans

    @property
    def ticks(self) -> dict[int, str]:
        """Return positions and texts of ticks, evenly spread over each sequence.

        The text is the name of the frame without that of its sequence.
        """
        labels = {place: self._number(place) for place in self._candidates()}
        width = max(map(len, labels.values()), default=0) + _SPACE
        min_distance = max(len(self.names) * width / _LETTERS, 1)
        chosen_frames: list[int] = []
        for place in labels:  # first the starts of the longest sequences
            if all(abs(place - chosen_frame) >= min_distance for chosen_frame in chosen_frames):
                chosen_frames.append(place)
        return {place: labels[place] for place in sorted(chosen_frames)}

    def _candidates(self) -> Iterator[int]:
        for _, first, _ in sorted(self.parts, key=lambda part: part[1] - part[2]):
            yield first
        step = -(-len(self.names) // _MOST)
        for _, first, last in self.parts:
            yield from range(first + step, last, step)

    def _number(self, place: int) -> str:
        name, sequence = self.names[place], self.sequences[place]
        frame_number = name.removeprefix(sequence).lstrip("_-. /") if sequence else name
        return style.short(frame_number or name, 16)

    def draw(self, axes: Axes) -> None:
        """Draw ticks, a line at the start of each sequence, and the names of sequences."""
        axes.set_xticks(list(self.ticks), list(self.ticks.values()))
        parts = self.parts
        sequence = parts[0][0] if len(parts) == 1 else ""
        axes.set_xlabel(f"frame of {style.short(sequence, 60)}" if sequence else "frame")
        for name, first, last in parts[: 0 if len(parts) == 1 else None]:
            if first:
                axes.axvline(first - 0.5, color=style.SOFT, linewidth=0.8)
            room = int(_LETTERS * (last - first) / len(self.names))
            if name and room >= min(len(name), 4):
                axes.annotate(
                    style.short(name, room), ((first + last - 1) / 2, 1.0), (0, 3),
                    xycoords=("data", "axes fraction"), textcoords="offset points",
                    ha="center", fontsize=8, color=style.SOFT, annotation_clip=False,
                )  # fmt: skip
