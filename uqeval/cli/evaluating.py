"""Commands of metric families: paths, the family's and shared options, one `evaluate` call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options
from uqeval.cli.streams import progress_for
from uqeval.errors import UsageError, option_name
from uqeval.inputs.options import InputOptions
from uqeval.settings import options_of

if TYPE_CHECKING:
    from uqeval.metrics import Family

#: Arguments and options that name inputs.
_PATHS = (
    "predictions", "labels", "reference", "video", "pseudo_labels", "names", "flow_path",
    "flow_forward_path", "slices", "threshold_from", "fit_on", "item_table", "fitted",
    "out", "ood_mask",
)  # fmt: skip
_ALL = (*o.OUTPUTS, "store", *o.INPUTS, *o.CUTS, "resume", *o.RUNNING)


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
        evaluated(name, shared, o.data_of(paths), settings, needs)

    of_both = of_numbers and "classes" in family.kinds
    arguments_type = o.ClassOrTargetPaths if of_both else o.TargetPaths if of_numbers else o.Paths
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

    request = data | shared.values_of(*o.INPUTS, *o.CUTS, *o.RUNNING)
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
    o.refuse_draws_without_level(shared.typed & shared.option_names, request.get("ci"))
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
