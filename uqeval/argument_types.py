"""Checks of values against type annotations: callers in Python give any value."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, wraps
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from uqeval.errors import UqevalError, UsageError, quoted
from uqeval.spelling import spell

F = TypeVar("F", bound=Callable[..., Any])


def spells_options(function: F) -> F:
    """Make the errors of a function of Python spell options as keywords, unless a command runs."""
    output = "states" if "states" in inspect.signature(function).parameters else "output"

    @wraps(function)
    def spelling(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except UqevalError as error:
            spell(error, output)
            raise

    return spelling  # type: ignore[return-value]


_WORDS = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text",
    Path: "a path", os.PathLike: "a path", Sequence: "a list", Iterable: "a list",
    Mapping: "a mapping",
}  # fmt: skip
_PATHS = (Path, os.PathLike[str])
_WORDS_OF_MANY = {int: "whole numbers", float: "numbers", str: "texts", Path: "paths"}


def python_value(value: Any) -> Any:
    """Return a value with iterators and 1-D NumPy arrays as lists, and NumPy scalars as numbers.

    An iterator is empty when it is read again. Arrays of more axes are data and stay.
    """
    if isinstance(value, Iterator):
        value = tuple(value)
    if type(value) in (list, tuple):
        return type(value)(python_value(entry) for entry in value)
    is_simple = not isinstance(value, type) and getattr(value, "ndim", 2) in (0, 1)
    return value.tolist() if is_simple and hasattr(value, "tolist") else value


def name_of_dtype(annotation: Any, value: Any) -> Any:
    """Return the name of a dtype (`np.float16`, `torch.float16`) if the annotation has this name as
    a choice, else the value.
    """
    if isinstance(value, type):
        name = value.__name__
    elif type(value).__name__.lower().endswith("dtype"):
        name = getattr(value, "name", None) or repr(value).removeprefix("torch.")
    else:
        return value
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    choices = [get_args(kind) for kind in kinds if get_origin(kind) is Literal]
    return name if any(name in names for names in choices) else value


def fits(annotation: Any, value: Any) -> bool:
    """Return whether a value has the type of an annotation."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return True
    if origin in (Union, UnionType):
        if isinstance(value, str) and any(kind in _PATHS for kind in arguments):
            return value != "" and "\0" not in value
        return any(fits(kind, value) for kind in arguments)
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            fits(arguments[0], key) and fits(arguments[1], entry) for key, entry in value.items()
        )
    if origin in (Sequence, Iterable):
        return _is_list(value) and all(fits(arguments[0], entry) for entry in value)
    if origin is tuple:
        is_pair = isinstance(value, list | tuple) and len(value) == len(arguments)
        return is_pair and all(map(fits, arguments, value))
    if annotation is None or annotation is NoneType:
        return value is None
    if annotation in _PATHS:  # text fits the annotation `str | Path`
        return isinstance(value, os.PathLike)
    if annotation in (int, float):
        numbers = (int,) if annotation is int else (int, float)
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, annotation)


def _is_list(value: Any) -> bool:
    """Return whether a value is ordered: a list, a tuple or a 1-D array."""
    no_lists = (str, bytes, Mapping, Set)
    is_list = isinstance(value, Collection) and not isinstance(value, no_lists)
    return is_list and getattr(value, "ndim", 1) == 1


def in_words(annotation: Any) -> str:
    """Return the types of an annotation in words: "a path or a list of texts"."""
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    if any(kind in _PATHS for kind in kinds):
        kinds = tuple(kind for kind in kinds if kind is not str)
    texts = [_words_of(kind) for kind in kinds if kind not in (None, NoneType)]
    return " or ".join(dict.fromkeys(texts))


def _words_of(kind: Any) -> str:
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin is tuple:
        return f"{len(arguments)} {_WORDS_OF_MANY[arguments[0]]}"
    text = _WORDS.get(origin) or f"a {origin.__name__}"
    if origin not in (Sequence, Iterable):
        return text
    entries = get_args(arguments[0]) or arguments
    many = (
        _WORDS_OF_MANY.get(e, f"{e.__name__}s" if isinstance(e, type) and e is not Any else None)
        for e in entries
    )
    words = [word for word in many if word]
    return f"{text} of {' or '.join(words)}" if words else text


def checks_types(*names: str) -> Callable[[F], F]:
    """Make a function raise `UsageError` if one of these arguments does not fit its annotation.

    Without names, all named arguments with an annotation are checked. The function receives NumPy
    scalars as numbers, 1-D arrays and iterators as lists, and dtypes as their names where names are
    listed. Its errors spell options as keywords: `-o` as `states` if it takes that, else `output`.
    """

    def decorate(function: F) -> F:
        call, signature = spells_options(function), inspect.signature(function)
        wanted = names or [
            name for name, parameter in signature.parameters.items()
            if name in function.__annotations__ and parameter.kind is not parameter.VAR_KEYWORD
        ]  # fmt: skip

        @cache
        def hints() -> dict[str, Any]:
            # Only these: other annotations may be imported for type checkers alone.
            texts = {name: function.__annotations__[name] for name in wanted}
            return get_type_hints(SimpleNamespace(__annotations__=texts), function.__globals__)

        @wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            bound = signature.bind_partial(*args, **keywords)
            for name in bound.arguments.keys() & set(wanted):
                annotation = hints()[name]
                value = name_of_dtype(annotation, python_value(bound.arguments[name]))
                if not fits(annotation, value):
                    raise UsageError(f"{name}={quoted(value)}; expected {in_words(annotation)}.")
                bound.arguments[name] = value
            return call(*bound.args, **bound.kwargs)

        return checked  # type: ignore[return-value]

    return decorate
