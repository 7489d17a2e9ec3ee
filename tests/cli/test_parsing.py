"""Values of options are the same with and without pydantic."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main

from uqeval.cli.entry import COMMANDS, app
from uqeval.cli.parsing import _QuickCheck

_TEXTS = (
    "", "1", "-1", "-0", "007", "0.5", "00.50", "5.0", "1e3", "1_0", " 1", "nan", "inf", "١", "x",
    "table", "99999999999999999999", "0.1234567890123456", "true",
)  # fmt: skip


def _result(check: Any, value: Any, parameter: Any) -> tuple[type, str]:
    """The type and the text of a checked value, or of the error."""
    try:
        checked = check.coerce(value, param=parameter, ctx=None)
    except typer.BadParameter as error:
        return type(error), error.message
    return type(checked), repr(checked)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_quick_check_gives_what_typer_gives(command: str) -> None:
    group: Any = typer.main.get_command(app)
    for parameter in group.get_command(None, command).params:
        if parameter.type_descriptor.annotation is bool:
            continue  # Typer gives flags as they are
        check, full_check = _QuickCheck(parameter), parameter.get_runtime_param()
        choices = [choice.value for choice in parameter.type_descriptor.choices or ()]
        several = parameter.multiple or parameter.nargs == -1
        for text in (*_TEXTS, *choices, None, parameter.default):
            is_one = several and isinstance(text, str)
            value = (text,) if is_one else text
            expected = _result(full_check, value, parameter)
            assert _result(check, value, parameter) == expected, (parameter.name, value)
