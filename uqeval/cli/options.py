"""Commands of metric families: paths of predictions and labels, groups of shared options, the
family's options, one `evaluate` call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uqeval.cli.declared import Shared, with_options
from uqeval.cli.streams import progress_for
from uqeval.engine.options import MachineOptions
from uqeval.errors import UsageError, listed, option_name
from uqeval.inputs.options import InputOptions
from uqeval.settings import options_of
from uqeval.statistics.options import CutOptions

if TYPE_CHECKING:
    from uqeval.metrics import Family
    from uqeval.stores.contents import Contents


def _paths(shown: str, text: str) -> Any:
    """Return the declaration of the paths of a command: their names in help, and its text."""
    return typer.Argument(metavar=shown, help=text, show_default=False)


Paths = Annotated[
    list[str] | None,
    _paths(
        "PREDS... [LABELS]",
        "Store of predictions: Zarr folder, .zip or URL, .npy, .npz. Several stores are "
        "members of one ensemble. The labels come last: a folder of label PNGs, a store or a "
        ".npy; omit them if the store of predictions has `labels`.",
    ),
]
TargetPaths = Annotated[
    list[str] | None,
    _paths(
        "PREDS... [TARGET]",
        "Store of predictions (Zarr folder, .zip or URL, or .npz) with `mean` and `std` "
        "or `variance`, or `samples`. Several stores are members of one ensemble. The target "
        "comes last: a store, a .npy, or a folder of 16-bit KITTI PNGs, .npy or .pfm files; omit "
        "it if the store of predictions has it.",
    ),
]
#: The same for commands that also evaluate classes.
ClassOrTargetPaths = Annotated[
    list[str] | None,
    _paths(
        "PREDS... [TARGET]",
        "Store of predictions (Zarr folder, .zip or URL, .npy or .npz): class probabilities, "
        "or numbers (`mean` and `std` or `variance`, or `samples`). Several stores are members of "
        "one ensemble. The labels or the target come last: a folder of label PNGs, 16-bit KITTI "
        "PNGs, .npy or .pfm files, a store or a .npy; omit them if the store of predictions has "
        "them.",
    ),
]


#: Outputs and their format.
OUTPUTS = ("output", "csv", "format", "states", "quiet")
#: Input options, without those of videos and of out-of-distribution sets.
INPUTS = tuple(
    n for n, option in options_of(InputOptions).items() if option.data not in ("video", "ood")
)
#: The same without options of items and targets.
READING = tuple(
    n for n in INPUTS
    if n not in (
        "class_names", "nan_samples", "invalid", "limit", "part", "fitted", "region", "depth_map",
        "baseline_focal", "disparity", "median_scaling", "map_cache",
    )
)  # fmt: skip
#: Intervals and slices, which are computed from the states.
CUTS = tuple(options_of(CutOptions))
#: Threads, memory and resuming.
RUNNING = tuple(options_of(MachineOptions))


def data_of(paths: list[str] | None) -> dict[str, Any]:
    """Return predictions and labels as `uqeval.evaluate` takes them; empty without paths."""
    if not paths:
        return {}
    predictions, labels = split_paths(paths)
    return {"predictions": predictions, "labels": labels}


def refuse_draws_without_level(typed: Collection[str], ci: float | None) -> None:
    """Raise `UsageError` for options of intervals on the command line if there are no intervals.

    Also for a typed default value: a user who gives `--draws 2000` expects intervals.
    """
    interval_options = ("draws", "seed", "interval_method")
    typed_options = [option_name(name) for name in interval_options if name in typed]
    if typed_options and ci is None:
        raise UsageError(
            f"no effect without intervals: {' and '.join(typed_options)}; give --ci LEVEL, such as "
            f"--ci 0.95, or leave out {' and '.join(typed_options)}."
        )


def split_paths(
    paths: Sequence[str | Contents], labels_alone: bool = False
) -> tuple[list[Contents], Contents | None]:
    """Open the paths: predictions, then labels or a target if the last path holds these.

    The kind of files, the name, the dtype and the axes of an array decide, never its values. Raises
    `UsageError` for labels or a target before the last path, or without predictions; `StoreError`
    for a path that cannot be opened.
    """
    from uqeval.stores.store import contents_of

    stores = [contents_of(path) for path in paths]
    for store in stores[:-1] or stores:
        _refuse_video(store)
    truth = [store.is_truth() for store in stores]
    if len(stores) == 1 and truth[0] and labels_alone:
        return stores, None
    if len(stores) == 1 and truth[0]:
        raise UsageError(
            f"{stores[0]} holds {_noun(stores[0])}; give the predictions before them."
            + _how_to_name_or_pack(stores)
        )
    if any(truth[:-1]) and not _predictions_of(stores):
        wrong = stores[truth.index(True)]
        noun = _noun(wrong)
        raise UsageError(
            f"{wrong} holds {noun}, and {stores[-1]} follows it; give one store of {noun}, after "
            "all predictions." + _how_to_name_or_pack(stores)
        )
    if truth[-1]:
        return stores[:-1], stores[-1]
    return stores, None


def _refuse_video(store: Contents) -> None:
    """Raise `UsageError` for frames of a video in place of predictions."""
    if not (Path(store.path) / "frames").is_dir() and "frames" not in store.kinds:
        return
    from uqeval.inputs.video_stores import frames_in, has_predictions

    if what := frames_in(store):
        video = quote(store.path)
        advice = (
            f"Check it with `uqeval inspect {video}`, or evaluate it with `uqeval tc {video}`."
            if has_predictions(store.path)
            else f"Give its predictions after it: `uqeval inspect {video} PREDS` checks both, "
            f"`uqeval tc {video} PREDS` evaluates them."
        )
        raise UsageError(f"{store} has {what}, so it looks like a video. {advice}")


def _predictions_of(stores: Sequence[Contents]) -> bool:
    """Return whether all stores but the last hold class predictions, and the last one labels.

    A store alone may be either. Ids before ids are predicted classes; numbers [N, C] or [N, T, C]
    before ids are class probabilities.
    """
    *before, last = stores
    if not last.is_labels():
        return False
    if before[0].is_labels():
        return len(before) == 1 and before[0].may_be_predictions()
    return all(
        not store.is_truth() or (store.may_be_predictions() and not store.is_labels())
        for store in before
    )


def _how_to_name_or_pack(stores: Sequence[Contents]) -> str:
    """Return a hint for a target without predictions of a known name, for separate files of mean
    and standard deviation, or for a lost item axis."""
    for store in stores:
        if store.is_truth() and (store.kinds - {"target", "valid", "labels", "names"}):
            return (
                f" {store} holds {listed(sorted(store.kinds), 12)}. Predicted numbers are arrays "
                "called `mean` (with `std`, …) or `samples`, class predictions `probs` or `logits`."
            )
    loose = [store for store in stores if _noun(store) == "targets" and _is_loose(store.path)]
    if not loose:
        return ""
    hint = (
        " A folder of .npy files holds targets, one file per item, unless its folders are called "
        "mean/, std/ and target/."
    )
    if loose[0].unnamed is not None:
        shape = loose[0].unnamed.shape
        hint = (
            f" This array has the shape {shape}. An array without a class axis is a target; class "
            "probabilities have 4 or 5 axes, [item, (sample,) class, y, x]"
            + (": is the item axis missing?" if len(shape) == 3 else ".")
            + " Probabilities of image classification, [N, C] or [N, T, C], need their labels [N] "
            "as the last path."
        )
    return hint + (
        " Predicted numbers are one store with `mean` and `std` (or `variance`, or `samples`), "
        "[N, H, W] each: put your arrays into one with "
        'numpy.savez("preds.npz", mean=mean, std=std), and give preds.npz.'
    )


def _is_loose(path: str) -> bool:
    """Return whether a path is a .npy file, or a folder with such files."""
    return path.endswith(".npy") or any(Path(path).rglob("*.npy"))


def _noun(store: Contents) -> str:
    return "labels" if store.is_labels() else "targets"


#: Arguments and options that name inputs.
_PATHS = (
    "predictions", "labels", "reference", "video", "pseudo_labels", "names", "flow_path",
    "flow_forward_path", "slices", "threshold_from", "fit_on", "item_table", "fitted",
    "out", "ood_mask",
)  # fmt: skip
_ALL = (*OUTPUTS, "store", *INPUTS, *CUTS, "resume", *RUNNING)


def shared_by(*kinds: str) -> list[str]:
    """Return the shared options of commands that evaluate data of these `kinds`."""
    kinds_of_option = {
        name: option.data for name, option in options_of(InputOptions).items() if option.data
    }
    return [name for name in _ALL if kinds_of_option.get(name, kinds[0]) in kinds]


def command_of(name: str) -> Callable[..., None]:
    """Return the command of a family, with its paths, its options and the shared options."""
    from uqeval.metrics import FAMILIES

    family = FAMILIES[name]
    of_numbers = "regression" in family.kinds
    needs = "PREDS [TARGET]" if of_numbers else "PREDS [LABELS]"

    def command(shared: Shared, settings: dict[str, Any], paths: list[str] | None) -> None:
        evaluated(name, shared, data_of(paths), settings, needs)

    of_both = of_numbers and "classes" in family.kinds
    arguments_type = ClassOrTargetPaths if of_both else TargetPaths if of_numbers else Paths
    command.__name__, command.__doc__ = name, _help_of(family)
    command.__annotations__["paths"] = arguments_type
    command.__defaults__ = (None,)
    return of_family(name, *shared_by(*family.kinds))(command)


def _help_of(family: Family) -> str:
    """Return the help of a family's command: what it is about, and how shards need one pass."""
    if not family.one_pass:
        return family.about
    about, example, rest = family.about.partition("Example:")
    shards = (
        f"Shards (--part K/N) need one pass with {family.one_pass}. Otherwise, run `uqeval merge "
        "--fit` after each pass, and each shard again with --fitted (docs/states.md).\n\n"
    )
    return about + shards + example + rest


def of_family(name: str, *shared: str) -> Callable[..., Callable[..., None]]:
    """Add the options of a family, then the `shared` ones, to a command. The command gets the
    values on the command line as the dict `settings`."""
    from uqeval.metrics import FAMILIES

    return with_options(*shared, of=FAMILIES[name].settings_type, form="given")


def evaluated(
    command: str, shared: Shared, data: dict[str, Any], settings: dict[str, Any], needs: str
) -> None:
    """Evaluate one family and deliver the report.

    `data` and `settings`: the values on the command line, with the names of `uqeval.evaluate` and
    of the family's settings. Without data, those of `uqeval.yaml` apply. `needs`: the arguments
    that the error message requests if there is no such file.
    """
    from uqeval.cli.finish import deliver, states_path
    from uqeval.usecases.evaluate import evaluate_store

    states_file = states_path(shared)
    request, settings, errors = completed(command, shared, data, settings, needs, states_file)
    with errors:
        report = evaluate_store(
            metrics={command: settings}, states=states_file, resume=shared.resume,
            progress=progress_for(shared.quiet), **request,
        )  # fmt: skip
    deliver(report, shared)


def completed(
    command: str, shared: Shared, data: dict[str, Any], settings: dict[str, Any], needs: str,
    states_file: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], AbstractContextManager[None]]:  # fmt: skip
    """Return data with the shared options, and settings; without data, those of `uqeval.yaml`.

    The evaluation runs in the context that is returned as well: it names the place in the file in
    messages about its options.

    Raises `UsageError` before the work if `states_file` or the shared outputs cannot be written.
    """
    from uqeval.cli.finish import check_outputs, refuse_other_format, report_outputs
    from uqeval.cli.from_file import from_file, merged_options
    from uqeval.disk.outputs import paths_in, refuse_overlap

    request = data | shared.values_of(*INPUTS, *CUTS, *RUNNING)
    files = []
    errors: AbstractContextManager[None] = nullcontext()
    if not ("predictions" in data or "video" in data):
        from uqeval.config import FILE  # YAML is loaded only where the file is read

        from_yaml, files = from_file(command, needs, shared.store, shared.quiet), [FILE]
        settings = merged_options(from_yaml.settings, settings, shared.typed)
        everywhere = {n: v for n, v in from_yaml.everywhere.items() if n in shared.option_names}
        request = merged_options(from_yaml.data | everywhere, request, shared.typed)
        errors = from_yaml.errors(command, shared.typed)
        shares_table = len(from_yaml.config.stores) > 1
        if "slices" in everywhere and "slices" not in shared.typed and shares_table:
            request["shares_table"] = True
    elif shared.store is not None:
        positional = "a VIDEO" if "video" in data else "paths"
        raise UsageError(
            f"--store chooses a store of uqeval.yaml; leave it out, or leave out {positional}."
        )
    refuse_other_format(shared)
    # The seed of a sweep is another option, of its subsets.
    refuse_draws_without_level(shared.typed & shared.option_names, request.get("ci"))
    outputs = report_outputs(shared, states_file)
    check_outputs(*outputs, inputs=[*paths_in(read_by(request | settings)), *files])
    output_paths = [output.path for output in outputs]
    for option in ("map_cache", "flow_cache"):
        positional = f"give the output or {option_name(option)} another name"
        refuse_overlap(output_paths, [request.get(option)], positional)
    return request, settings, errors


def read_by(request: dict[str, Any]) -> list[Any]:
    """Return all paths and lists of paths that a request reads."""
    return [request[name] for name in _PATHS if request.get(name) is not None]
