"""Compute reports of random data with random settings in two ways, and compare every value.

`python benchmarks/random_routes.py --reports 200 --seed 1` prints each value that is not the same,
with the seed and the way (`ROUTES`), and the number of reports by way. Exit status 1 if there are
any. Data and settings are those of `random_settings.py`.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np

import uqeval
from benchmarks import campaigns, random_settings
from benchmarks.random_settings import KINDS, Case, Scene
from benchmarks.random_stores import FORMATS, arrays_of
from uqeval.engine.options import Silent
from uqeval.errors import UqevalError, UsageError
from uqeval.records.report import Report

_CUT = ("ci", "slices", "slice_by", "group_by", "interval_method", "draws", "seed")
#: A number in a text, such as the reason of an undefined value.
_FRACTION = re.compile(r"[0-9]+\.[0-9]+(?:e-?[0-9]+)?")
#: Fields of a report that depend on paths, on the machine or on the time.
_OF_RUN = ("schema", "uqeval_version", "inputs", "states", "states_digest", "timing")


@dataclass
class Trial:
    """A case, its report by one worker, and the bytes of its states."""

    scene: Scene
    kind: str
    case: Case
    report: Report
    states: bytes
    together: int

    @property
    def cut(self) -> dict[str, Any]:
        """Return the options of intervals and slices."""
        return {k: v for k, v in self.case.options.items() if k in _CUT}

    @property
    def uncut(self) -> dict[str, Any]:
        """Return the other options."""
        return {k: v for k, v in self.case.options.items() if k not in _CUT}

    def evaluate(self, case: Case | None = None, **options: Any) -> Report:
        """Return the report of the case, with other options."""
        return evaluated(case or self.case, **options)


def evaluated(case: Case, **options: Any) -> Report:
    """Return the report of a case by one worker; `options` in place of its own ones."""
    return case.report(**{"workers": 1, **case.options, **options})


Route = Callable[[Trial], list[str] | None]
ROUTES: dict[str, Route] = {}


def route(function: Route) -> Route:
    """Add a way to compute a report; it returns what differs, or None where it does not apply."""
    ROUTES[function.__name__.removesuffix("_")] = function
    return function


def values_of(report: Report) -> dict[str, Any]:
    """Return what does not depend on the run, as JSON gives it."""
    return {k: v for k, v in json.loads(report.to_json()).items() if k not in _OF_RUN}


def differences(first: Any, second: Any, where: str = "") -> Iterator[str]:
    """Yield the places where two JSON values differ in any bit."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in [*first, *(key for key in second if key not in first)]:
            missing = "(missing)"
            yield from differences(
                first.get(key, missing), second.get(key, missing), f"{where}.{key}"
            )
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for k, pair in enumerate(zip(first, second, strict=True)):
            yield from differences(*pair, f"{where}[{k}]")
    elif repr(first) != repr(second):
        yield f"{where}: {str(first)[:200]} and {str(second)[:200]}"


def compared(trial: Trial, other: Report, *leave_out: str) -> list[str]:
    """Return what differs between the report of a trial and another one."""
    first, second = values_of(trial.report), values_of(other)
    for name in leave_out:
        first.pop(name, None), second.pop(name, None)
    return list(differences(first, second))


def compared_cut_later(trial: Trial, other: Report) -> list[str]:
    """Return the same of a report whose slices are cut from states, some of them in bins."""
    first, second = values_of(trial.report), values_of(other)
    return [*_outside_bounds(first, second), *differences(first, second)]


def _outside_bounds(exact: dict[str, Any], in_bins: dict[str, Any]) -> Iterator[str]:
    """Yield scores of slices that are further from the exact ones than their bounds; take out
    what only one of the two reports has exactly."""
    for name, own in (in_bins.get("slices") or {}).items():
        other = exact["slices"][name]
        other.pop("approximate", None)
        for key in own.pop("approximate", []):
            scores, exact_scores = own["results"].pop(key), other["results"].pop(key)
            for score, value in scores.items():
                bound = scores.get(f"{score}_bound")
                if bound is not None and abs(value - exact_scores[score]) > bound + 1e-12:
                    yield f"{name}.{key}.{score}: {value} ± {bound} and {exact_scores[score]}"


@contextlib.contextmanager
def patched(**limits: int) -> Iterator[None]:
    """Change limits of bytes or items, so that small data are cut as large ones are."""
    from uqeval.stores.files import numpy_array
    from uqeval.stores.states import blocks
    from uqeval.stores.zarr import array

    homes = {"_BAND": array, "_TILE_BYTES": numpy_array, "_MOST_ITEMS": blocks}
    before = {name: getattr(homes[name], name) for name in limits}
    try:
        for name, value in limits.items():
            setattr(homes[name], name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(homes[name], name, value)


@route
def workers(trial: Trial) -> list[str] | None:
    """Two workers; the states have the same bytes."""
    return _run_again(trial, workers=2)


def _run_again(trial: Trial, **how: Any) -> list[str]:
    """Return what differs in the report and the states of the same run, made another way."""
    if trial.case.is_sweep:
        return compared(trial, trial.evaluate(**how))
    report = trial.evaluate(**how, states="other.zip")
    return compared(trial, report) + same_states(trial, "other.zip")


def same_states(trial: Trial, path: str) -> list[str]:
    """Return a sentence if the states differ from those of the trial."""
    same = Path(path).read_bytes() == trial.states
    return [] if same else [f"the bytes of the states differ: {_entries(trial.states, path)}"]


def _entries(first: bytes, path: str) -> list[str]:
    """Return the names of the entries that differ."""
    import io
    import zipfile

    one, two = zipfile.ZipFile(io.BytesIO(first)), zipfile.ZipFile(path)
    names = sorted({*one.namelist(), *two.namelist()})
    found = [
        {name: file.read(name) for name in file.namelist()}
        for file in (one, two)
    ]  # fmt: skip
    return [name for name in names if found[0].get(name) != found[1].get(name)]


@route
def memory(trial: Trial) -> list[str] | None:
    """The least memory that is not refused."""
    least = 1
    for _ in range(20):
        try:
            return compared(trial, trial.evaluate(memory=least, workers=trial.scene.one(1, 2)))
        except UsageError as error:
            if "memory" not in str(error):
                raise
            least *= 4
    return ["no memory was enough"]


def rewritten(trial: Trial, formats: Mapping[str, Any] = FORMATS) -> Case:
    """Return the case with all its files in other formats, in the folder `other`."""
    scene, case = trial.scene, trial.case
    Path("other").mkdir()

    def other(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(other(one) for one in value)
        if not (isinstance(value, str) and value.endswith(".npz")):
            return value
        writer = formats[scene.one(*formats)]
        return writer(scene, arrays_of(value), Path("other") / value.removesuffix(".npz"))

    names = ("out", "ood_mask", "video", "reference")
    options = {k: other(v) if k in names else v for k, v in case.options.items()}
    return replace(case, stores=other(case.stores), options=options)


@route
def formats(trial: Trial) -> list[str] | None:
    """Other chunks, codecs and files."""
    chosen = FORMATS
    if trial.kind == "video":
        chosen = {name: FORMATS[name] for name in ("zarr3", "zarr2", "npz")}
    if trial.kind == "ood":  # items of sets without names are called by their set
        nameless = [name for name in FORMATS if name not in ("zarr_items", "folder", "in_memory")]
        chosen = {name: FORMATS[name] for name in nameless}
    if len(trial.report.items) > 10 or len(trial.case.stores) > 1:
        # Names of files are sorted as text, and both stores need them.
        chosen = {k: v for k, v in chosen.items() if k not in ("zarr_items", "folder")}
    case = rewritten(trial, chosen)
    report = trial.evaluate(case, workers=trial.scene.one(1, 2))
    found = [text for text in compared(trial, report, "warnings") if "video.npz" not in text]
    return [*found, f"{case.stores} {case.options}"] if found else []


@route
def shards(trial: Trial) -> list[str] | None:
    """Shards that are counted in rounds and merged."""
    items = len(trial.report.items)
    if items < 2:
        return None
    of = trial.scene.choose.randint(2, min(items, 4))
    fitted: dict[str, str] = {}
    Path("parts").mkdir()
    case = replace(trial.case, options=trial.uncut)
    for _ in range(60):
        for k in range(1, of + 1):
            path = f"parts/{k}.states.zip"
            try:
                trial.evaluate(case, part=f"{k}/{of}", states=path, **fitted)
            except UsageError as error:
                if "not enough sequences" in str(error):  # tracks keep each whole
                    return None
                raise
        done = not uqeval.fit_shards("parts", "fitted.json").unfinished
        if done:
            break
        fitted = {"fitted": "fitted.json"}
    else:
        return ["never done"]
    return compared_cut_later(trial, uqeval.merge("parts", **trial.cut))


#: Settings of families that only count, so that runs over different items can be merged.
_COUNTED: dict[str, dict[str, Any]] = {
    "segmentation": {}, "divergence": {}, "sparsification": {"scope": "item"},
    "regression": {"ence": False, "sigma_scale": False},
    "pavpu": {"threshold": 0.3, "curve_range": "0:1", "deciles": False},
    "calibration": {
        "adaptive": False, "temperature": False, "isotonic": False, "vector": False,
        "definition": "paper", "estimator": "plug-in",
    },
}  # fmt: skip


@route
def runs(trial: Trial) -> list[str] | None:
    """Runs over different items that are merged; only families that need no fit."""
    case, items = trial.case, len(trial.report.items)
    metrics = {
        family: {**given, **_COUNTED[family]}
        for family, given in case.metrics.items()
        if family in _COUNTED
    }
    if items < 2 or case.is_sweep or trial.kind == "ood" or not metrics:
        return None
    cut, reports = trial.scene.choose.randrange(1, items), []
    for k, part in enumerate((slice(0, items), slice(0, cut), slice(cut, items))):
        stores = {
            path: f"{part.start}-{part.stop}-{path}"
            for path in (*case.stores, *filter(None, [case.options.get("reference")]))
        }
        for path, own in stores.items():
            arrays = {name: values[part] for name, values in arrays_of(path).items()}
            np.savez(own, **arrays, names=[str(i) for i in range(items)][part])
        options = dict(trial.uncut)
        if "reference" in options:
            options["reference"] = stores[options["reference"]]
        own_case = Case(tuple(stores[path] for path in case.stores), metrics, options)
        try:
            reports.append(evaluated(own_case, states=f"{k}.zip", **(trial.cut if not k else {})))
        except UqevalError:
            return None
    merged = values_of(uqeval.merge(["1.zip", "2.zip"], **trial.cut))
    return list(differences(values_of(reports[0]), merged))


@contextlib.contextmanager
def client() -> Iterator[Any]:
    """Yield a Dask client with two workers in this process."""
    import logging

    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, memory_limit=0,
            dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as one,
    ):  # fmt: skip
        yield one


_OPEN = contextlib.ExitStack()
_CLIENT: list[Any] = []


@route
def dask(trial: Trial) -> list[str] | None:
    """The workers of a Dask cluster."""
    if not _CLIENT:
        _CLIENT.append(_OPEN.enter_context(client()))
    return _run_again(trial, executor=_CLIENT[0])


class _Interrupts(Silent):
    """Interrupts a run after so many advances."""

    def __init__(self, after: int) -> None:
        self.left = after

    def advance(self, nbytes: int, items: int) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


@route
def resume(trial: Trial) -> list[str] | None:
    """A run that is interrupted, perhaps several times, and resumed."""
    if trial.case.is_sweep:
        return None
    for times in range(trial.scene.one(1, 2, 3)):
        progress = _Interrupts(trial.scene.choose.randrange(12))
        with contextlib.suppress(KeyboardInterrupt):
            trial.evaluate(states="other.zip", progress=progress, resume=times > 0)
            break
    report = trial.evaluate(states="other.zip", resume=True)
    return compared(trial, report, "warnings") + same_states(trial, "other.zip")


@route
def reuse(trial: Trial) -> list[str] | None:
    """States of an earlier run with fewer families, other settings or no intervals."""
    if trial.case.is_sweep:
        return None
    scene, case = trial.scene, trial.case
    earlier = dict(case.metrics)
    if len(earlier) > 1 and scene.often(0.5):
        del earlier[scene.one(*earlier)]
    for family in earlier:
        if scene.often(0.5):
            earlier[family] = random_settings.varied(scene, family, earlier[family])
    options = {} if scene.often(0.5) else trial.cut
    shared = {k: v for k, v in trial.uncut.items() if k != "region" or scene.often(0.7)}
    try:
        trial.evaluate(Case(case.stores, earlier, options | shared), states="other.zip")
    except UqevalError:
        return None
    report = trial.evaluate(states="other.zip")
    found = compared(trial, report) + same_states(trial, "other.zip")
    return [f"{text} after {earlier}" for text in found]


@route
def grow(trial: Trial) -> list[str] | None:
    """A set that grows: states and cached maps of its first items."""
    if len(trial.case.stores) != 1 or trial.case.is_sweep or trial.kind == "ood":
        return None
    scene, (path,) = trial.scene, trial.case.stores
    arrays = arrays_of(path)
    items = len(next(iter(arrays.values())))
    if not 1 < items < 11:
        return None
    cache = {"map_cache": "maps"} if scene.often(0.5) else {}
    earlier = scene.choose.randrange(1, items)
    case = replace(trial.case, stores=("growing",))
    folder = Path("growing")
    folder.mkdir()
    try:
        for first, last in ((0, earlier), (earlier, items)):
            for k in range(first, last):
                one = {name: values[k] for name, values in arrays.items()}
                np.savez(folder / f"{k}.npz", **one)
            time.sleep(0.03)
            with contextlib.suppress(UqevalError) if last < items else contextlib.nullcontext():
                report = trial.evaluate(case, states="other.zip", **cache)
    finally:
        shutil.rmtree(folder)
    return compared(trial, report, "warnings")


@route
def cut_later(trial: Trial) -> list[str] | None:
    """Intervals and slices of a report that was made without."""
    if not trial.cut or trial.case.is_sweep:
        return None
    trial.evaluate(replace(trial.case, options=trial.uncut), states="other.zip")
    return compared_cut_later(trial, uqeval.merge("other.zip", **trial.cut))


@route
def merged_alone(trial: Trial) -> list[str] | None:
    """`merge` of one report."""
    if trial.case.is_sweep:
        return None
    trial.evaluate(states="other.zip")
    return compared(trial, uqeval.merge("other.zip", **trial.cut))


@route
def separate(trial: Trial) -> list[str] | None:
    """Each family in a run of its own."""
    if len(trial.case.metrics) < 2:
        return None
    whole = values_of(trial.report)
    found: list[str] = []
    for family, options in trial.case.metrics.items():
        alone = values_of(trial.evaluate(replace(trial.case, metrics={family: options})))
        if trial.case.is_sweep:
            for values in (alone, whole):
                values["results"] = values["results"].get("sweep", values["results"])
        for part in ("results", "intervals", "metrics"):
            found += differences(
                alone[part], {k: v for k, v in whole[part].items() if k in alone[part]}, part
            )
        for one, together in zip(alone["items"], whole["items"], strict=True):
            found += differences(one, {k: v for k, v in together.items() if k in one}, "items")
    return found


@route
def map_cache(trial: Trial) -> list[str] | None:
    """Cached maps, written and read."""
    if trial.kind == "video" or trial.case.is_sweep:
        return None
    found = []
    for turn in ("cold", "warm"):
        report = trial.evaluate(map_cache="maps", workers=trial.scene.one(1, 2))
        found += [f"{turn}: {text}" for text in compared(trial, report)]
    return found


@route
def reduced(trial: Trial) -> list[str] | None:
    """A store of maps in place of the samples."""
    from uqeval.inputs import InputOptions, open_inputs
    from uqeval.usecases.reduce import reduce

    text = json.dumps([trial.case.metrics, trial.case.options.get("region")], default=str)
    without_maps = trial.kind in ("video", "numbers", "divergence") or trial.case.is_sweep
    # The store of maps has neither the store's own uncertainties nor its maps of regions.
    if without_maps or any(own in text for own in ('"samples"', "learned", "map:", "depth:")):
        return None
    predictions, *truth = trial.case.stores
    names = [record["name"] for record in trial.report.items]
    sets = [[name for name in names if name.startswith(f"{s}/")] for s in ("in", "out0", "out1")]
    out = trial.case.options.get("out", ())
    own = InputOptions(names=sets[0] if out else names)
    reduce(open_inputs(predictions, truth[0] if truth else None, own), "reduced.zarr")
    for k, path in enumerate(out):
        reduce(open_inputs(path, None, InputOptions(names=sets[k + 1])), f"out{k}.zarr")
    out = [f"out{k}.zarr" for k in range(len(out))]
    case = replace(
        trial.case, stores=("reduced.zarr",),
        options=trial.case.options | ({"out": out} if out else {}),
    )  # fmt: skip
    return compared(trial, trial.evaluate(case, workers=trial.scene.one(1, 2)), "warnings")


@route
def members(trial: Trial) -> list[str] | None:
    """The samples in several stores, as members of an ensemble."""
    if trial.kind in ("video", "ood"):
        return None
    predictions, *truth = trial.case.stores
    arrays = arrays_of(predictions)
    kinds = [k for k in ("logits", "probs", "mean", "log_variance", "samples") if k in arrays]
    samples = arrays[kinds[0]].shape[1]
    if samples < 2 or (trial.kind == "numbers" and arrays[kinds[0]].ndim < 4):
        return None
    cut = trial.scene.choose.randrange(1, samples)
    halves = []
    own = {k: v for k, v in arrays.items() if k not in (*kinds, "labels", "target")}
    for k, part in enumerate((slice(0, cut), slice(cut, samples))):
        halves.append(f"member{k}.npz")
        np.savez(halves[-1], **{kind: arrays[kind][:, part] for kind in kinds}, **own)
    for name in ("labels", "target"):
        if not truth and name in arrays:
            truth = ["truth.npz"]
            np.savez("truth.npz", **{name: arrays[name]})
    case = replace(trial.case, stores=(predictions, *truth))
    return compared(trial, trial.evaluate(case, predictions=halves), "warnings")


@route
def evaluator(trial: Trial) -> list[str] | None:
    """`uqeval.Evaluator`, filled in several processes and merged, with repeated items."""
    text = json.dumps(trial.case.metrics)
    if trial.kind in ("video", "numbers", "ood", "sweep", "divergence") or '"samples"' in text:
        return None
    scene, (predictions, *truth) = trial.scene, trial.case.stores
    if scene.has_maps:  # it takes no other maps
        return None
    arrays = arrays_of(predictions)
    labels = arrays_of(truth[0])["labels"] if truth else arrays["labels"]
    kind: Literal["probs", "logits"] = "logits" if "logits" in arrays else "probs"
    order = list(range(len(labels)))
    order += [scene.choose.randrange(len(labels)) for _ in range(scene.one(0, 0, 1, 3))]
    scene.choose.shuffle(order)
    with contextlib.ExitStack() as stack:
        ranks = [
            stack.enter_context(uqeval.Evaluator(trial.case.metrics, kind=kind))
            for _ in range(scene.one(1, 2))
        ]
        while order:
            batch = [order.pop() for _ in range(min(len(order), scene.one(1, 2, 3)))]
            rank = scene.one(*ranks)
            memory = scene.one(np.ascontiguousarray, np.asfortranarray)
            rank.update(memory(arrays[kind][batch]), labels[batch], batch)
        ranks[0].merge(scene.one(rank, rank.folder) for rank in ranks[1:])
        report = ranks[0].report(workers=1, **trial.case.options)
    if len(labels) > 10:  # its items are in the order of their names
        return differences_in_order(trial, report)
    return compared(trial, report, "warnings")


@route
def threshold_later(trial: Trial) -> list[str] | None:
    """Another threshold of PAvPU from the states."""
    pavpu = trial.case.metrics.get("pavpu")
    if pavpu is None or trial.case.is_sweep or isinstance(pavpu.get("threshold"), list):
        return None
    rule = trial.scene.one("range:0", "range:0.25", "range:0.5", "range:1", "max-surplus")
    metrics = {"pavpu": {**pavpu, "threshold": rule}}
    if "threshold_from" in pavpu:
        return None
    trial.evaluate(Case(trial.case.stores, {"pavpu": pavpu}, trial.uncut), states="other.zip")
    try:
        later = uqeval.merge("other.zip", threshold=rule, **trial.cut)
    except UsageError:
        return None
    whole = evaluated(Case(trial.case.stores, metrics, trial.case.options))
    found = differences(values_of(whole), values_of(later))
    allowed = ("recut_from", "accuracy_curve", ".ties", "warnings", ".settings")
    return [text for text in found if not any(name in text for name in allowed)]


@route
def threshold_from(trial: Trial) -> list[str] | None:
    """The threshold of PAvPU that the report of the same data fitted."""
    pavpu = trial.case.metrics.get("pavpu")
    if pavpu is None or trial.case.is_sweep or "threshold_from" in pavpu:
        return None
    trial.report.save("earlier.json")
    settings = {k: v for k, v in pavpu.items() if k != "threshold"}
    settings["threshold_from"] = "earlier.json"
    case = replace(trial.case, metrics={**trial.case.metrics, "pavpu": settings})
    try:
        report = trial.evaluate(case)
    except UsageError:
        return None
    return compared(trial, report, "settings", "warnings")


@route
def families_later(trial: Trial) -> list[str] | None:
    """Families that `merge` adds to a report."""
    if len(trial.case.metrics) < 2 or trial.case.is_sweep:
        return None
    added = trial.scene.one(*trial.case.metrics)
    rest = {k: v for k, v in trial.case.metrics.items() if k != added}
    trial.evaluate(replace(trial.case, metrics=rest, options=trial.uncut), states="other.zip")
    try:
        report = uqeval.merge("other.zip", metrics={added: trial.case.metrics[added]}, **trial.cut)
    except UqevalError:
        return None
    return compared(trial, report, "warnings")


@route
def blocks(trial: Trial) -> list[str] | None:
    """Small items that are counted one by one, not together."""
    with patched(_MOST_ITEMS=1 if trial.together > 1 else 256):
        return compared(trial, trial.evaluate())


@route
def config(trial: Trial) -> list[str] | None:
    """`uqeval.yaml` in place of arguments."""
    import yaml

    if trial.kind == "ood" or len(trial.case.stores) != 1 or trial.case.is_sweep:
        return None
    options = dict(trial.uncut.items())
    document = {
        "stores": {"one": {"predictions": trial.case.stores[0], **options}},
        "evaluate": {"one": dict(trial.case.metrics)},
        "output": "out",
    }
    Path("uqeval.yaml").write_text(yaml.safe_dump(document))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of the libraries that draw the page
        uqeval.run_config("uqeval.yaml", workers=1, **trial.cut)
    return compared(trial, Report.load("out/one.json"), "settings", "warnings")


@route
def order(trial: Trial) -> list[str] | None:
    """The items in another order: what is not a sum of floats has the same bits."""
    items = len(trial.report.items)
    if items < 2 or trial.kind == "video":
        return None
    permuted = list(range(items))
    trial.scene.choose.shuffle(permuted)
    count = 0

    def other(value: Any) -> Any:
        nonlocal count
        if isinstance(value, list | tuple):
            return type(value)(other(one) for one in value)
        if not (isinstance(value, str) and value.endswith(".npz")):
            return value
        count += 1
        arrays = {k: v[permuted] for k, v in arrays_of(value).items()}
        np.savez(f"ordered{count}.npz", **arrays, names=np.array([str(k) for k in permuted]))
        return f"ordered{count}.npz"

    case = trial.case
    options = {
        k: other(v) if k in ("ood_mask", "reference") else v for k, v in case.options.items()
    }
    if "out" in options:
        return None
    report = trial.evaluate(replace(case, stores=other(case.stores), options=options))
    return differences_in_order(trial, report)


def differences_in_order(trial: Trial, report: Report) -> list[str]:
    """Return what differs between reports of the same items in another order."""
    first, second = values_of(trial.report), values_of(report)
    second["items"].sort(key=lambda record: int(record["name"]))
    for part in (second.get("slices") or {}).values():
        part["names"].sort(key=int)
    for name in ("warnings", "settings"):
        del first[name], second[name]
    return list(near(first, second))


def near(first: Any, second: Any, where: str = "") -> Iterator[str]:
    """Yield the places where two JSON values differ, floats by more than 1e-9, in texts too."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in [*first, *(key for key in second if key not in first)]:
            yield from near(first.get(key, "-"), second.get(key, "-"), f"{where}.{key}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for k, pair in enumerate(zip(first, second, strict=True)):
            yield from near(*pair, f"{where}[{k}]")
    elif isinstance(first, float) and isinstance(second, float):
        if not abs(first - second) <= 1e-9 * max(abs(first), abs(second), 1e-3):
            yield f"{where}: {first!r} and {second!r}"
    elif isinstance(first, str) and isinstance(second, str) and first != second:
        texts = [_FRACTION.split(text) for text in (first, second)]
        numbers = [[float(n) for n in _FRACTION.findall(text)] for text in (first, second)]
        if texts[0] != texts[1] or any(near(numbers[0], numbers[1])):
            yield f"{where}: {first[:200]} and {second[:200]}"
    elif first != second:
        yield f"{where}: {str(first)[:200]} and {str(second)[:200]}"


def drawn(kind: str, seed: int) -> tuple[Scene, Case, Case]:
    """Write the data of a case to the working folder. Return the case with further options, which
    may exclude each other, and without them."""
    scene = Scene(seed)
    case = KINDS["classes" if kind == "sweep" else kind](scene)
    options = dict(case.options)
    if kind == "sweep":
        options = {"repeats": scene.one(1, 3)}
    elif scene.often(0.4):
        options |= {"ci": scene.one(0.9, 0.95), "draws": 200}
    if kind != "sweep" and scene.often(0.3):
        random_settings.write_slices(scene, kind)
        options["slices"] = "meta.csv"
        if "ci" in options and scene.often(0.5):
            options["group_by"] = "drive"
    plain = Case(case.stores, case.metrics, options, is_sweep=kind == "sweep")
    metrics = {
        family: random_settings.varied(scene, family, given) if scene.often(0.6) else given
        for family, given in case.metrics.items()
    }
    return scene, replace(plain, metrics=metrics), plain


def trial_of(kind: str, seed: int, together: int) -> Trial | None:
    """Return a case and its report; None for data or settings that are refused."""
    scene, case, plain = drawn(kind, seed)
    time.sleep(0.025)  # files younger than 20 ms cannot be proved unchanged
    for attempt in (case, plain):
        states = {} if case.is_sweep else {"states": "first.zip"}
        with contextlib.suppress(UqevalError):
            report = evaluated(attempt, **states)
            data = b"" if case.is_sweep else Path("first.zip").read_bytes()
            return Trial(scene, kind, attempt, report, data, together)
    return None


@dataclass(frozen=True)
class Outcome:
    """What differs between two ways to compute a report; None if there was none to compare."""

    kind: str
    seed: int
    route: str
    problems: list[str] | None


def outcome_of(kind: str, seed: int, routes: Sequence[str]) -> Outcome:
    """Compute a report in two ways in the working folder: by one worker, and by the first of the
    ways in random order that applies."""
    together = Random(seed).choice((256, 256, 1, 2))
    with patched(_MOST_ITEMS=together):
        trial = trial_of(kind, seed, together)
        if trial is None:
            return Outcome(kind, seed, "-", None)
        small = {"_BAND": 64, "_TILE_BYTES": 64} if trial.scene.often(0.3) else {}
        with patched(**small):
            for name in trial.scene.choose.sample(list(routes), len(routes)):
                found = ROUTES[name](trial)
                if found is not None:
                    return Outcome(kind, seed, name, found)
    return Outcome(kind, seed, "-", None)


def trials(
    reports: int, seed: int, routes: Sequence[str], kinds: Sequence[str] = (*KINDS, "sweep")
) -> Iterator[Outcome]:
    """Yield the outcomes of so many cases, each in a temporary folder."""
    for number in range(seed * 1_000_000, seed * 1_000_000 + reports):
        kind = kinds[number % len(kinds)]
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                yield outcome_of(kind, number, routes)
            except Exception:
                yield Outcome(kind, number, "error", [traceback.format_exc()])


def main() -> int:
    """Run the cases that the options name; return the exit status."""
    parser = campaigns.parser(__doc__, reports=200)
    parser.add_argument("--route", choices=tuple(ROUTES), help="only this way")
    parser.add_argument("--kind", choices=(*KINDS, "sweep"), help="only this kind of data")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else [*KINDS, "sweep"]
    routes = [options.route] if options.route else list(ROUTES)
    outcomes = trials(options.reports, options.seed, routes, kinds)
    return campaigns.summarize(
        (f"{own.kind} by {own.route}", own.seed, own.problems) for own in outcomes
    )


if __name__ == "__main__":
    with _OPEN:
        status = main()
    raise SystemExit(status)
