"""The shared options of a command: added to its own, and handed to it together."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from uqeval.cli.options import Shared
from uqeval.cli.parsing import typed_options

#: Order and defaults are for help alone; values come by name.
KEYWORD = inspect.Parameter.KEYWORD_ONLY


def taking(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with the shared options of these `names` after its own.

    It gets them as its first argument, a `Shared`. An option of its own by one of the names stands
    in the place of the shared one.
    """

    def decorate(declared: Callable[..., None]) -> Callable[..., None]:
        own = parameters_of(declared)
        del own["shared"]
        ahead = [parameter for name, parameter in own.items() if name not in names]
        after = [own.get(name, one) for name, one in _registry().items() if name in names]
        context = inspect.Parameter("context", KEYWORD, annotation=typer.Context)

        def command(context: typer.Context, **given: Any) -> None:
            shared = {name: given.pop(name) for name in names if name not in own}
            declared(
                Shared(**shared, taken=frozenset(shared), typed=typed_options(context)), **given
            )

        return signed(command, declared, [context, *ahead, *after])

    return decorate


def signed(
    function: Callable[..., None],
    like: Callable[..., None],
    parameters: list[inspect.Parameter],
) -> Callable[..., None]:
    """The function with these `parameters`, and with the name and the text of another."""
    # Typer reads both: parameters and their defaults here, what they mean from the annotations.
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {own.name: own.annotation for own in parameters}
    function.__name__, function.__doc__ = like.__name__, like.__doc__
    return function


def parameters_of(function: Callable[..., None]) -> dict[str, inspect.Parameter]:
    """The parameters of a function by name, with what their annotations mean."""
    hints = get_type_hints(function, include_extras=True)
    found = inspect.signature(function).parameters
    return {name: own.replace(kind=KEYWORD, annotation=hints[name]) for name, own in found.items()}


@cache
def _registry() -> dict[str, inspect.Parameter]:
    """The shared options by name, in the order of help."""
    hints = get_type_hints(Shared, include_extras=True)
    return {
        own.name: inspect.Parameter(
            own.name, KEYWORD, default=own.default, annotation=hints[own.name]
        )
        for own in fields(Shared)
        if get_origin(hints[own.name]) is Annotated
    }
