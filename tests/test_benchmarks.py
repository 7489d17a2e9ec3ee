"""`python -m benchmarks` works, keeps its rows, and names what has become slower."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from command import run_script


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import __main__

    return __main__


def test_rows_are_printed_and_kept(
    program: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--only", "subnormal", "--tiny", "--here", "--repeats", "1", "--folder"]
    assert program.main([*options, str(tmp_path)]) == 0
    kept = json.loads((tmp_path / "results.json").read_text())
    assert kept["machine"]["cpu"] in capsys.readouterr().out
    assert len(kept["rows"]) == 9
    sums = kept["rows"][1]
    assert sums["yardstick"] == kept["rows"][0]["name"]
    assert sums["ratio"] == sums["seconds"] / kept["rows"][0]["seconds"]


#: The groups of `python -m benchmarks` that start few processes.
QUICK = ("maps", "patches", "reading", "workers", "peers", "small", "pixels", "ranks", "observer")


@pytest.mark.parametrize("group", QUICK)
def test_all_cases_of_a_group_run(
    program: ModuleType, group: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--only", group, "--tiny", "--here", "--repeats", "1", "--folder", str(tmp_path)]
    assert program.main(options) == 0, capsys.readouterr().out


def test_a_case_that_cannot_run_is_named(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from benchmarks.common import Case, Setup

    def peers(setup: Setup) -> Any:
        """Two cases."""
        yield Case("by hand", print, needs="no_such_library", yardstick=True)
        yield Case("broken", lambda: 1 / 0)

    monkeypatch.setitem(program.GROUPS, "peers", peers)
    assert program.main(["--only", "peers", "--here", "--folder", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "left out: no_such_library is not installed" in printed
    assert "failed: division by zero" in printed


def test_rows_are_measured_in_turn(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from benchmarks.common import Case, Setup

    calls: list[str] = []

    def peers(setup: Setup) -> Any:
        """Two cases."""
        for name in ("first", "second"):
            yield Case(name, calls.append, (name,), yardstick=name == "first", warm=False)

    monkeypatch.setitem(program.GROUPS, "peers", peers)
    options = ["--only", "peers", "--here", "--repeats", "1", "--turns", "3", "--folder"]
    assert program.main([*options, str(tmp_path)]) == 0
    assert calls == ["first", "second"] * 3
    kept = json.loads((tmp_path / "results.json").read_text())
    assert [row["name"] for row in kept["rows"]] == ["first", "second"]


def run_of(ratio: float, cpu: str = "x") -> dict[str, Any]:
    row = {"group": "maps", "name": "uqeval", "cpu_ratio": ratio}
    return {"machine": {"cpu": cpu}, "tiny": False, "rows": [row]}


@pytest.mark.parametrize(
    ("new", "status"), [(run_of(0.12), 0), (run_of(0.13), 1), (run_of(0.1, "y"), 2)]
)
def test_ratios_are_compared_on_one_kind_of_machine(
    program: ModuleType, new: dict[str, Any], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.compare(run_of(0.1), new) == status
    assert ("0.1 × CPU before, 0.13 now" in capsys.readouterr().out) == (status == 1)


def test_forms_of_a_store_are_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import formats

    probs = np.random.default_rng(0).dirichlet(np.ones(3), (2, 2, 16, 16)).transpose(0, 1, 4, 2, 3)
    np.savez(tmp_path / "p.npz", probs=probs.astype(np.float16))
    np.save(tmp_path / "labels.npy", probs[:, 0].argmax(axis=1).astype(np.uint8))
    preds, labels = str(tmp_path / "p.npz"), str(tmp_path / "labels.npy")
    forms = (("float32", "none"), ("float16", "none"), ("uint16", "zstd 4"))
    rows, scores = formats.measure(preds, labels, tmp_path / "made", 1, forms)
    assert rows[1].megabytes < rows[0].megabytes and 1 < rows[1].share < 2
    assert [row.objects for row in rows[:4]] == [4, 4, 4, 4]
    errors = formats.errors(scores)
    assert 0 < errors["uint16"]["calibration.brier"] < errors["float16"]["calibration.brier"]
    assert "uint16 zstd 4, one shard an item" in capsys.readouterr().out


def test_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's part of a run whose workers are made up."""
    from benchmarks import scale

    monkeypatch.setattr(scale, "HEIGHT", 16)
    monkeypatch.setattr(scale, "WIDTH", 32)
    row = scale.client(250, "pavpu", False)
    assert row["items"] == 250 and row["sent_bytes_an_item"] > 0 and row["states_mb"] is None
    one, eight = (
        scale.predicted(10**6, 1.6e9, workers, 8, float("inf"), scale.Machine())
        for workers in (1, 8)
    )
    assert one["hours"] == pytest.approx(8 * eight["hours"], rel=1e-3)
    store_bound = scale.predicted(10**6, 1.6e9, 512, 8, 1e9, scale.Machine())
    assert store_bound["hours"] == pytest.approx(1.6e6 / 3600, rel=1e-3)


def test_faults_are_spread_over_all_calls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import faults

    assert [faults.spread(5, most) for most in (1, 2, 3, 9)] == [
        [1], [1, 5], [1, 3, 5], [1, 2, 3, 4, 5],
    ]  # fmt: skip
    for wrong, message in ((["selects"], "no command selects; there are"), (["--most", "0"], "0;")):
        monkeypatch.setattr(sys, "argv", ["faults.py", *wrong])
        with pytest.raises(SystemExit, match="2"):
            faults.main()
        assert message in capsys.readouterr().err


def test_conformal_losses_are_within_alpha(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import conformal

    images = conformal.population(1, 40)
    q = conformal.threshold(images, "0.2")
    assert conformal.losses(images, q).sum() + 1 <= 0.2 * 41
    assert conformal.losses(images, float(np.nextafter(np.float32(q), 0))).sum() + 1 > 0.2 * 41
    conformal.main(["--repeats", "3", "--images", "9"])
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_fitted_numbers_are_simulated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import fitted
    from uqeval.statistics import swaps

    monkeypatch.setattr(swaps, "MOST", 100)
    fitted.main(
        [
            "--repeats",
            "1",
            "--items",
            "12",
            "--fit",
            "4",
            "--only",
            "max",
            "2% of images hard, ranks",
        ]
    )
    lines = capsys.readouterr().out.splitlines()
    rows = {tuple(line.split(" | ")[:2]): line.split(" | ")[2:] for line in lines[2:]}
    group, of_ranks = "max-surplus of all images", "2% of images hard, ranks of all"
    scores = [len(fitted.GROUPS[name].scores) for name in (group, of_ranks)]
    assert len(rows) == 2 * scores[0] + scores[1]
    own = rows[f"| {group}", "pavpu.pavpu"]
    assert own[-1] == "no |" and "±" in own[0]
    assert rows[f"| {of_ranks}", "failure.auroc"][-1] == "yes |"


def test_synthetic_populations_have_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from benchmarks import populations

    rng = np.random.default_rng(0)
    for score in (*populations.SCORES, *populations.UNSEEN):
        # Some items of each drive, and enough of them that rare events occur.
        counts = score.counts(rng, np.arange(600) // 2, 30)
        values = score.of(np.stack([counts[:300].sum(0), counts.sum(0)]))
        assert values.shape == (2,) and ((values > 0) & (values < 1.5)).all(), score.name


def simulation(*arguments: str) -> str:
    """What a script of `benchmarks` prints."""
    folder = Path(__file__).parents[1] / "benchmarks"
    given = [str(folder / arguments[0]), *arguments[1:]]
    script = f"import runpy, sys; sys.argv = {given}; runpy.run_path(sys.argv[0], {{}}, '__main__')"
    done = run_script(script, folder.parent)
    assert done.status == 0, done.stderr
    return done.stdout


def test_intervals_and_verdicts_are_simulated() -> None:
    printed = simulation("intervals.py", "--replications", "2", "--scores", "AUROC of errors",
                         "ratio of counts (PAvPU)")  # fmt: skip
    rows = [line for line in printed.splitlines() if line.startswith("| AUROC of errors |")]
    assert len(rows) == 8  # coverage and false passes of three designs, power of two sizes
    assert "pavpu.surplus" in printed


def test_biased_scores_are_simulated() -> None:
    printed = simulation("biased.py", "--replications", "3", "--items", "12", "--size", "200",
                         "--scores", "ece", "classwise_ece", "brier_decomposition.reliability",
                         "--only", "few, +", "groups, 0")  # fmt: skip
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 6 and "value outside" not in printed
    reliability = next(row for row in rows if row[1].endswith("reliability"))
    assert reliability[3].startswith("100 (0;")


def test_differences_of_two_models_are_simulated() -> None:
    printed = simulation("differences.py", "--replications", "4", "--items", "12", "--size", "200",
                         "--scores", "calibration.ece", "failure.auroc", "regression.auce",
                         "--only", "few, equal, +", "numbers, few, one calibrated")  # fmt: skip
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| ")][1:]
    assert [row[1] for row in rows] == ["ece", "auroc", "auce"]
    assert rows[0][3].startswith("100 (0; 0) ") and "before" in rows[0][3]
    assert "before" not in rows[1][3]


def test_scores_of_few_events_are_simulated() -> None:
    printed = simulation("few_events.py", "--replications", "2", "--items", "10", "--size", "300",
                         "--events", "4", "--scores", "failure.auroc")  # fmt: skip
    rows = [line for line in printed.splitlines() if line.startswith("| failure.auroc | ")]
    # Events of any image, and of few images: different ones, far more uncertain ones, and alike.
    assert len(rows) == 4


def test_few_changes_are_simulated() -> None:
    printed = simulation("few_changes.py", "--items", "10", "--rates", "0.05", "--better", "0.6",
                         "--replications", "50")  # fmt: skip
    lines = printed.splitlines()
    assert lines[2] == "| 10 | 60% | 0.0% (no item: 63%) |"
    assert "Monte Carlo error 3.1 at 5 %" in lines[4]
    assert lines[-1].startswith("| 10 | 0.0; 0.0 (before ")


def test_equal_shares_of_other_numbers_of_pixels_are_simulated() -> None:
    printed = simulation("other_counts.py", "--replications", "2", "--items", "10",
                         "--factors", "1", "3")  # fmt: skip
    row = printed.splitlines()[-1]
    assert row.startswith("| 10 | ") and row.count(" %") == 4


def test_gates_with_confidence_are_simulated() -> None:
    printed = simulation("gates.py", "--replications", "2", "--items", "10", "--size", "200",
                         "--only", "failure.aurc")  # fmt: skip
    rows = [line.split(" | ") for line in printed.splitlines() if line.startswith("| ")][1:]
    assert [row[1] for row in rows] == ["max", "max_rise", "max_rise_relative"] * 2 + ["min"]


def test_rankings_of_few_items_are_simulated() -> None:
    rows = simulation("few_items.py", "--replications", "4", "--items", "10").splitlines()
    assert len(rows) == 14 and "AUROC of two sets" in rows[-3]


def test_the_bias_of_miou_is_simulated() -> None:
    rows = simulation("miou_bias.py", "--replications", "2").splitlines()
    assert len(rows) == 8 and rows[-1].count("(") == 3


def test_every_interval_of_a_report_is_simulated() -> None:
    printed = simulation("every_interval.py", "--replications", "2", "--items", "8", "--size", "40",
                         "--only", "annotators")  # fmt: skip
    rows = {line.split(" | ")[1] for line in printed.splitlines() if line.startswith("| ")}
    assert {"annotators.ged", "annotators.ncc", "annotators.kappa"} < rows
