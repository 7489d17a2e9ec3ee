"""The notebooks of `examples/` run, cell by cell, and show what they say."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def cells(path: Path, kind: str = "code") -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["nbformat"] == 4
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def run(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does; return the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell shows something where its saved output does, and the reports as tables."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    tables = 0
    for cell in cells(path):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            value = run("".join(cell["source"]), names)
        kinds = {output["output_type"] for output in cell["outputs"]}
        assert "error" not in kinds
        assert ("execute_result" in kinds) == (value is not None)
        assert ("stream" in kinds) == bool(printed.getvalue())
        if hasattr(value, "_repr_html_"):
            (shown,) = (o for o in cell["outputs"] if o["output_type"] == "execute_result")
            assert value._repr_html_().startswith("<p><b>") and "text/html" in shown["data"]
            tables += 1
    assert tables


def test_notebooks_are_there_and_explain_themselves() -> None:
    assert len(NOTEBOOKS) >= 2
    for path in NOTEBOOKS:
        assert len(cells(path, "markdown")) >= len(cells(path)) - 1
        assert path.stat().st_size < 60_000
        assert "/tmp/" not in path.read_text("utf-8")
