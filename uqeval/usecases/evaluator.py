"""Evaluate predictions inside a validation loop, without a store of samples."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from uqeval.argument_types import checks_types
from uqeval.arrays import Maps
from uqeval.disk.files import read_json
from uqeval.disk.locks import temporary
from uqeval.errors import (
    DataError,
    OutputError,
    UsageError,
    cut,
    listed,
    number_of,
    quoted,
)
from uqeval.inputs import open_inputs
from uqeval.inputs.options import InputOptions
from uqeval.maps.names import stored_name
from uqeval.stores.described import ordered
from uqeval.stores.kinds import forms_of
from uqeval.stores.map_cache import has_room
from uqeval.stores.writing.item_axis import of_places, refuse_other_items
from uqeval.stores.zarr import writer as zw
from uqeval.stores.zarr.writer import item_folder, open_array
from uqeval.usecases.evaluator_plan import (
    PATH,
    check_form,
    named_as_evaluator,
    planned_attributes,
)
from uqeval.usecases.plans import refuse_other_kinds

if TYPE_CHECKING:
    from uqeval.records.report import Report
    from uqeval.stores.writing.new_store import NewStore

#: The file that marks the folder of an evaluator, and has its warnings.
_MARK = "evaluator.json"
#: Arguments of `uqeval.evaluate` that an evaluator got before its report.
_ELSEWHERE = {
    "predictions": "update (as probs=)", "labels": "update", "names": "update",
    **dict.fromkeys(
        ("metrics", "kind", "class_names", "ignore_index", "sum_tolerance"), "Evaluator"
    ),
}  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


def _one_at_a_time(method: F) -> F:
    """Make a method of `Evaluator` wait until no other thread is in one of them."""

    @wraps(method)
    def waiting(self: Evaluator, *args: Any, **keywords: Any) -> Any:
        with self._lock:
            return method(self, *args, **keywords)

    return waiting  # type: ignore[return-value]


class Evaluator:
    """Evaluation of class predictions inside a validation loop, without a store of samples::

        with uqeval.Evaluator({"pavpu": {"window": 8}, "failure": {}}) as evaluator:
            for images, labels, names in loader:
                evaluator.update(predict(images), labels, names)
            report = evaluator.report(ci=0.95)

    `metrics`: families as `uqeval.evaluate` takes them. `kind`: the content of `probs` in `update`,
    "probs" or "logits". `scratch`: a folder for temporary files (default: that of the system).
    Options: `class_names`, `ignore_index` (255), `sum_tolerance`.

    Keeps the maps that the metrics read in `folder`, never the probabilities of the samples. They
    take 2 bytes per pixel for predicted and true class, 4 for each map of uncertainty, and 4 for
    each class if a metric reads the mean probabilities, as `calibration` does. `annotators` takes 1
    byte for each sample and each annotator. `scratch_bytes` is their number before compression.
    `close` removes the folder, and so does the end of the process.

    Several threads may use it: each call waits for the one before. `merge` reads a folder that no
    other process changes meanwhile.

    The report has the bits of `uqeval.evaluate` for the same items in the order of their names, in
    a store of maps (`uqeval reduce`), however they were divided among updates and processes.
    """

    @checks_types()
    def __init__(
        self,
        metrics: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] = ("pavpu",),
        *,
        kind: Literal["probs", "logits"] = "probs",
        scratch: str | Path | None = None,
        class_names: Sequence[str] | None = None,
        ignore_index: int | None = None,
        sum_tolerance: float | None = None,
    ) -> None:
        refuse_other_kinds(metrics)
        self._metrics, self._kind = metrics, kind
        self._options: dict[str, Any] = {
            "class_names": class_names, "ignore_index": ignore_index,
            "sum_tolerance": sum_tolerance,
        }  # fmt: skip
        self._lock = RLock()
        self._open = ExitStack()
        #: The folder of the maps, which `merge` accepts from other processes on the same file
        #: system.
        self.folder = self._open.enter_context(temporary(scratch))
        self._warnings: list[str] = []
        (self.folder / _MARK).write_text("{}")
        self.scratch_bytes = 0
        #: The items in the order in which they came; the set is for look-ups.
        self._order: list[str] = []
        self._names: set[str] = set()
        self._repeated: list[str] = []
        self._store: NewStore | None = None
        self._maps: tuple[str, ...] = ()
        self._attributes: dict[str, Any] = {}

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @_one_at_a_time
    def close(self) -> None:
        """Remove the folder with the maps."""
        self._open.close()

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self._names)

    @checks_types("names")
    @_one_at_a_time
    def update(self, probs: Any, labels: Any, names: Iterable[str | int]) -> int:
        """Add items; return how many were new.

        `probs` [item, sample, class, y, x], or [item, class, y, x] for one sample; `labels`
        [item, y, x], class ids, or of several annotators [item, annotator, y, x]; `names`: one per
        item. Arrays and tensors of any framework, which the caller may reuse afterwards. Ignores an
        item with the name of an earlier one, because distributed samplers repeat items to fill the
        last batch; the report has a warning with their number.

        Raises `DataError` for values that cannot be evaluated, `StoreError` if coordinates show
        other items than `names`, `OutputError` if the disk is full or a name is too long for a
        folder. The items added before stay.
        """
        self._check_open()
        described = (
            ordered(probs, "probs", forms_of("probs")),
            ordered(labels, "labels", forms_of("labels"), t_is_item=True),
        )
        values, ids = (own.values for own in described)
        item_names = [str(name) for name in names]
        if not values.shape[:1] == ids.shape[:1] == (len(item_names),):
            raise DataError(
                f"an update of {number_of(len(item_names), 'name')}, probs {list(values.shape)} "
                f"and labels {list(ids.shape)}; expected the same number of items in each."
            )
        known = self._names.union(item_names)
        for own, where in zip(described, ("probs", "labels"), strict=True):
            refuse_other_items(own, item_names, known, where)
        new, repeated = self._new(item_names)
        if not new:
            self._repeated += repeated
            return 0
        own_names = [item_names[k] for k in new]
        zw.refuse_long_names(own_names)
        stack, truth = (of_places(own, new) for own in described)
        inputs = open_inputs(
            {self._kind: stack, "labels": truth}, None,
            InputOptions(names=own_names, **self._options),
        )  # fmt: skip
        if not self._names:
            self._begin(planned_attributes(inputs, self._metrics, self.folder))
        check_form(inputs, self._attributes)
        source = inputs.source
        source.want(self._maps)
        with self._recording(inputs.warnings, repeated):
            for batch in source.batches():
                for item, maps in zip(batch, source.read(batch), strict=True):
                    self._keep(own_names[item], maps)
        return len(new)

    def _check_open(self) -> None:
        """Raise `UsageError` after `close`, which removes the folder."""
        if not (self.folder / _MARK).is_file():
            raise UsageError("the evaluator is closed; make another one.")

    def _new(self, names: Sequence[str]) -> tuple[list[int], list[str]]:
        """Return the positions of new names, and the other names."""
        new: dict[str, int] = {}
        repeated: list[str] = []
        for place, name in enumerate(names):
            if name in self._names or name in new:
                repeated.append(name)
            else:
                new[name] = place
        return list(new.values()), repeated

    def _begin(self, attributes: dict[str, Any]) -> None:
        """Make an empty store of items of this form; replace that of items that were refused."""
        from uqeval.stores.writing.new_store import NewStore

        shutil.rmtree(self.folder / "maps", ignore_errors=True)
        (self.folder / "maps").mkdir()
        zw.create_group(self.folder / "maps", attributes)
        zw.create_group(self.folder / "maps" / "items", {})
        self._attributes, self._maps = attributes, tuple(attributes["maps"])
        self._store = NewStore(self.folder / "maps", 0, self._order, dense=False)

    @contextmanager
    def _recording(self, warnings: Iterable[str], repeated: Sequence[str] = ()) -> Iterator[None]:
        """Record warnings about items that are added, each once, and the names that are repeated.

        Records nothing if no item is added, so that a refused update leaves no trace. The file of
        the warnings is for an evaluator that merges the folder.
        """
        before = len(self._names)
        try:
            yield
        finally:
            if len(self._names) > before:
                self._repeated += repeated
                self._warnings = list(dict.fromkeys([*self._warnings, *warnings]))
                (self.folder / _MARK).write_text(json.dumps({"warnings": self._warnings}))

    def _keep(self, name: str, maps: Maps) -> None:
        assert self._store is not None
        nbytes = sum(maps[kind].nbytes for kind in self._maps)
        if not has_room(self.folder, nbytes):
            raise OutputError(
                f"{self.folder}: the disk is full: item {quoted(name)} takes {nbytes:,} bytes, "
                f"{self.scratch_bytes:,} are kept. Give another folder: Evaluator(scratch=...)."
            )
        index = len(self._order)
        self._order.append(name)
        try:
            for kind in self._maps:
                self._store.put(index, stored_name(kind), maps[kind])
        except BaseException:  # an interrupt, too: remove unfinished files
            self._order.pop()
            shutil.rmtree(self.folder / "maps" / "items" / item_folder(name), ignore_errors=True)
            raise
        self._names.add(name)
        self.scratch_bytes += nbytes

    @checks_types("others")
    def merge(self, others: Iterable[Evaluator | str | Path]) -> None:
        """Add the items of other evaluators, or of their folders; the others do not change.

        For ranks on one file system: gather `evaluator.folder` of all ranks, merge the folders into
        the evaluator of one rank, then close the others. Ignores items that were added before.

        Raises `UsageError` for a folder without an evaluator, and for other settings.
        """
        others = list(others)
        locks = [own._lock for own in (self, *others) if isinstance(own, Evaluator)]
        with ExitStack() as stack:
            for lock in sorted(locks, key=id):  # in one order: two may merge each other
                stack.enter_context(lock)
            self._merge_all(others)

    def _merge_all(self, others: Sequence[Evaluator | str | Path]) -> None:
        self._check_open()
        for other in others:
            folder = other.folder if isinstance(other, Evaluator) else Path(other)
            if not (folder / _MARK).is_file():
                raise UsageError(
                    f"{cut(folder)} is not the folder of an Evaluator, or it was closed; give "
                    "evaluator.folder of one that is open."
                )
            if any((folder / "maps" / "items").glob("*/zarr.json")):  # else it has no items
                with self._recording(_document(folder / _MARK).get("warnings", ())):
                    self._merge(folder / "maps")

    def _merge(self, store: Path) -> None:
        attributes = _attributes_of(store)
        if not self._names:
            self._begin(attributes)
        if attributes != self._attributes:
            own_settings, other_settings = (
                flat["uqeval"] | flat for flat in (self._attributes, attributes)
            )
            keys = sorted((own_settings.keys() | other_settings.keys()) - {"uqeval"})
            different = [key for key in keys if own_settings.get(key) != other_settings.get(key)]
            raise UsageError(
                f"{store.parent} is of another evaluation: its {listed(different)} differ. Give "
                "all evaluators the same arguments."
            )
        for group in sorted(path for path in (store / "items").iterdir() if path.is_dir()):
            name = str(_attributes_of(group).get("name"))
            if name in self._names:
                self._repeated.append(name)
                continue
            copy = self.folder / "maps" / "items" / item_folder(name)
            try:
                shutil.copytree(group, copy)
            except BaseException as error:
                shutil.rmtree(copy, ignore_errors=True)
                if isinstance(error, OSError):
                    raise OutputError(
                        f"{self.folder}: item {quoted(name)} of {store.parent} cannot be copied "
                        f"({cut(error)}). Give another folder: Evaluator(scratch=...)."
                    ) from None
                raise
            self._order.append(name)
            self._names.add(name)
            self.scratch_bytes += sum(
                int(open_array(array).nbytes) for array in group.iterdir() if array.is_dir()
            )

    @checks_types()
    @_one_at_a_time
    def report(self, **options: Any) -> Report:
        """Return the report of all items so far; more may be added afterwards.

        Options: those of `uqeval.evaluate` that are not input options, such as `ci`, `slices`,
        `states`, `workers`; and `region`. Raises `UsageError` if there are no items.
        """
        from uqeval.records.report import for_python
        from uqeval.usecases.evaluate import evaluate

        self._check_open()
        for name in options.keys() & _ELSEWHERE.keys():
            raise UsageError(f"{name}= belongs to {_ELSEWHERE[name]}; leave it out of report.")
        if not self._names:
            raise UsageError("the evaluator has no items; call update first.")
        store = self.folder / "maps"
        with named_as_evaluator(store):
            report = evaluate(str(store), None, self._metrics, names=sorted(self._names), **options)
        inputs = dict(report.inputs)
        inputs["predictions"] = [record | {"path": PATH} for record in inputs["predictions"]]
        inputs["labels"] = inputs["labels"] | {"path": PATH}
        warnings = [
            *self._warnings, *(text.replace(str(store), PATH) for text in report.warnings)
        ]  # fmt: skip
        warnings = list(dict.fromkeys(warnings))
        if self._repeated:
            warnings.append(
                f"{number_of(len(self._repeated), 'item')} "
                f"{'was' if len(self._repeated) == 1 else 'were'} repeated and left out: "
                f"{listed([quoted(name) for name in self._repeated], 3)}. The first of each name "
                "is evaluated."
            )
        return for_python(replace(report, inputs=inputs, warnings=warnings))


def _attributes_of(group: Path) -> dict[str, Any]:
    """Return the attributes of a group that an evaluator wrote. Raises `UsageError` for others."""
    attributes = _document(group / "zarr.json").get("attributes")
    if not isinstance(attributes, dict) or not isinstance(attributes.get("uqeval", {}), dict):
        raise UsageError(f"{cut(group)} was not written by an Evaluator.")
    return attributes


def _document(file: Path) -> dict[str, Any]:
    """Return the content of a file that an evaluator wrote. Raises `UsageError` for others."""
    try:
        document = read_json(file)
    except (OSError, ValueError):
        document = None
    if not isinstance(document, dict):
        raise UsageError(f"{cut(file.parent)} was not written by an Evaluator.")
    return document
