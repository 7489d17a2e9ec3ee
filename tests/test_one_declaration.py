"""An option is declared once: one line in one file, and it is in every place that has options."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import uqeval
from uqeval.config.model import Config, Store
from uqeval.engine.options import MachineOptions
from uqeval.inputs.options import InputOptions
from uqeval.settings import options_of
from uqeval.statistics.options import CutOptions

ROOT = Path(uqeval.__file__).parent

#: Adds one line to each of three sources while they are loaded, then looks for the options.
ADDED = """
import importlib.abc, importlib.machinery, inspect, runpy, sys
from pathlib import Path

ROOT, PAGE = Path(sys.argv[1]), sys.argv[2]
LINE = "    new_{0}: int = shared_option(7, 'Help of {0}.', least=3, metavar='N')\\n"

class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, name):
        source = self.get_source(name)
        kind = name.split(".")[1]
        end = source.index("    # fmt: on")
        return compile(source[:end] + LINE.format(kind) + source[end:], self.path, "exec")

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("uqeval.inputs.options", "uqeval.statistics.options", "uqeval.engine.options"):
            file = ROOT.joinpath(*name.split(".")[1:]).with_suffix(".py")
            return importlib.machinery.ModuleSpec(name, Loader(name, str(file)), origin=str(file))
        return None

sys.meta_path.insert(0, Finder())
import typer.main
import uqeval
from uqeval.cli.entry import app
from uqeval.config import json_schema
from uqeval.config.model import Config, Store

command = typer.main.get_command(app).get_command(None, "pavpu")
schema, page = json_schema(), runpy.run_path(PAGE)["page"]()
for kind, keys, place in (
    ("inputs", Store.model_fields, schema["$defs"]["Store"]),
    ("statistics", Config.model_fields, schema),
    ("engine", Config.model_fields, schema),
):
    name = "new_" + kind
    option = next(one for one in command.params if one.name == name)
    assert option.opts == ["--new-" + kind] and option.default == 7
    assert option.help == f"Help of {kind} (default: 7)."
    assert name in keys
    assert {"minimum": 3, "type": "integer"}.items() <= place["properties"][name].items()
    assert inspect.signature(uqeval.evaluate).parameters[name].default == 7
    assert f"`{name}`: Help of {kind}" in uqeval.evaluate.__doc__
    assert f"| `--new-{kind}` | whole number of at least 3 | 7 | Help of {kind}. |" in page
    try:
        uqeval.evaluate("nowhere.zarr", **{name: 1})
    except uqeval.UsageError as error:
        assert str(error) == f"{name}=1; expected a whole number of at least 3.", error
    else:
        raise AssertionError(name)
"""


def test_one_line_in_one_file_is_an_option_everywhere() -> None:
    page = ROOT.parent / "docs" / "make_options.py"
    done = subprocess.run(
        [sys.executable, "-c", ADDED, str(ROOT), str(page)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("settings", "model"),
    [(InputOptions, Store), (CutOptions, Config), (MachineOptions, Config)],
)
def test_no_option_is_missing_anywhere(settings: Any, model: Any) -> None:
    python = inspect.signature(uqeval.evaluate).parameters
    for name, own in options_of(settings).items():
        assert name in python
        assert own.help.endswith(".")
        assert not own.in_file or name in model.model_fields
