"""An unfinished store, and which of its parts are written."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from uqeval.disk.locks import clear_beside
from uqeval.errors import DataError, OutputError, cut, listed
from uqeval.stores.writing.new_store import NewStore, local_path
from uqeval.stores.writing.verification import check_same_settings, damaged_parts
from uqeval.stores.writing.write_lock import HINT, WriteLock, begin
from uqeval.stores.zarr import writer as zw
from uqeval.stores.zarr.group import is_unfinished, path_of_new

#: The part that a writer locks to complete the store.
_END = "end"
#: Warnings of a writer that closes.
_WAITS = "all items are written; the store becomes complete when the other writers close."
_WITHOUT_LABELS = (
    "the store is complete, without labels. An earlier job has written all samples; it may have "
    "ended before it added labels. If it was to add some, give commands the labels as a second "
    "path, or write the store again with overwrite=True."
)


def root_of(path: str, resume: bool, overwrite: bool) -> Path:
    """Return the folder in which the store of `path` is written until it is complete.

    Restore an older store that a killed process had moved aside. Raises `OutputError` if `path` is
    no store, and without `overwrite` if it is older than an unfinished replacement.
    """
    final = local_path(path)
    zw.check_replaceable(final)
    new = path_of_new(final)
    if _has_just_replaced(final) and zw.is_taken(new):
        zw.remove_idle(new)  # the rest of the older store
    if is_unfinished(new):
        if not overwrite and zw.is_taken(final):
            raise OutputError(
                f"{cut(path)}: its replacement {cut(new.name)}, in the same folder, is unfinished. "
                "Give resume=True and overwrite=True to continue it, or only overwrite=True to "
                f"begin it again. To keep the older store, remove {cut(new.name)}."
            )
        return new
    is_resumed = resume and zw.is_complete(final) is False
    return new if overwrite and not is_resumed else final


def _has_just_replaced(final: Path) -> bool:
    """Return whether a finished store still has its hidden folder: its writer was killed before it
    removed the older store, which then has the name of the new one."""
    return is_unfinished(final) and zw.is_complete(final) is True


def _clear_leftovers(path: Path) -> None:
    """Remove what killed writers of the store at `path`, or of its replacement, have left beside
    it. Only once the store is complete: processes of another machine, which begin it, seem dead."""
    for own in (path, path_of_new(path)):
        clear_beside(own)


def _remove_older(new: Path) -> None:
    """Remove a finished store at the place of a new one, which has replaced it. Raises
    `OutputError` for what others have put there."""
    if zw.is_complete(new) is None:
        raise OutputError(
            f"{cut(new)} is no store of uqeval, so it is not removed, but overwrite=True writes "
            "the new store there. Move it, or choose another path."
        )
    zw.remove_idle(new)


class UnfinishedStore:
    """A store of N items of T samples until it is complete.

    An item is one part, `<index>.all`, or one part per sample, `<index>.<t>`; its labels are
    `<index>.labels`. `attributes`: of the store. They, `settings`, names and compression must be
    the same for all writers. `skip`, `ranks`, `resume`, `overwrite`: see `PredictionWriter`.

    `kinds`: the arrays of every item, without labels. `store` writes the arrays; `kept` are the
    items that were complete when the store was opened. `finished`: a finished store was resumed, so
    nothing is written. Raises `OutputError` if the store can be neither created nor joined.
    """

    def __init__(
        self,
        path: str,
        names: Sequence[str],
        samples: int,
        *,
        dense: bool,
        attributes: Mapping[str, Any],
        settings: Mapping[str, Any],
        kinds: Collection[str],
        compression: zw.Compression,
        skip: bool,
        ranks: int,
        resume: bool,
        overwrite: bool,
    ) -> None:
        self.path, self.names, self.open = path, names, True
        self._samples, self._skip, self._ranks = samples, skip, ranks
        self._final = local_path(path)
        self._has_labels = False
        root = root_of(path, resume, overwrite)
        is_new = root != self._final
        self.store = NewStore(root, len(names), names, dense, compression)
        if is_new and not is_unfinished(root):
            if zw.is_taken(root):
                _remove_older(root)
            if _has_just_replaced(self._final):
                shutil.rmtree(self._final / zw.HIDDEN, ignore_errors=True)

        def create(folder: Path) -> None:
            NewStore(folder, len(names), names, dense).create(attributes)

        was_closed = zw.is_complete(root) is True  # and then not moved to its path

        def damaged(parts: set[str]) -> set[str]:
            self.store.repair(attributes)
            self._has_labels = _any_labels(parts)  # also where all labels are damaged
            return damaged_parts(root, names, kinds, dense, parts)

        joined = None
        if is_new or not resume or zw.is_complete(root) is not True:
            joined = begin(
                root,
                create,
                {**attributes, **settings, "names": names, "compression": compression},
                shared=ranks > 1,
                resume=resume,
                restart=is_new and (resume or overwrite),
                damaged=damaged,
                final=self._final,
            )
        self.finished = joined is None
        if joined is None:
            check_same_settings(
                self._final, attributes, names, kinds, dense,
                settings.get("size"), settings.get("dtype"),
            )  # fmt: skip
            self.store.root = self._final  # to which another process may have moved it
            # Its writer may have been killed before removing this.
            shutil.rmtree(self._final / zw.HIDDEN, ignore_errors=True)
            _clear_leftovers(self._final)
            self._claims, self._earlier = WriteLock(self._final), set[str]()
            self.kept = set(range(len(names)))
            return
        self._claims, self._earlier = joined
        self.kept = {i for i in range(len(names)) if self._all_of(i, self._earlier)}
        self._has_labels |= _any_labels(self._earlier)
        self._only_closes = len(self.kept) == len(names) and not was_closed

    def once(self, part: str, description: str, write: Callable[[], None]) -> bool:
        """Write a part; return False if it exists and repeated parts are skipped.

        Raises `DataError`, which begins with `description`, if it exists, and the errors of
        `write`, which release the part.
        """
        if not self.claim(part, description):
            return False
        self.write(part, write)
        return True

    def labels(self, index: int, description: str, write: Callable[[], None]) -> bool:
        """Write an item's labels as `once` does; return False also if an earlier job has written
        them. Raises `OutputError` if the store was completed without labels.
        """
        part = f"{index}.labels"
        if self.over():
            self.store.root = self._final  # to which another process may have moved it
            if not self.store.has(index, "labels"):
                state = "is finished" if self.finished else "was completed by another process"
                raise OutputError(
                    f"{description} cannot be added: {cut(self.path)} {state} and has no labels. "
                    "Give commands the labels as a second path, or write the store again with "
                    "overwrite=True, and close each writer after its labels."
                )
        if self.finished or part in self._earlier:
            return False
        is_new = self.once(part, description, write)
        self._has_labels = True
        return is_new

    @contextmanager
    def first_labels(self) -> Iterator[None]:
        """Let no other process write its first labels until the end."""
        with ExitStack() as stack:
            with suppress(FileNotFoundError):  # a complete store gets no labels
                stack.enter_context(self._claims.exclusively())
            yield

    def shape_of_labels(self) -> tuple[int, ...] | None:
        """Return the shape of the labels of an item that has some; None without any."""
        with suppress(FileNotFoundError):
            labelled = (part for part in self._claims.written() if part.endswith(".labels"))
            shapes = (self.store.shape(int(part.split(".")[0]), "labels") for part in labelled)
            return next((shape for shape in shapes if shape is not None), None)
        return None

    def claim(self, part: str, description: str) -> bool:
        """Lock a part that `write` writes later; see `once`."""
        if part in self._earlier:  # of an item that an earlier job did not finish: written again
            self._earlier.discard(part)
            self._claims.release(part)
        return self._claims.take(part) or self.repeated(description)

    def write(self, part: str, write: Callable[[], None]) -> None:
        """Write a locked part. Raises the errors of `write`, which release the part."""
        with self.releasing(part):
            write()
        self._claims.finish(part)

    @contextmanager
    def releasing(self, part: str) -> Iterator[None]:
        """Release a locked part after an error."""
        try:
            yield
        except BaseException:  # an interrupt, too
            self._claims.release(part)
            raise

    def over(self) -> bool:
        """Return whether any process has completed the store."""
        return self._claims.over()

    def repeated(self, description: str) -> Literal[False]:
        """Return False for a part that is skipped. Raises `DataError` if repeated parts are
        errors.
        """
        if self._skip:
            return False
        raise DataError(
            f"{description}: this was written already, or another process is writing it. If a "
            "batch failed after its first items, give only those for which done() is False. "
            "PredictionWriter(repeated='skip') leaves out what is written: for batches that are "
            "given again, and for distributed samplers that repeat items to fill the last batch."
        )

    def done(self, index: int, sample: int | None) -> bool:
        """Return whether an item, or one sample of it, is written.

        An item of an earlier job that lacks labels is not, once the store has some: that job may
        have been killed between the two. `add` of such an item does nothing.
        """
        if self.over():
            return True
        is_written = self._claims.is_written
        lacks_labels = self._has_labels and not is_written(f"{index}.labels")
        if sample is None and index in self.kept and lacks_labels:
            return False
        samples = range(self._samples) if sample is None else (sample,)
        return is_written(f"{index}.all") or all(is_written(f"{index}.{t}") for t in samples)

    def missing(self) -> list[str]:
        """Return the items whose samples (or labels, once one item has some) are not all
        written.
        """
        with suppress(FileNotFoundError):  # another process has completed it
            of_samples, of_labels = self._missing(self._claims.written())
            return [name for name in self.names if name in of_samples or name in of_labels]
        return []

    def _missing(self, parts: set[str]) -> tuple[set[str], set[str]]:
        """Return the items that lack samples, and those that lack labels."""
        labels = _any_labels(parts)
        items = list(enumerate(self.names))
        return (
            {name for i, name in items if not self._all_of(i, parts)},
            {name for i, name in items if labels and f"{i}.labels" not in parts},
        )

    def _missing_text(self, of_samples: set[str], of_labels: set[str]) -> str:
        """Return which items are incomplete, and which of them only lack labels."""
        missing = [name for name in self.names if name in of_samples | of_labels]
        lacking = [name for name in missing if name not in of_samples]
        items = f"incomplete items ({len(missing)} of {len(self.names)}): {listed(missing)}."
        if not lacking:
            return items
        return (
            f"{items} Only the labels of {listed(lacking)} are missing: write them with "
            "add_labels. In a resumed job, done() is False for these items."
        )

    def close(self) -> None:
        """Mark the store complete if all parts are written, and move it to its path.

        Without labels, leave this to the last living writer that has written a part, with a
        warning, because these writers may add labels.
        Raises `OutputError` if items are missing that no other process will write.
        """
        if not self.open:
            return
        self.open, warning = False, ""
        try:
            with suppress(FileNotFoundError), self._claims.leaving() as others:
                parts = self._claims.written()
                of_samples, of_labels = self._missing(parts)
                if of_samples or of_labels:
                    if not others and self._ranks == 1:
                        raise OutputError(
                            f"{cut(self.path)}: {self._missing_text(of_samples, of_labels)} The "
                            f"store stays unfinished; continue with {self._options()}. {HINT}"
                        )
                elif "0.labels" in parts or not any(map(self._claims.may_write, others)):
                    self._complete()  # with labels of all items, or of none
                    if self._only_closes and "0.labels" not in parts:
                        warning = _WITHOUT_LABELS
                else:
                    warning = _WAITS
        finally:
            self._claims.leave(clean=False)
        if warning:
            warnings.warn(f"{cut(self.path)}: {warning}", UserWarning, stacklevel=3)

    def _options(self) -> str:
        """Return the options that continue this store."""
        replaces = self.store.root != self._final and zw.is_taken(self._final)
        return "resume=True and overwrite=True" if replaces else "resume=True"

    def abandon(self) -> None:
        """Leave the store unfinished, so that a later job can resume it."""
        if self.open:
            self.open = False
            self._claims.leave(clean=False)

    def _complete(self) -> None:
        if not self._claims.take(_END):  # without system locks, two may try
            return
        with self.releasing(_END):
            self._claims.remove_partial_chunks()
            zw.mark_complete(self.store.root)
            if self.store.root != self._final:
                zw.publish(self.store.root, self._final)
                self._claims.moved(self._final)
        self._claims.end()
        _clear_leftovers(self._final)

    def _all_of(self, index: int, parts: set[str]) -> bool:
        return f"{index}.all" in parts or all(f"{index}.{t}" in parts for t in range(self._samples))


def _any_labels(parts: Collection[str]) -> bool:
    """Return whether the labels of an item are among the parts."""
    return any(part.endswith(".labels") for part in parts)
