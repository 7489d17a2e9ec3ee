"""The report as Markdown: tables that stay tables, names that stay text."""

from __future__ import annotations

import re

import pytest
from small_report import report, scores

from uqeval.report.markdown import to_markdown


def tables(text: str) -> list[list[list[str]]]:
    """The cells of all tables, split where GitHub splits them."""
    found: list[list[list[str]]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append([c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def test_every_row_has_as_many_cells_as_the_head() -> None:
    for table in tables(to_markdown(report())):
        head, marks, *rows = table
        assert all(set(mark) <= {":", "-"} for mark in marks)
        assert rows and {len(row) for row in table} == {len(head)}


def test_titles_warnings_and_partial() -> None:
    text = to_markdown(report(warnings=["3 of 4 <b>things</b>"], partial=True))
    lines = text.splitlines()
    assert lines[0] == "## uqeval: preds.zarr"
    assert "**Partial:** not all items were evaluated." in lines
    assert "- 3 of 4 &lt;b>things&lt;/b>" in lines
    plain = to_markdown(report())
    assert "Warnings" not in plain and "Partial" not in plain


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<script>", "&lt;script>"),
        ("a|b", r"a\|b"),
        ("a\\|b", r"a\\\|b"),
        ("`code`", r"\`code\`"),
        ("&lt;", "&amp;lt;"),
        ("![x](http://y)", r"!\[x](http\://y)"),
        ("see HTTPS://y.z", r"see HTTPS\://y.z"),
        ("www.y.z", r"www\.y.z"),
        ("s3://bucket", "s3://bucket"),
        ("*bold* ~gone~", r"\*bold\* \~gone\~"),
        ("_it_ __init__ a_b", r"\_it\_ \_\_init\_\_ a_b"),
        ("by @user", "by @<!-- -->user"),
        ("failure@box", "failure@box"),
        ("two\nlines", "two lines"),
        ("\x1b[31m", r"\\x1b\[31m"),
        ("\u202egnp.exe", r"\\u202egnp.exe"),
        ("traffic_light", "traffic_light"),
    ],
)
def test_names_stay_text(name: str, shown: str) -> None:
    results = report().results
    results["pavpu"]["per_class"] = [scores(**{"class": 0, "name": name})]
    text = to_markdown(report(results=results))
    assert f"| {shown} | 0.5000 |" in text
    assert {len(row) for row in tables(text)[-1]} == {8}
