"""Data that change while a run reads them: the run ends, for it would mix old and new data.

Every item's files have a state: inode, size, times of change. It is noted when the inputs are
opened, and compared after each read of the item and at the end of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from uqeval.errors import ChangedError, UqevalError, cut
from uqeval.stores.stamps import GONE, file_state, one_look

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray


class Watched(Protocol):
    """Something that an item is read from."""

    def stamp(self) -> str | None:
        """Return text that changes when the data do; None if changes cannot be detected."""

    def states(self) -> dict[str, str]:
        """Return the states of its files now, by path; none for an array in memory."""


class WatchedText:
    """Text that an item depends on, such as the name of an array."""

    def __init__(self, text: str) -> None:
        self._text = text

    def stamp(self) -> str | None:
        """Return text that changes when the data do; None if changes cannot be detected."""
        return self._text

    def states(self) -> dict[str, str]:
        """Return nothing: there is no file."""
        return {}


class Watch:
    """The states of all that a run reads, as they were when it was created.

    `parts`: of each item, what it is read from.
    """

    def __init__(
        self,
        names: Sequence[str],
        parts: Sequence[Sequence[Watched]],
    ) -> None:
        self._names = names
        self.parts = parts
        with one_look():
            self._before = [tuple(map(hash, self._states(item))) for item in range(len(parts))]
        self._files: dict[str, str] = {}

    def add(self, file: str) -> None:
        """Watch one more file, on which all items depend."""
        self._files[file] = file_state(file)

    def and_of(self, second: Watch) -> Watch:
        """Return a watch of both, item by item, from their creation on."""
        combined = Watch((), ())
        combined._names = self._names
        combined.parts = [[*a, *b] for a, b in zip(self.parts, second.parts, strict=False)]
        combined._before = [a + b for a, b in zip(self._before, second._before, strict=False)]
        combined._files = self._files | second._files
        return combined

    def check(self, items: Iterable[int]) -> None:
        """Raise `ChangedError` if the files of some items are not as they were."""
        with one_look():
            for item in items:
                if item < len(self.parts) and self._before[item] != tuple(
                    map(hash, self._states(item))
                ):
                    self._refuse(item)

    def check_all(self) -> None:
        """Raise `ChangedError` if the files of any item are not as they were."""
        for file, state in self._files.items():
            if file_state(file) != state:
                raise _error(file, "", file_state(file) == GONE)
        self.check(range(len(self.parts)))
        for array in self._arrays():
            array.recheck()

    def _arrays(self) -> list[StoredArray]:
        """Return the stored arrays that items are parts of, each once."""
        from uqeval.stores.array import ItemArray
        from uqeval.stores.video.frames import Frame

        arrays: dict[int, StoredArray] = {}
        for part in {id(part): part for item_parts in self.parts for part in item_parts}.values():
            if isinstance(part, ItemArray):
                arrays[id(part.array)] = part.array
            elif isinstance(part, Frame):
                arrays |= {id(array): array for array in part.frames.arrays}
        return list(arrays.values())

    @contextmanager
    def reading(self, items: Iterable[int]) -> Iterator[None]:
        """Raise `ChangedError` if the files of these items change until the context ends.

        That is also what is raised in place of an error inside: a file that is being replaced looks
        damaged.
        """
        try:
            yield
        except UqevalError:
            self.check(items)
            raise
        self.check(items)

    def _states(self, item: int) -> Iterator[tuple[str, str]]:
        for part in self.parts[item]:
            yield from part.states().items()

    def _refuse(self, item: int) -> None:
        for (path, state), before in zip(self._states(item), self._before[item], strict=False):
            if hash((path, state)) != before:
                raise _error(path, f" (item {cut(self._names[item])})", state == GONE)
        raise _error(f"the files of item {cut(self._names[item])}", "", False)


@contextmanager
def read_whole(part: Watched, description: str) -> Iterator[None]:
    """Raise `ChangedError` if the files of a part change until the context ends: it is read once.

    `description` is read, for the message.
    """
    before = part.states()
    yield
    for path, state in part.states().items():
        if before.get(path) != state:
            raise ChangedError(
                f"{cut(path)}: changed while {description} was read. Write each file under "
                "another name, then rename it."
            )


def _error(path: str, item: str, is_missing: bool) -> ChangedError:
    return ChangedError(
        f"{cut(path)}{item}: {'was removed' if is_missing else 'changed'} after this run had "
        "begun, so its results would mix old and new data. Nothing was kept. Run again when "
        "no process writes to it any more."
    )
