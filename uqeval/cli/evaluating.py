"""The commands of families: paths, the family's options, shared options, one call of `evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uqeval.cli import options as o
from uqeval.cli.taking import parameters_of, signed, taking
from uqeval.errors import UsageError

#: Shared options that make sense for one kind of data only.
_ONLY = {
    "classes": (
        "ignore_index", "classes", "class_names", "kind", "label_map", "sum_tolerance",
    ),
    "regression": ("nan_samples", "invalid"),
}  # fmt: skip
#: What is read.
_PATHS = (
    "predictions", "labels", "reference", "video", "pseudo_labels", "names", "flow_path",
    "flow_forward_path", "slices", "threshold_from", "fit_on",
)  # fmt: skip
_ALL = (*o.OUTPUTS, "store", *o.INPUTS, *o.CUTS, "resume", *o.RUNNING)


def shared_by(*kinds: str) -> list[str]:
    """The shared options of what evaluates data of these `kinds`."""
    hidden = {name for kind, names in _ONLY.items() if kind not in kinds for name in names}
    return [name for name in _ALL if name not in hidden]


def command_of(name: str) -> Callable[..., None]:
    """The command of a family: paths, the options of its settings, and the shared options that
    concern its kinds of data."""
    from uqeval.metrics import FAMILIES

    family = FAMILIES[name]
    of_numbers = "regression" in family.kinds
    needs = "PREDS [TARGET]" if of_numbers else "PREDS [LABELS]"

    def command(shared: o.Shared, settings: dict[str, Any], paths: list[str] | None) -> None:
        evaluated(name, shared, o.data_of(paths), settings, needs)

    takes = o.TargetPaths if of_numbers else o.Paths
    command.__name__, command.__doc__ = name, family.about
    command.__annotations__["paths"] = takes
    command.__defaults__ = (None,)
    return of_family(name, *shared_by(*family.kinds))(command)


def of_family(name: str, *shared: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with the options of a family's settings after its own, and `shared` ones after
    those. It gets the `Shared`, and the settings that were given as a dict."""

    def decorate(declared: Callable[..., None]) -> Callable[..., None]:
        from uqeval.cli.family_options import options_of_command
        from uqeval.metrics import FAMILIES

        own = parameters_of(declared)
        chosen = options_of_command(FAMILIES[name])

        def command(shared: o.Shared, **given: Any) -> None:
            # A flag that was not given is False where that is its default.
            settings = {one.name: given.pop(one.name) for one in chosen}
            said = {
                one.name: settings[one.name]
                for one in chosen
                if settings[one.name] is not one.default
            }
            declared(shared, o.given(**said), **given)

        del own["settings"]
        return taking(*shared)(signed(command, declared, [*own.values(), *chosen]))

    return decorate


def evaluated(
    command: str, shared: o.Shared, data: dict[str, Any], settings: dict[str, Any], needs: str
) -> None:
    """Evaluate one family and deliver the report: what all commands of families end with.

    `data` and `settings` are what was given, by the names that `uqeval.evaluate` and the family
    have for it; without data, those of `uqeval.yaml`, else an error of what the command `needs`.
    """
    from uqeval.cli.finish import deliver, states_path
    from uqeval.cli.progress import progress_for
    from uqeval.usecases.evaluate import evaluate

    beside = states_path(shared)
    asked, settings = completed(command, shared, data, settings, needs, beside)
    report = evaluate(
        metrics={command: settings}, states=beside, resume=shared.resume,
        progress=progress_for(shared.quiet), **asked,
    )  # fmt: skip
    deliver(report, shared)


def completed(
    command: str, shared: o.Shared, data: dict[str, Any], settings: dict[str, Any], needs: str,
    *outputs: str | None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """Data with the shared options, and settings; of `uqeval.yaml` where no data are given.

    Fails now, not after the work, where `outputs`, or those of the shared options, cannot be.
    """
    from uqeval.cli.finish import check_outputs, refuse_other_format
    from uqeval.cli.from_file import from_file, over
    from uqeval.stores.overlap import paths_in, refuse_overlap

    asked = data | shared.given(*o.INPUTS, *o.CUTS, *o.RUNNING)
    files = []
    if not ("predictions" in data or "video" in data):
        from uqeval.config import FILE  # YAML is loaded only where the file is read

        said, files = from_file(command, needs, shared.store), [FILE]
        settings = over(said.settings, settings, shared.typed)
        everywhere = {n: v for n, v in said.everywhere.items() if n in shared.taken}
        asked = over(said.data | everywhere, asked, shared.typed)
    elif shared.store is not None:
        instead = "a VIDEO" if "video" in data else "paths"
        raise UsageError(f"--store is for a store of uqeval.yaml; give it, or {instead}.")
    refuse_other_format(shared)
    o.refuse_draws_without_level(shared.typed, asked.get("ci"))
    written = (shared.output, shared.csv, *outputs)
    check_outputs(*written, inputs=[*paths_in(read_by(asked | settings)), *files])
    for option in ("map_cache", "flow_cache"):
        name = f"--{option.replace('_', '-')}"
        refuse_overlap(written, [asked.get(option)], f"give the output or {name} another name")
    return asked, settings


def read_by(asked: dict[str, Any]) -> list[Any]:
    """Return all that is read: paths, and lists of paths."""
    return [asked[name] for name in _PATHS if asked.get(name) is not None]
