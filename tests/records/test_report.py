"""The report file: reports are read back as written, and other files are refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from small_report import report

from uqeval.errors import OutputError, StoreError, UqevalError
from uqeval.records.report import SCHEMA, Report


def test_written_and_read_back(tmp_path: Path) -> None:
    first = report(warnings=["π ≈ 3"], partial=True)
    file = tmp_path / "r.json"
    first.save(file)
    assert file.read_text("utf-8") == first.to_json()
    assert Report.load(file) == first
    assert json.loads(file.read_text())["schema"] == SCHEMA == "uqeval.report/1"
    assert first.to_json().isascii() and first.to_json().endswith("}\n")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_json_is_strict(value: float, tmp_path: Path) -> None:
    for own, key in (
        (report(numerics={"x": value}), "numerics.x"),
        (
            report(results={"regression": {"a": [0.0, {"nll": value}]}}),
            "results.regression.a[1].nll",
        ),
        (report(items=[{"name": "a"}, {"name": "b", "x": value}]), "items[1].x"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(key)} is {value}; a report has finite"):
            own.to_json()
        with pytest.raises(UqevalError, match="Please report it"):
            own.refuse_not_finite()
    file = tmp_path / "r.json"
    file.write_text(json.dumps(json.loads(report().to_json()) | {"numerics": {"x": value}}))
    with pytest.raises(
        StoreError, match=r"r\.json is not a uqeval report \(not JSON\): -?(NaN|Infinity)"
    ):
        Report.load(file)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"not a uqeval report \(not JSON\)"),
        ("[]", "schema None; this uqeval reads 'uqeval.report/1'"),
        ('{"schema": "uqeval.report/9"}', "schema 'uqeval.report/9'"),
        ('{"schema": "uqeval.report/1"}', "is not a uqeval report: `uqeval_version` is missing"),
        (b"\xff", r"not a uqeval report \(not JSON\)"),
        ("[" * 100_000, r"not a uqeval report \(not JSON\)"),
    ],
)
def test_what_is_no_report(tmp_path: Path, text: str | bytes, says: str) -> None:
    file = tmp_path / "r.json"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(StoreError, match=says):
        Report.load(file)


def test_a_report_that_cannot_be_written_leaves_the_file(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    report().save(file)
    before = file.read_bytes()
    with pytest.raises(OutputError, match=r"numerics\.x is nan"):
        report(numerics={"x": float("nan")}).save(file)
    assert file.read_bytes() == before and [*tmp_path.iterdir()] == [file]
    with pytest.raises(OutputError, match="cannot be written"):
        report().save(tmp_path / "missing" / "r.json")


def test_keys_that_nobody_knows(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(json.dumps(json.loads(report().to_json()) | {"extra": 1}))
    with pytest.raises(StoreError, match="extra"):
        Report.load(file)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory; expected a report"):
        Report.load(tmp_path / "none.json")


def test_one_row_an_item() -> None:
    assert report().to_frame() == [
        {"name": "a", "pavpu.pavpu": 0.1 + 0.2, "pavpu.phi": None},
        {"name": "b", "pavpu.pavpu": 1.0, "pavpu.phi": 0.5, "segmentation.pixels": 7},
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"results": {"segmentation": 5}},
        {"items": [{"pixels": 3}]},
        {"items": [{"name": {}}]},
        {"slices": {"weather=night": 5}},
        {"slices": {"weather=night": {"names": [[1]]}}},
        {"slices": {"weather=night": {"results": {"pavpu": 3}}}},
        {"intervals": {"pavpu.pavpu": 3}},
        {"metrics": {"pavpu.pavpu": {"range": [0]}}},
        {"metrics": {"pavpu.pavpu": {"reference": 3}}},
        {"inputs": {"predictions": 5}},
        {"inputs": {"labels": {"fingerprint": [1]}}},
        {"inputs": {"part": 5}},
        {"settings": {"intervals": []}},
        {"settings": {"intervals": {"draws": "x"}}},
        {"settings": {"intervals": {"seed": 0.5}}},
        {"settings": {"intervals": {"groups": 5}}},
    ],
)
def test_a_report_that_was_tampered_with_is_none(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    path = tmp_path / "r.json"
    record = {
        "schema": SCHEMA, "uqeval_version": "0", "inputs": {}, "settings": {}, "results": {},
        "items": [],
    }  # fmt: skip
    path.write_text(json.dumps(record))
    assert Report.load(path).items == []
    path.write_text(json.dumps(record | changes))
    with pytest.raises(StoreError, match="is not a uqeval report"):
        Report.load(path)


def test_a_key_of_a_later_version(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(report().record() | {"later": 1}))
    with pytest.raises(StoreError, match="is not a uqeval report: `later` is an unknown key"):
        Report.load(path)


@pytest.mark.parametrize(
    "items", [[], [{"name": "a", "x": {"y": [1, 2]}}, {"name": '\n  "items": []'}]]
)
def test_each_item_is_one_line(items: list[dict[str, object]]) -> None:
    text = report(items=items).to_json()
    assert json.loads(text)["items"] == items
    assert list(json.loads(text)) == list(json.loads(report().to_json()))
    lines = text.splitlines()
    for item in items:
        assert any(
            json.loads(line.rstrip(",")) == item for line in lines if line.startswith("    {")
        )
