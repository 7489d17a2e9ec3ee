"""Values of options are the same with and without pydantic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main
from command import refused, run_uqeval

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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--ci",), "'--ci': no value is given; expected LEVEL. Compute intervals of"),
        (("--ci", "-o", "x"), "'--ci': '-o' looks like an option; expected LEVEL. Compute"),
        (("-o", "--quiet"), "'-o' / '--output': '--quiet' looks like an option; expected FILE."),
        (("-o", "--quit"), "'-o' / '--output': '--quit' looks like an option; expected FILE."),
        (("--ci", "--", "y.zarr"), "'--ci': no value is given; expected LEVEL."),
        (("--log-base", "-h"), "'--log-base': '-h' looks like an option; expected e|2|classes."),
    ],
)
def test_an_option_does_not_take_the_next_option_for_its_value(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    said = refused(run_uqeval("pavpu", "x.zarr", *arguments, cwd=tmp_path))
    assert says in " ".join(said.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def test_the_shell_completes_the_value_of_an_option() -> None:
    words = "uqeval calibration --missing-chunks "
    completing = {"_UQEVAL_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    done = run_uqeval(env=completing)
    assert done.stdout.split() == ["error", "fill"] and not done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("pavpu", "--window", "1_0"), "'1_0'; expected a number without underscores"),
        (("pavpu", "--window", "4", "--window", "1_0"), "'1_0'; expected a number without"),
        (("calibration", "--ci", "0.9_5"), "'0.9_5'; expected a number without underscores"),
        (("pavpu", "--threshold", "0.2_5"), "--threshold '0.2_5' is not valid"),
        (("pavpu", "--threshold", "p9_0"), "--threshold 'p9_0' is not valid"),
        (("pavpu", "--curve-range", "0:1_0"), "--curve-range '0:1_0'; expected LOW:HIGH"),
        (("pavpu", "--log-base", "1_0"), "--log-base 1_0; expected e, 2, classes"),
        (("failure", "--images", "--risk-limit", "0.2_5"), "--risk-limit '0.2_5' is not valid"),
        (("failure", "--images", "--confidence", "p9_0"), "'p9_0' is not a number of an item"),
        (("sweep", "--samples", "1_0"), "--samples '1_0'; expected whole numbers"),
    ],
)
def test_numbers_with_underscores(complete: Path, arguments: tuple[str, ...], says: str) -> None:
    """Python reads 1_0 as 10."""
    command, *options = arguments
    said = refused(run_uqeval(command, complete, *options))
    assert says in " ".join(said.replace("│", " ").split())
