"""What `uqeval.yaml` may hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    WithJsonSchema,
    create_model,
)

from uqeval.config.options import commands, declared_options
from uqeval.gate import Limits

if TYPE_CHECKING:
    from uqeval.settings import Option

IntervalMethod = Literal[
    "auto", "korn-graubard", "jackknife-t", "expanded", "batch-means", "percentile"
]

_STRICT = ConfigDict(extra="forbid", strict=True)
Name = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^/\\\x00-\x1f]+$")]
#: A path from the file's folder on, or a URL.
FilePath = Annotated[str, StringConstraints(min_length=1)]


class Store(BaseModel):
    """One store and how it is read: the paths, and the input options of the commands."""

    model_config = _STRICT

    predictions: FilePath | Annotated[list[FilePath], Field(min_length=1)] | None = Field(
        None, description="A store, or several: the members of one ensemble."
    )
    labels: FilePath | None = Field(None, description="Labels, where the store holds none.")
    target: FilePath | None = Field(None, description="Target of a regression, likewise.")
    video: FilePath | None = Field(None, description="Frames: a folder, a store or a video file.")
    reference: FilePath | None = Field(None, description="Predictions to diverge from.")
    names: FilePath | None = Field(None, description="Item names, for stores that carry none.")
    ignore_index: int | None = Field(None, description="Label that means void.")
    classes: int | None = Field(None, description="Number of classes, where nothing says it.")
    class_names: list[Name] | None = Field(None, description="A name for each class.")
    kind: Literal["probs", "logits", "predictions"] | None = Field(
        None, description="What predictions are whose arrays have no names (default: probs)."
    )
    axes: str | None = Field(None, description="Order of their axes, as letters: NHWC.")
    missing_chunks: Literal["error", "fill"] = "error"
    label_map: str | None = Field(None, description="Turn label ids into train ids: cityscapes.")
    sum_tolerance: float | None = Field(None, description="How far probabilities are from 1.")
    nan_samples: Literal["error", "skip"] = "error"
    invalid: float | str | list[float | str] | None = Field(
        None, description="Targets that are no measurement: a number, or several."
    )
    limit: int | None = Field(None, description="Only the first items; makes a partial report.")
    pseudo_labels: FilePath | None = Field(None, description="Predictions in place of labels.")
    flow_path: FilePath | None = Field(None, description="Stored flow, for flow: file.")
    flow_forward_path: FilePath | None = Field(None, description="The same the other way.")
    flow_cache: FilePath | None = Field(None, description="Folder to keep estimated flow in.")
    resize: Literal["none", "nearest"] = "none"
    map_cache: FilePath | None = Field(None, description="Folder to keep maps in for other runs.")

    @property
    def truth(self) -> str | None:
        """The labels or the target, where they lie apart from the predictions."""
        return self.labels if self.labels is not None else self.target

    @property
    def data(self) -> str | None:
        """The kind of data, where the fields say it."""
        kinds = {"video": "video", "labels": "classes", "target": "regression"}
        return next((kind for name, kind in kinds.items() if getattr(self, name)), None)

    def paths(self) -> list[str]:
        """Everything that is read."""
        given = [getattr(self, name) for name in STORE_PATHS]
        lists = [one if isinstance(one, list) else [one] for one in given if one is not None]
        return [path for some in lists for path in some]

    def options(self) -> dict[str, Any]:
        """The input options that are given, as `uqeval.evaluate` takes them."""
        paths = {"predictions", "labels", "target", "reference"}
        return self.model_dump(exclude=paths, exclude_unset=True)


#: Fields of a store that hold paths.
STORE_PATHS = tuple(name for name, kind in Store.__annotations__.items() if "FilePath" in kind)

#: A number is a text to options that take either, such as a threshold.
Text = Annotated[str | int | float, AfterValidator(str)]


def _one_or_more(kind: Any) -> Any:
    return kind | list[kind] | None


@cache
def options_model(command: str) -> type[BaseModel]:
    """The model of a command's options; made when it is asked for, as the gate needs none.

    What is of one type on the command line may be a list here: variants. What a value may be is
    said to editors; the settings check it, with their own words.
    """
    declared = declared_options(command)
    fields: dict[str, Any] = {}
    for name, given in commands()[command].items():
        own = declared.get(name)
        kind: Any = Text if given in (str, str | None) else given
        if own is not None and (said := _allowed(own, kind)):
            kind = Annotated[kind, WithJsonSchema(said)]
        told = Field(None, description=own.help if own else None)
        fields[name] = (_one_or_more(kind), told)
    model: type[BaseModel] = create_model(command.capitalize(), __config__=_STRICT, **fields)
    return model


def _allowed(own: Option, kind: Any) -> dict[str, Any]:
    """The JSON Schema of what an option may be; nothing where its type says it."""
    if own.choices:
        return {"enum": list(own.choices)}
    ends = {
        "minimum": own.least, "maximum": own.most,
        "exclusiveMinimum": own.above, "exclusiveMaximum": own.below,
    }  # fmt: skip
    said = {name: end for name, end in ends.items() if end is not None and math.isfinite(end)}
    return {"type": "integer" if kind is int else "number", **said} if said else {}


def _listed(given: Any) -> Any:
    """A column that stands alone is a list of one."""
    return [given] if isinstance(given, str) else given


def _tabled(given: Any) -> Any:
    """A path that stands alone is that of the table."""
    if isinstance(given, str):
        return {"table": given}
    if not isinstance(given, dict | Slices | None):
        raise ValueError("expected a path, or {table: PATH, by: [COLUMN, ...]}")
    return given


class Slices(BaseModel):
    """Parts of the items that are scored apart."""

    model_config = _STRICT

    table: FilePath = Field(description="CSV with a column `name` and one for each property.")
    by: Annotated[
        list[Name | Annotated[list[Name], Field(min_length=1)]],
        Field(min_length=1),
        BeforeValidator(_listed),
    ] = Field(
        [],
        description="Column, or columns, a list of them for their combinations; "
        "each of few values if left out.",
    )


class Config(BaseModel):
    """The whole of `uqeval.yaml`. Paths are those of the file until `load_config` anchors them."""

    model_config = _STRICT

    stores: dict[Name, Store] = Field({}, description="The stores by name.")
    evaluate: dict[Name, dict[str, dict[str, Any] | None] | None] = Field(
        {}, description="Commands and their options for each store; all that applies for others."
    )
    output: FilePath | None = Field(None, description="Folder of the reports, one a store.")
    gate: dict[str, Limits] = Field({}, description="Rules by address, for `uqeval gate`.")
    slices: Annotated[Slices | None, BeforeValidator(_tabled)] = Field(
        None, description="Parts of the items that are scored apart: a table, or its path alone."
    )
    group_by: Name | None = Field(None, description="Column of the items that belong together.")
    ci: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="Level of the intervals of every score, such as 0.95."
    )
    interval_method: IntervalMethod | None = Field(
        None, description="Method of all intervals; auto takes the one of each score's kind."
    )
    draws: Annotated[int, Field(ge=100)] | None = Field(
        None, description="Resamples of the intervals, 2000 if left out."
    )
    seed: Annotated[int, Field(ge=0)] | None = Field(None, description="Seed of the resamples.")
    workers: Annotated[int, Field(ge=1)] | None = Field(None, description="Threads.")
    memory: str | None = Field(None, description="Bytes of tiles and maps, such as 512MB.")
    _at: Callable[[tuple[str | int, ...]], str] | None = PrivateAttr(None)

    def at(self, *place: str) -> str:
        """What messages put before what is wrong at a place: file, line and key of a file."""
        return f"{self._at(place)}: " if self._at else ""

    def metrics_of(self, store: str) -> dict[str, dict[str, Any]] | None:
        """Commands and their options for a store; None where the file does not say."""
        chosen = self.evaluate.get(store)
        return None if chosen is None else {name: given or {} for name, given in chosen.items()}
