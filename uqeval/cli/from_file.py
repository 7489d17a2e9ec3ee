"""Requests from `uqeval.yaml` in the working folder, for commands without paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.cli.streams import warn
from uqeval.engine.options import MachineOptions
from uqeval.errors import UsageError, cut, data_of_kind
from uqeval.settings import options_of
from uqeval.spelling import as_keys
from uqeval.statistics.options import CutOptions

if TYPE_CHECKING:
    from uqeval.config import Config, Store
    from uqeval.stores.contents import Contents

#: Kinds of data of commands that belong to no metric family.
_OF_OTHERS = {"sweep": ("classes", "regression"), "reduce": ("classes",)}


@dataclass(frozen=True)
class StoreRequest:
    """Request of `uqeval.yaml` for one store, with the names of `uqeval.evaluate`.

    `data`: the store and its input options; `settings`: the options of the command; `everywhere`:
    the options for all stores; `name`: the name of the store in `config`.
    """

    data: dict[str, Any]
    settings: dict[str, Any]
    everywhere: dict[str, Any]
    name: str
    config: Config

    @contextmanager
    def errors(self, command: str, typed: Set[str]) -> Iterator[None]:
        """Name the place in the file, and its keys, in messages about options of the file."""
        with _as_keys(typed), self.config.errors_of(self.name, command, typed):
            yield


def _as_keys(typed: Set[str] = frozenset()) -> AbstractContextManager[None]:
    """Spell options as keys of the file, but not those that were `typed`."""
    from uqeval.config.model import keys_of_options

    everywhere = {*options_of(CutOptions), *options_of(MachineOptions)}
    return as_keys((keys_of_options() | everywhere) - typed)


def merged_options(
    file_options: Mapping[str, Any], options: Mapping[str, Any], typed: Set[str]
) -> dict[str, Any]:
    """Return options: defaults, then those of the file, then those on the command line."""
    merged = dict(file_options)
    if "slices" in typed:  # another table has other columns
        merged.pop("slice_by", None)
        merged.pop("group_by", None)
    return {**options, **merged, **{name: options[name] for name in options.keys() & typed}}


def from_file(
    command: str, needs: str, store_name: str | None, quiet: bool = False
) -> StoreRequest:
    """Return the request of the file for `command`.

    Takes the store `store_name`, else the only store that requests the command, else the only store
    that it can evaluate. Raises `UsageError`; without a file, the message names the arguments that
    the command `needs`.
    """
    from uqeval.config import FILE

    config = _config(needs, [] if store_name is None else [store_name], quiet)
    requests = {name: (config.metrics_of(name) or {}).get(command) for name in config.stores}
    names = (
        [store_name]
        if store_name is not None
        else [n for n, request in requests.items() if request is not None]
    )
    opened: dict[str, list[Contents]] = {}
    if not names:
        for own, store in config.stores.items():
            with _as_keys(), config.errors_at("stores", own):
                if _fits(command, own, store, opened):
                    names.append(own)
    if len(names) != 1:
        raise UsageError(
            f"{FILE} has several stores for {command}: {', '.join(names)}; give --store NAME."
            if names else f"{FILE} has no store that {command} evaluates; give {needs}."
        )  # fmt: skip
    (name,) = names
    store = config.stores[name]
    address = config.locate("stores", name)
    if store.data is not None and store.data not in _kinds(command):
        kinds = " or ".join(map(data_of_kind, _kinds(command)))
        raise UsageError(
            f"{address} holds {data_of_kind(store.data)}; {command} takes {kinds} only."
        )
    if _needs_reference(command) and store.reference is None:
        raise UsageError(f"{address} has no reference; add one, or give {needs} here.")
    data = _data(store) | ({"predictions": opened[name]} if name in opened else {})
    if command == "sweep" or _needs_reference(command):
        data["reference"] = store.reference
    return StoreRequest(data, requests[name] or {}, _everywhere(config), name, config)


def stores_to_inspect(
    needs: str, store_names: Sequence[str]
) -> tuple[dict[str, StoreRequest], list[str]]:
    """Return the requests for stores to inspect, and the names of stores that are videos.

    Inspects `store_names`, or all stores. Raises `UsageError` if no store remains.
    """
    from uqeval.config import FILE

    config = _config(needs, store_names)
    stores = {name: config.stores[name] for name in store_names or config.stores}
    videos = [name for name, store in stores.items() if store.predictions is None]
    if not stores or len(videos) == len(stores) or (store_names and videos):
        content = f"holds video data: {', '.join(videos)}" if videos else "has no store"
        raise UsageError(
            f"{FILE} {content}; expected stores of predictions. Name one, or give {needs}."
        )
    return {
        name: StoreRequest(_data(store), {}, _everywhere(config), name, config)
        for name, store in stores.items() if name not in videos
    }, videos  # fmt: skip


def _config(needs: str, store_names: Sequence[str], quiet: bool = False) -> Config:
    """Load the file and check that it has the stores `store_names`. Raises `UsageError`."""
    from uqeval.config import FILE, load_config, no_file

    if not Path(FILE).is_file():
        raise UsageError(f"no {needs} given, and {no_file()}; give {needs}.")
    config = load_config(FILE)
    warn(config.notes, quiet)
    for name in store_names:
        if name not in config.stores:
            store_list = ", ".join(config.stores) or "none"
            raise UsageError(
                f"--store {cut(name)} is not a store of {FILE}; its stores are {cut(store_list)}."
            )
    return config


def _needs_reference(command: str) -> bool:
    """Return whether a command compares a store with its reference."""
    from uqeval.metrics import FAMILIES

    return command in FAMILIES and FAMILIES[command].needs_reference


def _kinds(command: str) -> tuple[str, ...]:
    """Return the kinds of data that a command evaluates."""
    from uqeval.metrics import FAMILIES

    return _OF_OTHERS.get(command) or FAMILIES[command].kinds


def _data(store: Store) -> dict[str, Any]:
    """Return a store and how to read it, with the names of `uqeval.evaluate`."""
    return {"predictions": store.predictions, "labels": store.truth} | store.options()


def _fits(command: str, name: str, store: Store, opened: dict[str, list[Contents]]) -> bool:
    """Return whether a command can evaluate a store that does not request it.

    Opens the predictions only if the answer depends on them, and adds them to `opened`.
    """
    if _needs_reference(command) and store.reference is None:
        return False
    if store.data is not None:
        return store.data in _kinds(command)
    from uqeval.inputs.common import is_regression, open_predictions
    from uqeval.stores.store import contents_of
    from uqeval.usecases.plans import input_options

    paths = store.predictions
    assert paths is not None
    opened[name] = [contents_of(path) for path in ([paths] if isinstance(paths, str) else paths)]
    predictions = open_predictions(
        opened[name], input_options(store.options()), has_other_truth=store.truth is not None
    )
    return ("regression" if is_regression(predictions) else "classes") in _kinds(command)


def _everywhere(config: Config) -> dict[str, Any]:
    """Return the options of the file for all stores."""
    options: dict[str, Any] = config.settings_from_file(CutOptions)
    return options | config.settings_from_file(MachineOptions)
