"""The use case `inspect`: check a store and estimate the cost of evaluating it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.engine.options import RunOptions
from uqeval.errors import UqevalError, listed, number_of
from uqeval.inputs import Given, InputOptions, Inputs, open_inputs
from uqeval.inputs.opening import refuse_without_effect
from uqeval.inputs.video_stores import FRAMES, PREDICTIONS, inside, is_store
from uqeval.maps.contract import MapSource
from uqeval.maps.names import GREY, prediction, void_of
from uqeval.maps.sources import Source
from uqeval.stores.array import Store, StoredArray, arrays_of
from uqeval.stores.kinds import shown_axes

if TYPE_CHECKING:
    from uqeval.engine.remote import Opened

#: Number of items whose values are checked by default, spread over the store.
_SAMPLE = 3


@dataclass
class ArrayFacts:
    """One array: its metadata, its size on disk, and its number of missing chunks; None where a web
    server does not tell."""

    name: str
    shape: list[int] | str
    axes: list[str]
    dtype: str
    chunks: list[int]
    chunk_bytes: int
    stored_bytes: int | None
    logical_bytes: int
    missing_chunks: int | None


@dataclass
class Inspection:
    """Result of `inspect`. `problems` is empty for a valid store; `unchecked`: what could not be
    checked."""

    path: str
    arrays: list[ArrayFacts]
    items: int
    names: list[str] | None
    facts: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


def inspect(
    predictions: Given | Sequence[Given],
    labels: Given | None = None,
    *,
    full: bool = False,
    machine: RunOptions | None = None,
    **options: Any,
) -> Inspection:
    """Check a store: arrays, chunks, the values of a few items (`full`: of all), and the cost.

    On a cluster, the workers read the values. `problems` of the result lists errors in the store. A
    store or a folder of frames and predicted ids is a video; its items are frames. So are
    predictions with the option `video`, whose stored frames are checked, too. Raises `UqevalError`
    if the store cannot be opened. Options: those of `InputOptions`.
    """
    from uqeval.stores.store import open_store

    stores: Any = predictions if isinstance(predictions, list | tuple) else [predictions]
    folder = predictions_in_video(stores[0]) if len(stores) == 1 else None
    store = open_store(
        folder or stores[0], role="predictions", fill_missing=True,
        has_other_truth=labels is not None,
    )  # fmt: skip
    fill = options.get("missing_chunks") == "fill"
    inspection = _inspect_store(store, fill)
    video = options.get("video")
    if video is None and "labels" in store.arrays and len(store.arrays) == 1:
        return inspection
    if video is not None:
        inspection.path = f"{video} {inspection.path}"
    if video is not None and is_store(video):
        of_frames = _inspect_store(open_store(video, role="frames", fill_missing=True), fill)
        for name in ("arrays", "problems", "warnings", "unchecked"):
            setattr(inspection, name, getattr(of_frames, name) + getattr(inspection, name))
    has_both = len(stores) == 1 and {"frames", "predictions"} <= store.arrays.keys()
    is_video = folder is not None or has_both
    if is_video:
        inspection.path = str(stores[0])
        options = options | {"video": stores[0]}
    try:
        filled = InputOptions(**options | {"missing_chunks": "fill"})
        inputs = open_inputs(
            None if is_video else predictions, labels, filled, reference_follows=True
        )
    except UqevalError as error:
        inspection.problems.append(str(error))
        return inspection
    refuse_without_effect(InputOptions(**options), inputs)
    inspection.warnings = [*dict.fromkeys(inspection.warnings + inputs.warnings)]
    source = inputs.source
    if options.get("names") is not None:
        inspection.names = list(source.names)
    inspection.facts |= _facts(inputs, options.get("class_names"))
    # The message about missing chunks is enough; errors in their fill values would repeat it.
    if not inspection.problems:
        _values(inspection, inputs, full, machine or RunOptions())
    return inspection


def _facts(inputs: Inputs, class_names: Sequence[str] | None) -> dict[str, Any]:
    """Return what is known of inputs without reading values, as rows of a table."""
    source, record = inputs.source, inputs.record
    facts: dict[str, Any] = {"kind": source.kind}
    if inputs.video is None:
        if record["samples"] is not None:  # a maps store has none
            facts["samples"] = record["samples"]
    else:
        facts |= {"pairs": source.items, "sequences": len(inputs.video.rows)}
    if class_names is not None:
        facts["class_names"] = list(class_names)
    if source.kind == "classes" or record.get("classes") is not None:
        # Of IN and OUT, whose source has the sets as classes: the classes of the network.
        classes = inputs.inner_classes or _sources(source)[0].classes
        facts |= {"classes": classes, "ignore_index": inputs.ignore_index}
    if "sets" in record:
        facts["sets"] = [f"{s['name']} ({number_of(s['items'], 'item')})" for s in record["sets"]]
    facts |= record["predictions"][0].get("converted") or {}
    facts["ground truth"] = "yes" if _truth(source) else "none given"
    return facts


def predictions_in_video(path: Given) -> str | None:
    """Return the folder `predictions` of a folder that also has `frames`; None for other stores."""
    if not isinstance(path, str | Path) or not Path(path).is_dir():
        return None
    frames, predictions = inside(path, FRAMES), inside(path, PREDICTIONS)
    return None if frames is None or predictions is None else str(predictions)


def _truth(source: MapSource) -> bool:
    return any(getattr(source, name, None) is not None for name in ("labels", "target"))


def _readable(source: MapSource) -> list[str]:
    """Return maps that require reading all values of the source."""
    truth = ["label"] if _truth(source) else []
    if source.kind == "video":
        return [GREY, prediction(0), *truth]
    if source.kind == "regression":
        return ["mean", "sigma", *truth]
    readable = [set(_of_classes(own)) for own in _sources(source)]
    return sorted(set.intersection(*readable)) + truth


def _sources(source: MapSource) -> list[Source]:
    """Return the sources of class predictions: those of IN and OUT, or a single one."""
    inner: Any = getattr(source, "inner", source)  # of regions
    return getattr(inner, "sources", [inner])


def _of_classes(source: Source) -> Iterable[str]:
    if source.stack:
        return ["entropy", "confidence"]
    stored = source.stored.items()
    readable = {name for name, planes in stored if planes.arrays[0].dtype.kind == "f"}
    if "mean_probs" in source.stored:  # integers have a scale
        readable |= {"mean_probs", "confidence"}
    return readable


def _inspect_store(store: Store, fill: bool) -> Inspection:
    """Return the facts in the metadata; missing chunks are problems unless `fill`."""
    arrays = []
    warnings = list(store.warnings)
    problems: list[str] = []
    for name, parts in store.arrays.items():
        distinct = arrays_of(parts)
        missing = _check_chunks(distinct, fill, problems, warnings)
        arrays.append(_array_facts(name, distinct, missing))
    unknown = [array.name for array in arrays if array.missing_chunks is None]
    facts: dict[str, Any] = {
        key: store.attributes[key]
        for key in ("class_names", "sample_kind", "ignore_index")
        if key in store.attributes
    }
    if store.unlisted:
        warnings.append(
            f"{store.path}: a web server cannot list arrays, so this shows only those that uqeval "
            "knows. It finds others if an option names them (--uncertainty, --region map:NAME, "
            "--maps)."
        )
    items = max(len(parts) for parts in store.arrays.values())
    return Inspection(
        store.path, arrays, items, list(store.names) if store.names else None, facts,
        problems=problems, warnings=warnings,
        unchecked=[f"missing chunks of {listed(unknown)}"] if unknown else [],
    )  # fmt: skip


def _check_chunks(
    arrays: Sequence[StoredArray], fill: bool, problems: list[str], warnings: list[str]
) -> int | None:
    """Return how many chunks of the arrays of one name are missing, None if it is unknown; add
    their problems."""
    missing = 0
    is_known = True
    wrong: list[str] = []
    for array in arrays:
        try:
            if (positions := array.missing()) is None:
                is_known = False
            else:
                missing += len(positions)
            wrong += [f"{array.where}: {text}" for text in array.wrong_lengths()]
        except UqevalError as error:
            problems.append(str(error))
    if wrong:
        problems.append(
            f"{number_of(len(wrong), 'chunk')} of a wrong length: {listed(wrong, 3)}. Copy "
            "them again from where they were written, or write them again."
        )
    if missing:
        total = sum(array.chunk_count for array in arrays)
        text = f"{arrays[0].where}: {missing} of {total} chunks are missing; "
        if fill:
            warnings.append(f"{text}they are read as the fill value (--missing-chunks fill).")
        else:
            problems.append(
                f"{text}{arrays[0].format_name} would read them as the fill value. Write them "
                f"again, {arrays[0].write_all_chunks}, or give --missing-chunks fill if that is "
                "what they hold."
            )
    return missing if is_known else None


def _array_facts(name: str, arrays: Sequence[StoredArray], missing: int | None) -> ArrayFacts:
    """Return the metadata of the arrays of one name."""
    first = arrays[0]
    itemsize = first.dtype.itemsize
    sizes = [array.stored_bytes() for array in arrays]
    chunk = math.prod(min(c, s) for c, s in zip(first.chunks, first.shape, strict=True))
    return ArrayFacts(
        name,
        list(first.shape) if len(arrays) == 1 else f"{len(arrays)} arrays",
        shown_axes(name, first.axes),
        str(first.dtype),
        list(first.chunks),
        chunk * itemsize,
        None if None in sizes else sum(filter(None, sizes)),
        sum(math.prod(a.shape) for a in arrays) * itemsize,
        missing,
    )


@dataclass
class _Read:
    """What reading some items has found; the first batch compiles kernels, and is not timed."""

    items: int = 0
    pixels: int = 0
    void: int = 0
    confident: int = 0
    timed_items: int = 0
    seconds: float = 0.0
    bytes: int = 0
    problems: list[str] = field(default_factory=list)

    def __add__(self, other: _Read) -> _Read:
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return _Read(*(a + b for a, b in pairs))


def _values(inspection: Inspection, inputs: Inputs, full: bool, machine: RunOptions) -> None:
    """Read some items with all checks; estimate from that the cost of all."""
    source, cluster = inputs.source, machine.cluster
    names = _readable(source)
    source.want(names)
    batches = source.batches()
    if not full and len(batches) > _SAMPLE:
        batches = [batches[round(i * (len(batches) - 1) / (_SAMPLE - 1))] for i in range(_SAMPLE)]
    need = max(source.batch_bytes(batch) for batch in batches)
    threads = machine.threads() if cluster is None else machine.workers or 1
    fits = max(min(threads, machine.memory // need), 0)
    machine.progress.begin("checking values", sum(len(batch) for batch in batches))
    try:
        if cluster is None:
            read = _read(inputs, batches, machine.progress.advance)
        else:
            executor = cluster.executor(inputs, machine, names)
            try:
                read = _Read()
                for items, part, nbytes in executor.each(_read_job, None if full else batches):
                    read += part
                    machine.progress.advance(nbytes, len(items))
            finally:
                executor.end()
    finally:
        machine.progress.end()
    try:
        inputs.watch.check_all()
    except UqevalError as error:
        read.problems.append(str(error))
    inspection.problems += dict.fromkeys(read.problems)  # two pairs read a frame
    parallel = max(fits, 1) * (1 if cluster is None else max(cluster.workers, 1))
    inspection.values = {"items_checked": read.items, "pixels": read.pixels}
    if "confidence" in names:
        inspection.values["confidence_1"] = read.confident
    if _truth(source):
        inspection.values["void"] = read.void
    total = read.seconds / max(read.timed_items, 1) * source.items
    inspection.cost = {
        "bytes_a_worker": need,
        "workers_within_memory": fits,
        "seconds_estimated": total / parallel,
        "bytes_a_second": read.bytes / read.seconds if read.seconds else None,
    }
    if fits == 0:
        inspection.problems.append(
            f"{source.where}: one decoded chunk with its accumulators and maps takes "
            f"{-(-need // 10**6)}MB; give --memory {-(-need // 10**6)}MB, or store smaller chunks."
        )


def _read_job(opened: Opened) -> _Read:
    """Read the items of a job with all checks, on a worker of a cluster."""
    return _read(opened.inputs, opened.batches, opened.advance)


def _read(inputs: Inputs, batches: Sequence[range], advance: Callable[[int, int], None]) -> _Read:
    """Read some batches with all checks."""
    source, read = inputs.source, _Read()

    def heartbeat(n: int) -> None:
        read.bytes += n
        advance(n, 0)

    began = time.perf_counter()
    for number, batch in enumerate(batches):
        try:
            with inputs.watch.reading(batch):
                batch_maps = source.read(batch, heartbeat)
            for maps in batch_maps:
                read.pixels += next(iter(maps.values())).size
                if "label" in maps:
                    read.void += int((maps["label"] == void_of(source.classes)).sum())
                if "confidence" in maps:
                    read.confident += int((maps["confidence"] == 1).sum())
        except UqevalError as error:
            read.problems.append(str(error))
        read.items += len(batch)
        if number == 0 and len(batches) > 1:
            began, read.bytes = time.perf_counter(), 0
        else:
            read.timed_items += len(batch)
        advance(0, len(batch))
    read.seconds = time.perf_counter() - began
    return read
