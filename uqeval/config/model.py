"""Models of the content of `uqeval.yaml`, and its JSON Schema."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
    StringConstraints,
    WithJsonSchema,
    create_model,
)

from uqeval.config.options import PATHS, commands, settings_of
from uqeval.engine.options import MachineOptions
from uqeval.errors import UqevalError, begins_with, printable
from uqeval.gate import Limits
from uqeval.gate.given_keys import GivenKeys
from uqeval.inputs.options import InputOptions
from uqeval.settings import Option, Settings, default_of, options_of, types_of
from uqeval.statistics.options import CutOptions

#: The file that commands look for in the working folder.
FILE = "uqeval.yaml"
#: A name of files: without separators, and not of dots and spaces only.
Name = Annotated[
    str,
    StringConstraints(min_length=1, pattern=r"^[^/\\\x00-\x1f]*[^/\\\x00-\x1f. ][^/\\\x00-\x1f]*$"),
]
#: Where a file has the options of slices, which Python and the command line name otherwise.
CUT_PLACES = {"slices": ("slices", "table"), "slice_by": ("slices", "by")}
#: An option in a message, as a flag or as a key of the file.
_OPTION = re.compile(r"--(?:no-)?([a-z][a-z-]*)|`([a-z_]+):")
#: A path relative to the file's folder, or a URL.
FilePath = Annotated[str, StringConstraints(min_length=1)]


class _Data(GivenKeys):
    """Paths of one store."""

    predictions: FilePath | Annotated[list[FilePath], Field(min_length=1)] | None = Field(
        None, description="A store, or several: the members of one ensemble."
    )
    labels: FilePath | None = Field(None, description="Labels, if the store does not have them.")
    target: FilePath | None = Field(None, description="Target, if the store does not have it.")
    reference: FilePath | None = Field(
        None, description="Predictions to compute the divergence from."
    )
    images: FilePath | None = Field(
        None,
        description="Folder of input images with the names of the items, for the pictures "
        "on a page.",
    )


def _with_options(base: type[BaseModel], *declared: Any) -> Any:
    """Return a model with a key for each option of these settings that a file may set."""
    fields: dict[str, Any] = {
        name: (_kind(settings, name) | None, Field(None, description=option.help_text(default)))
        for settings in declared
        for name, option in options_of(settings).items()
        if option.in_file and name not in base.model_fields
        for default in [default_of(settings, name)]
    }
    return create_model(base.__name__.lstrip("_"), __base__=base, **fields)


def _kind(settings: Any, name: str) -> Any:
    """Return the type of an option's value in a file, with its bounds."""
    option, types = options_of(settings)[name], types_of(settings)[name]
    if option.choices:
        return Literal[option.choices]
    if option.path and option.normal is not None:  # a number is text, as on the command line
        return FilePath | Annotated[int, Field(ge=0, strict=True), AfterValidator(str)]
    if option.path:
        return FilePath | list[FilePath] if option.list_by == "repeat" else FilePath
    if option.list_by == "commas":
        return list[Name]
    if str in types and not option.list_by:  # also numbers with a unit, such as "512MB"
        return str
    bounds = Field(ge=option.least, le=option.most, gt=option.above, lt=option.below)
    json_types = [kind for kind in (bool, int, float, str) if kind in types]
    kinds = [kind if kind in (bool, str) else Annotated[kind, bounds] for kind in json_types]
    union: Any = functools.reduce(operator.or_, kinds)
    return union | list[union] if option.list_by == "repeat" else union


if TYPE_CHECKING:

    class _StoreKeys(_Data):
        def __getattr__(self, name: str) -> Any: ...

else:
    _StoreKeys = _with_options(_Data, InputOptions)


class Store(_StoreKeys):
    """One store: its paths, and the input options to read it with."""

    @property
    def truth(self) -> str | None:
        """Return the labels or the target, if they are separate from the predictions."""
        return self.labels if self.labels is not None else self.target

    @property
    def data(self) -> str | None:
        """Return the kind of data, if the keys determine it."""
        kinds = {
            "out": "ood", "ood_mask": "ood", "video": "video", "labels": "classes",
            "target": "regression",
        }  # fmt: skip
        return next((kind for name, kind in kinds.items() if getattr(self, name)), None)

    def paths_by_key(self) -> dict[str, list[str]]:
        """Return the paths of the store, by the keys that hold them."""
        values = {name: getattr(self, name) for name in STORE_PATHS}
        return {
            name: value if isinstance(value, list) else [value]
            for name, value in values.items()
            if value is not None
        }

    def paths(self) -> list[str]:
        """Return all paths of the store."""
        return [path for paths in self.paths_by_key().values() for path in paths]

    def options(self) -> dict[str, Any]:
        """Return the given input options, as `uqeval.evaluate` takes them."""
        return self.model_dump(exclude={*_Data.model_fields}, exclude_none=True)


#: Keys of a store that hold paths.
STORE_PATHS = (
    *_Data.model_fields,
    *(name for name, option in options_of(InputOptions).items() if option.path),
)  # fmt: skip

#: Keys whose values may begin a message: all paths of a file.
_ALL_PATHS = frozenset({*STORE_PATHS, *PATHS, "slices"})

#: Options that take a text or a number, such as a threshold, get numbers as text.
Text = Annotated[str | int | float, AfterValidator(str)]


@cache
def options_model(command: str) -> type[BaseModel]:
    """Return the model of a command's options; made on demand, because the gate needs none.

    A file may give a list for an option that has one value on the command line: each value makes a
    variant. The JSON Schema has the allowed values for editors; the settings check them.
    """
    declared = options_of(settings_of(command))
    fields: dict[str, Any] = {}
    for name, annotation in commands()[command].items():
        option = declared.get(name)
        kind: Any = Text if annotation in (str, str | None) else annotation
        if option is not None and (constraints := _schema_of_values(option, kind)):
            kind = Annotated[kind, WithJsonSchema(constraints)]
        field = Field(None, description=option.help if option else None)
        fields[name] = (kind | list[kind] | None, field)
    return create_model(command.capitalize(), __base__=GivenKeys, **fields)


def _schema_of_values(option: Option, kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of an option's allowed values; empty if the type is enough."""
    if option.choices:
        return {"enum": list(option.choices)}
    ends = {
        "minimum": option.least, "maximum": option.most,
        "exclusiveMinimum": option.above, "exclusiveMaximum": option.below,
    }  # fmt: skip
    bounds = {name: end for name, end in ends.items() if end is not None and math.isfinite(end)}
    return {"type": "integer" if kind is int else "number", **bounds} if bounds else {}


def _listed(value: Any) -> Any:
    """Return a single column as a list of one column."""
    return [value] if isinstance(value, str) else value


def _tabled(value: Any) -> Any:
    """Return a single path as the path of a slice table."""
    if isinstance(value, str):
        return {"table": value}
    if not isinstance(value, dict | Slices | None):
        raise ValueError("expected a path, or {table: PATH, by: [COLUMN, ...]}")
    return value


class Slices(GivenKeys):
    """Subsets of the items that are scored separately."""

    table: FilePath = Field(description="CSV with a column `name` and one for each property.")
    by: Annotated[
        list[Name | Annotated[list[Name], Field(min_length=1)]],
        Field(min_length=1),
        BeforeValidator(_listed),
    ] = Field(
        [],
        description="Columns that define slices; a list of columns for their combinations. "
        "Default: each column with few values, but not that of `group_by`.",
    )


class _Parts(GivenKeys):
    """Sections of `uqeval.yaml`."""

    stores: dict[Name, Store] = Field({}, description="Name and content of each store.")
    evaluate: dict[Name, dict[str, dict[str, Any] | None] | None] = Field(
        {}, description="Commands and their options for each store. Default: all that fit its data."
    )
    output: FilePath | None = Field(None, description="Folder of the reports, one per store.")
    gate: dict[str, Limits] = Field({}, description="Rules by address, for `uqeval gate`.")
    slices: Annotated[Slices | None, BeforeValidator(_tabled)] = Field(
        None, description="Table whose slices are scored separately, or only its path."
    )


if TYPE_CHECKING:

    class _ConfigKeys(_Parts):
        def __getattr__(self, name: str) -> Any: ...

else:
    _ConfigKeys = _with_options(_Parts, CutOptions, MachineOptions)


class Config(_ConfigKeys):
    """Content of `uqeval.yaml`. `load_config` makes its paths relative to the working folder."""

    _at: Callable[[tuple[str | int, ...]], str] | None = PrivateAttr(None)
    _notes: tuple[str, ...] = PrivateAttr(())

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the user, such as other spellings that the file uses."""
        return self._notes

    def locate(self, *place: str) -> str:
        """Return a place for messages: file, line and key. Empty without a file."""
        return self._at(place) if self._at else ""

    def message_at(self, message: object, *place: str) -> str:
        """Return a message after its place in the file."""
        return f"{self.locate(*place)}: {message}" if self._at else str(message)

    @contextmanager
    def errors_at(self, *place: str) -> Iterator[None]:
        """Start the message of an error with a place: the key of a store that it is about, else
        `place`."""
        try:
            yield
        except UqevalError as error:
            found = self._place_in(str(error), place[:2]) if place[:1] == ("stores",) else None
            error.args = (printable(self.message_at(error, *(found or place))),)
            raise

    @contextmanager
    def errors_of(self, store: str, command: str, typed: Collection[str]) -> Iterator[None]:
        """Start the message of an error about an option of a request with its place in the file.

        `typed`: the options on the command line, which override the file.
        """
        try:
            yield
        except UqevalError as error:
            above = (("evaluate", store, command), ("stores", store), ())
            places = (self._place_in(str(error), place, typed) for place in above)
            if found := next(filter(None, places), None):
                error.args = (printable(self.message_at(error, *found)),)
            raise

    def _place_in(
        self, message: str, above: tuple[str, ...], typed: Collection[str] = ()
    ) -> tuple[str, ...] | None:
        """Return the place of the path at the start of a message, or of the first option in it,
        among the keys that the file gives at a place; None for another message."""
        given = {name: value for name, value in self._given(above).items() if name not in typed}
        texts = (
            (text, name) for name in given if name in _ALL_PATHS for text in _texts(given[name])
        )
        longest_first = sorted(texts, key=lambda pair: len(pair[0]), reverse=True)
        paths = (name for text, name in longest_first if begins_with(message, text))
        options = ((flag or key).replace("-", "_") for flag, key in _OPTION.findall(message))
        name = next((name for name in chain(paths, options) if name in given), None)
        return None if name is None else CUT_PLACES.get(name, (*above, name))

    def _given(self, above: tuple[str, ...]) -> Mapping[str, Any]:
        """Return the keys that the file gives at a place, with their values."""
        match above:
            case ("stores", store, *_):
                return self.stores[store].model_dump(exclude_none=True)
            case ("evaluate", store, command):
                return (self.metrics_of(store) or {}).get(command, {})
        return self.settings_from_file(CutOptions) | self.settings_from_file(MachineOptions)

    def settings_from_file(self, settings: type[Settings]) -> dict[str, Any]:
        """Return the options of these settings that the file sets for all stores."""
        names = [name for name in options_of(settings) if name != "slices" and hasattr(self, name)]
        options = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if settings is CutOptions and self.slices is not None:
            keys = [
                entry if isinstance(entry, str) else ",".join(entry) for entry in self.slices.by
            ]
            options |= {"slices": self.slices.table, "slice_by": keys}
        return options

    def metrics_of(self, store: str) -> dict[str, dict[str, Any]] | None:
        """Return commands and their options for a store; None if the file does not list them."""
        requested = self.evaluate.get(store)
        return (
            None
            if requested is None
            else {name: options or {} for name, options in requested.items()}
        )


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str)]


def keys_of_options() -> set[str]:
    """Return the options that are keys of a store, or of a command under `evaluate`."""
    return {*Store.model_fields, *(key for options in commands().values() for key in options)}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `uqeval.yaml`, for editors."""
    schema = Config.model_json_schema()
    null = {"type": "null"}
    options = {c: {"anyOf": [options_model(c).model_json_schema(), null]} for c in commands()}
    of_a_store = {"type": "object", "properties": options, "additionalProperties": False}
    evaluate = schema["properties"]["evaluate"]
    evaluate["patternProperties"] = {
        pattern: {"anyOf": [of_a_store, null]} for pattern in evaluate["patternProperties"]
    }
    # Short forms: a path in place of a table, a column in place of a list of one column.
    slices, by_options = (
        schema["properties"]["slices"],
        schema["$defs"]["Slices"]["properties"]["by"],
    )
    slices["anyOf"] = [{"type": "string", "minLength": 1}, {"$ref": slices.pop("$ref")}]
    short, listed = (
        by_options["items"]["anyOf"][0],
        {k: by_options.pop(k) for k in ("type", "items", "minItems")},
    )
    by_options.pop("default")
    by_options["anyOf"] = [short, listed]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema | {"title": FILE}
