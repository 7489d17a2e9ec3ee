"""What all evaluating commands have in common: paths, inputs, outputs, and one call of `evaluate`.

A command's own file declares only its own options, named as the fields of its settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import typer

from uqeval.cli import options as o
from uqeval.errors import UsageError

_INPUTS = (
    "ignore_index", "names", "classes", "label_map", "sum_tolerance", "missing_chunks", "limit",
    "part", "nan_samples",
)  # fmt: skip
_CUTS = ("ci", "slices", "slice_by", "group_by", "draws", "seed")
#: Options that make sense for one kind of data only.
_ONLY = {
    "classes": ("ignore_index", "classes", "label_map", "sum_tolerance"),
    "regression": ("nan_samples",),
}


def _shared(
    output: o.Output = None,
    csv: o.Csv = None,
    format: o.Stdout = o.Format.table,
    states: o.States = None,
    quiet: o.Quiet = False,
    store: o.StoreName = None,
    ignore_index: o.IgnoreIndex = None,
    names: o.Names = None,
    classes: o.Classes = None,
    label_map: o.LabelMap = None,
    sum_tolerance: o.SumTolerance = None,
    missing_chunks: o.MissingChunks = o.Missing.error,
    nan_samples: o.SkipNan = o.NanSamples.error,
    limit: o.Limit = None,
    part: o.Part = None,
    ci: o.Ci = None,
    slices: o.Slices = None,
    slice_by: o.SliceBy = None,
    group_by: o.GroupBy = None,
    draws: o.Draws = 2000,
    seed: o.Seed = 0,
    resume: o.Resume = False,
    workers: o.Workers = None,
    memory: o.Memory = "512MB",
) -> None:
    """The options of every evaluating command; only its signature is used."""


def evaluating(declared: Callable[..., None]) -> Callable[..., None]:
    """The command of the family that `declared` is named after.

    `declared` holds the family's own options in its signature and the help in its docstring; paths
    come before them and those of the shared options after that concern the family's kinds of data.
    """
    from uqeval.metrics import FAMILIES

    family = declared.__name__
    own = inspect.signature(declared).parameters
    kinds = FAMILIES[family].kinds
    hidden = {name for kind, names in _ONLY.items() if kind not in kinds for name in names}
    shared = {k: v for k, v in inspect.signature(_shared).parameters.items() if k not in hidden}
    takes = o.TargetPaths if "regression" in kinds else o.Paths
    hints = {"context": typer.Context, "paths": takes} | _hints(declared) | _hints(_shared)

    needs = "PREDS [TARGET]" if "regression" in kinds else "PREDS [LABELS]"

    def command(context: typer.Context, **given: Any) -> None:
        from uqeval.cli.finish import check_outputs, deliver, states_path
        from uqeval.cli.from_file import from_file, over, typed
        from uqeval.cli.progress import progress_for
        from uqeval.run import evaluate

        settings = o.given(**{name: given[name] for name in own})
        inputs = o.given(**{name: given[name] for name in (*_INPUTS, *_CUTS) if name in shared})
        running = {name: given[name] for name in ("workers", "memory")}
        beside = states_path(given["output"], given["states"], given["resume"])
        if given["paths"]:
            if given["store"]:
                raise UsageError("--store is for a store of uqeval.yaml; give it, or paths.")
            check_outputs(given["output"], given["csv"], beside, inputs=given["paths"])
            predictions: str | list[str] | None
            predictions, labels = o.split_paths(given["paths"])
        else:
            said, here = from_file(family, kinds, needs, given["store"]), typed(context)
            settings = over(said.settings, settings, here)
            inputs, running = over(said.inputs, inputs, here), over(said.running, running, here)
            check_outputs(given["output"], given["csv"], beside, inputs=said.store.paths())
            predictions, labels = said.store.predictions, said.store.truth
        report = evaluate(
            predictions, labels, {family: settings}, states=beside, workers=running["workers"],
            resume=given["resume"], memory=o.parse_memory(running["memory"]),
            progress=progress_for(given["quiet"]), **inputs,
        )  # fmt: skip
        deliver(report, given["output"], given["csv"], given["format"], given["quiet"])

    keyword = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("context", keyword)
    paths = inspect.Parameter("paths", keyword, default=None)
    parameters = [
        context,
        paths,
        *(p.replace(kind=keyword) for p in (*own.values(), *shared.values())),
    ]
    # Typer reads both: parameters and their defaults here, what they mean from the annotations.
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(annotation=hints[p.name]) for p in parameters]
    )
    command.__annotations__ = {p.name: hints[p.name] for p in parameters}
    command.__name__ = family
    command.__doc__ = declared.__doc__
    return command


def _hints(function: Callable[..., None]) -> dict[str, Any]:
    found = get_type_hints(function, include_extras=True)
    found.pop("return")
    return found
