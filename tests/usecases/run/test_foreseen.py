"""The fields of results that are foreseen before any data are read are those of the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from option_inputs import write_all
from typer.testing import CliRunner

from uqeval.cli.entry import app
from uqeval.inputs import InputOptions, open_inputs
from uqeval.records.report import Report
from uqeval.usecases import evaluate
from uqeval.usecases.run.foreseen import foreseen_report

LINES = [
    "pavpu p.npz --region class:0 --ci 0.9 --draws 100 --slices items.csv --slice-by city",
    "pavpu p.npz --uncertainty entropy --uncertainty std --threshold-scope item --no-deciles",
    "calibration p.npz --isotonic --vector --estimator kumar-l2 --region boundary:1",
    "calibration p.npz --no-temperature --no-adaptive --ci 0.9 --draws 100",
    "failure p.npz --images --region interior:1 --slices items.csv --slice-by weather",
    "failure p.npz --images --risk pavpu.pavpu --region interior:1",
    "calibration p.npz --fit-on half.txt",
    "regression r.npz --sigma-scale --fit-on half.txt",
    "sparsification p.npz --error brier --error zero-one --scope item",
    "regression r.npz --ence --region depth:1-5 --depth-map depth_r.npy",
    "nmerci r.npz --depth-step 2",
    "tc v.npz --tracks",
    "tc v.npz --flow file --region class:0",
    "ood p.npz out.npz",
    "ood p.npz --ood-mask mask.npy",
    "annotators raters.npz",
    "divergence p.npz q.npz",
]


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    root = tmp_path_factory.mktemp("foreseen")
    write_all(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        yield


def fields_of(record: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field of a result, without reasons."""
    for name, value in record.items():
        if not name.endswith("_reason"):
            yield (name,)
            inner = fields_of(value) if isinstance(value, dict) else iter(())
            yield from ((name, *path) for path in inner)


def has(record: dict[str, Any], path: tuple[str, ...]) -> bool:
    """Return whether a foreseen record has a field, or a list or undefined value on the way."""
    value: Any = record
    for name in path:
        if value is None or isinstance(value, list):
            return True
        if name not in value:
            return False
        value = value[name]
    return True


@pytest.mark.parametrize("line", LINES)
def test_all_fields_of_a_report_are_foreseen(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[tuple[Report, Report]] = []
    run = evaluate.run

    def both(inputs: Any, families: Any, options: Any) -> Report:
        report = run(inputs, families, options)
        pairs.append((foreseen_report(inputs, families, options.cut, set(report.results)), report))
        return report

    monkeypatch.setattr(evaluate, "run", both)
    done = CliRunner().invoke(app, [*line.split(), "--quiet"])
    assert done.exit_code == 0, done.output
    foreseen, report = pairs[-1]
    assert foreseen.results.keys() == report.results.keys()
    assert foreseen.slices.keys() == report.slices.keys()
    for results in (report.results, *(part["results"] for part in report.slices.values())):
        for key, record in results.items():
            missing = [path for path in fields_of(record) if not has(foreseen.results[key], path)]
            assert not missing, (key, missing)


def test_a_family_that_needs_pixels_is_left_out() -> None:
    inputs = open_inputs("p.npz", None, InputOptions())
    families = {"conformal": {"fit_on": "fit.txt", "alpha": 0.4}, "pavpu": {}}
    report = foreseen_report(inputs, families, None, {"conformal", "pavpu"})
    assert report.results.keys() == {"segmentation", "pavpu"}
