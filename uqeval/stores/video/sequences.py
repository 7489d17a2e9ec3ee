"""Pairs of frames: neighbours in one sequence, by the numbers in their names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from pathlib import PurePosixPath

from uqeval.errors import StoreError, listed, quoted
from uqeval.stores.names import checked_names, natural, plain_name

#: Bounded, since Python refuses to read integers of thousands of digits.
_DIGITS = re.compile(r"[0-9]{1,999}")
_JOINTS = "_-. "
_EXPECTED = "a name that ends in a number, such as 0016E5_07959 or frame_000123"
#: Time stamps: more than this share of differences are near their median, by this fraction of it,
#: and no multiples of the step; and at least as many.
_SHARE, _NEAR, _LEAST = 0.5, 0.25, 4
#: The end of a name that may be decimal seconds, as 12.05. No letter but t is before them:
#: `cam0.0005` is frame 5 of a camera.
_SECONDS = re.compile(r"(?<![^_. tT-])([0-9]{1,20})\.([0-9]{1,20})(?=[^0-9]*$)")
#: The number of neighbours of a stream of which this is checked, once.
_FIRST = 20


@dataclass(frozen=True)
class Pair:
    """Two neighbouring frames, by their index in the list of frames.

    `first`: the pair begins a run, because no pair ends at its earlier frame. `last`: the pair ends
    a run, at a gap or at the end of the sequence.
    """

    before: int
    after: int
    sequence: str
    first: bool
    last: bool


@dataclass(frozen=True)
class FrameSequence:
    """The frames of one sequence by index, in the order of their numbers.

    `step` is the most common difference between neighbours' numbers, None for a single frame;
    `gaps` counts the neighbours with another difference.
    """

    name: str
    frames: tuple[int, ...]
    step: int | None
    gaps: int


@dataclass(frozen=True)
class Sequences:
    """All sequences in natural order, and their pairs in the order of sequence and number."""

    sequences: tuple[FrameSequence, ...]
    pairs: tuple[Pair, ...]


def sequences_of(names: Sequence[str] | None, count: int, where: str) -> Sequences:
    """Return the sequences and pairs of `count` frames that are called `names`.

    The last digits of a name are its number; the rest, with its folder, is its sequence. Frames
    without names are one sequence, called "", in their order. Messages begin with `where`. Raises
    `StoreError` for a name without a number, for two frames with the same number, for times in
    place of numbers, and if there is no pair.
    """
    if count < 2:
        raise StoreError(
            f"{where} holds {count} frame{'s' * (count != 1)}; a pair needs two. Give the whole "
            "sequence."
        )
    if names is None:
        numbered = {"": [(number, number) for number in range(count)]}
    else:
        _refuse_times(names, where)
        numbered = _numbered(checked_names(list(names), where, count), where)
    sequences: list[FrameSequence] = []
    pairs: list[Pair] = []
    all_steps: list[Counter[int]] = []
    for name in sorted(numbered, key=natural):
        numbers = sorted(numbered[name])
        steps = _steps([number for number, _ in numbers])
        step = _most_common(steps)
        all_steps.append(steps)
        found = list(_pairs(name, numbers, step))
        frames = tuple(index for _, index in numbers)
        sequences.append(FrameSequence(name, frames, step, len(frames) - 1 - len(found)))
        pairs += found
    _refuse_time_stamps(all_steps, where)
    if not pairs:
        raise StoreError(
            f"{where}: no two of the {count} frames belong to one sequence; the sequences are "
            f"{listed(numbered)}. A sequence is a folder and a name without its last number: give "
            f"the frames of one sequence names that differ only in this number."
        )
    return Sequences(tuple(sequences), tuple(pairs))


def _numbered(names: Sequence[str], where: str) -> dict[str, list[tuple[int, int]]]:
    """Return number and index of the frames of each sequence."""
    numbered: dict[str, list[tuple[int, int]]] = defaultdict(list)
    owners: dict[tuple[str, int], str] = {}
    unnumbered: list[str] = []
    for index, name in enumerate(names):
        name_parts = split_name(name)
        if name_parts is None:
            unnumbered.append(name)
        elif (duplicate := owners.setdefault(name_parts, name)) != name:
            raise StoreError(
                f"{where}: {quoted(duplicate)} and {quoted(name)} are both frame {name_parts[1]} "
                f"of the sequence {quoted(name_parts[0])}. Number the frames of a sequence in "
                f"order, or remove one."
            )
        else:
            numbered[name_parts[0]].append((name_parts[1], index))
    if unnumbered:
        raise StoreError(
            f"{where}: {len(unnumbered)} of {len(names)} frames have no number in their names: "
            f"{listed(unnumbered)}. Expected {_EXPECTED}: the number gives the order of the "
            "frames. Rename them, or give --names FILE."
        )
    return numbered


def split_name(name: str) -> tuple[str, int] | None:
    """Return the sequence and the number in a frame's name; None without a number."""
    path = PurePosixPath(plain_name(name))
    digit_groups = list(_DIGITS.finditer(path.name))
    if not digit_groups:
        return None
    last = digit_groups[-1]
    remainder = path.name[: last.start()].rstrip(_JOINTS) + path.name[last.end() :]
    folder = "" if path.parent == PurePosixPath() else str(path.parent)
    return "/".join(filter(None, (folder, remainder.strip(_JOINTS)))), int(last[0])


class Neighbours:
    """Decides frame by frame whether a frame is the neighbour of the frame before.

    Like `sequences_of`, but only from the names so far: the step is the most common difference so
    far.
    """

    def __init__(self) -> None:
        self._last: tuple[str, int] | None = None
        self._steps: Counter[int] = Counter()
        #: The names of the latest frames.
        self._names: deque[str] = deque(maxlen=_FIRST)
        #: The difference of the numbers of the last two neighbours; None before the first two.
        self.step: int | None = None

    def next(self, name: str, where: str) -> tuple[str, str | None]:
        """Return the frame's sequence, and why it is no neighbour of the frame before (None if it
        is).

        Raises `StoreError` for a name without a number, and for times in place of numbers.
        """
        name_parts = split_name(name)
        if name_parts is None:
            raise StoreError(
                f"{where}: the frame {quoted(name)} has no number in its name. Expected "
                f"{_EXPECTED}: the number gives the order of the frames. Rename the frames."
            )
        (sequence, number), last, self._last = name_parts, self._last, name_parts
        self._refuse_times(name, last is not None and last[0] != sequence, where)
        if last is None or last[0] != sequence:
            self._steps.clear()
            return sequence, "it is the first frame of its sequence"
        difference = number - last[1]
        if difference > 0:
            self._steps[difference] += 1
            if self._steps.total() == _FIRST:
                _refuse_time_stamps([self._steps], where)
        step = _most_common(self._steps)
        if difference == step:
            self.step = step
            return sequence, None
        return sequence, (
            f"it does not follow the frame before: their numbers are {last[1]} and {number}, the "
            f"step of the sequence is {step}"
        )

    def _refuse_times(self, name: str, is_other: bool, where: str) -> None:
        """Refuse times among the latest names, the first time that there are enough of them, and
        where another sequence begins, as after each second."""
        is_full = len(self._names) == _FIRST
        self._names.append(name)
        if len(self._names) == _FIRST and (is_other or not is_full):
            _refuse_times(tuple(self._names), where)


def _steps(numbers: Sequence[int]) -> Counter[int]:
    return Counter(after - before for before, after in pairwise(numbers))


def _refuse_time_stamps(steps: Sequence[Counter[int]], where: str) -> None:
    """Raise `StoreError` if the numbers of sequences, of which these are the differences, are time
    stamps: they differ by a little more or less, so most neighbours would be gaps."""
    near: list[int] = []
    for of_sequence in steps:
        differences = sorted(of_sequence.elements())
        if differences:
            median, step = differences[len(differences) // 2], _most_common(of_sequence) or 1
            is_near = (d % step > 0 and abs(d - median) <= _NEAR * median for d in differences)
            near += compress(differences, is_near)
    if len(near) >= _LEAST and len(near) > _SHARE * sum(own.total() for own in steps):
        raise StoreError(
            f"{where}: the frames seem to have time stamps in place of numbers: most neighbours "
            f"differ by {listed(sorted({*near}), 4)}. Expected frames that are numbered in order, "
            "as frame_000123. Rename them, and their predictions."
        )


def _refuse_times(names: Sequence[str], where: str) -> None:
    """Raise `StoreError` if most frames are called by decimal seconds of which the last digits are
    in another order, such as 12.05 and 12.1."""
    frames: dict[tuple[str, ...], list[_Timed]] = defaultdict(list)
    for name in names:
        path = PurePosixPath(plain_name(name))
        if found := _SECONDS.search(path.name):
            seconds, fraction = found.groups()
            time = int(seconds) * 10**20 + int(fraction.ljust(20, "0"))
            key = (str(path.parent), path.name[: found.start()], path.name[found.end() :])
            frames[key].append(_Timed(time, name, fraction))
    timed = [own for own in frames.values() if _are_times(own)]
    if 2 * sum(map(len, timed)) > len(names):
        raise StoreError(
            f"{where}: the frames seem to have times in place of numbers: "
            f"{listed([own.name for own in timed[0]], 4)}. Only their last digits would be the "
            "number. Expected frames that are numbered in order, as frame_000123. Rename them, and "
            "their predictions."
        )


@dataclass(frozen=True, order=True)
class _Timed:
    """A frame with the time in its name, in units of 1e-20 s, and the digits of its fraction."""

    time: int
    name: str
    fraction: str


def _are_times(frames: list[_Timed]) -> bool:
    """Return whether frames, which it sorts, are at regular times, while the last digits of their
    names are in another order.

    Fractions of one length have the same order as numbers, and may be frames of a scene.
    """
    frames.sort()
    steps = [after.time - before.time for before, after in pairwise(frames)]
    median = sorted(steps)[len(steps) // 2] if len(steps) > 1 else 0
    near = [2 * abs(step - median) <= median for step in steps]
    if not all(steps) or 2 * sum(near) <= len(near):
        return False  # 1.1 and 1.10 are two frames
    shortest = min(len(frame.fraction) for frame in frames)
    has_zeros = any(len(own.fraction) > shortest and own.fraction[0] == "0" for own in frames)
    parts = [split_name(frame.name) or ("", 0) for frame in frames]
    is_other_order = any(a[0] == b[0] and a[1] > b[1] for a, b in pairwise(parts))
    # Times without such a zero, 12.5 and 12.75, have one step; frames .9 and .12 have not.
    return is_other_order and (has_zeros or len({*steps}) == 1)


def _most_common(steps: Counter[int]) -> int | None:
    """Return the most common difference; on a tie, the smallest."""
    return min(steps, key=lambda step: (-steps[step], step), default=None)


def _pairs(name: str, numbers: Sequence[tuple[int, int]], step: int | None) -> Iterator[Pair]:
    is_next = [after - before == step for (before, _), (after, _) in pairwise(numbers)]
    for k, is_pair in enumerate(is_next):
        if is_pair:
            first = k == 0 or not is_next[k - 1]
            last = k == len(is_next) - 1 or not is_next[k + 1]
            yield Pair(numbers[k][1], numbers[k + 1][1], name, first, last)
