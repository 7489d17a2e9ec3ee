"""What `uqeval.yaml` in the working folder says to a command that is given no paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.config import Config, Store


@dataclass(frozen=True)
class Said:
    """A store of the file, and by the options' names what the file says of it."""

    store: Store
    settings: dict[str, Any]
    inputs: dict[str, Any]
    running: dict[str, Any]


def typed(context: typer.Context) -> set[str]:
    """The options that stand on the command line, by name."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def over(said: Mapping[str, Any], given: Mapping[str, Any], typed: set[str]) -> dict[str, Any]:
    """Options of the file, and over them those that were typed; defaults give way to both."""
    known = dict(said)
    if "slices" in typed:  # its columns are not those of the file's table
        known.pop("slice_by", None)
        known.pop("group_by", None)
    return {**given, **known, **{name: given[name] for name in given.keys() & typed}}


def from_file(command: str, kinds: Iterable[str], needs: str, wanted: str | None) -> Said:
    """What the file says to `command`, which evaluates data of these `kinds`.

    Of the store `wanted`, else of the only one that asks for the command, or that it can evaluate.
    Raises `UsageError`, without a file with what the command `needs`.
    """
    from uqeval.config import FILE, load_config

    if not Path(FILE).is_file():
        raise UsageError(f"no {needs} given, and no {FILE} in this folder; give {needs}.")
    config = load_config(FILE)
    if wanted is not None and wanted not in config.stores:
        known = ", ".join(config.stores) or "none"
        raise UsageError(f"--store {wanted}: is no store of {FILE}; it has {known}.")
    asked = {name: (config.metrics_of(name) or {}).get(command) for name in config.stores}
    names = [wanted] if wanted is not None else [n for n, own in asked.items() if own is not None]
    if not names:
        names = [name for name, store in config.stores.items() if _kind(store) in kinds]
    if len(names) != 1:
        raise UsageError(
            f"{FILE} has several stores for {command}: {', '.join(names)}; give --store NAME."
            if names else f"{FILE} has no store that {command} evaluates; give {needs}."
        )  # fmt: skip
    (name,) = names
    store = config.stores[name]
    return Said(store, asked[name] or {}, store.options() | _cuts(config), _running(config))


def _kind(store: Store) -> str:
    """The kind of a store's data, from the file or from what the store holds."""
    if store.kind is not None:
        return store.kind
    from uqeval.inputs.common import open_predictions
    from uqeval.inputs.regression import is_regression
    from uqeval.run import input_options

    assert store.predictions is not None
    opened = open_predictions(store.predictions, input_options(store.options()))
    return "regression" if is_regression(opened) else "classes"


def _cuts(config: Config) -> dict[str, Any]:
    found: dict[str, Any] = {"ci": config.ci, "group_by": config.group_by}
    if config.slices is not None:
        by = [one if isinstance(one, str) else ",".join(one) for one in config.slices.by]
        found |= {"slices": config.slices.table, "slice_by": by}
    return {name: value for name, value in found.items() if value is not None}


def _running(config: Config) -> dict[str, Any]:
    given = {"workers": config.workers, "memory": config.memory}
    return {name: value for name, value in given.items() if value is not None}
