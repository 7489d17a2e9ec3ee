"""A sample of `benchmarks/random_settings.py`: random data and settings, recomputed by `verify`."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed_reports import differences, read


def test_reports_of_random_settings_follow_from_their_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    from benchmarks import random_settings

    found = list(random_settings.cases(27, seed=0, draws=200))
    assert [text for _, _, problems in found for text in problems or ()] == []
    evaluated = {kind for kind, _, problems in found if problems is not None}
    assert evaluated == set(random_settings.KINDS)


#: Seeds of reports whose intervals were refused: they have the draws of that time.
OF_INTERVALS = {112600000107, 880012000103}
#: By seed, the factors of temperatures that verify does not excuse, near flat losses.
OTHER_TEMPERATURES = {112701000879: 1.05, 112701002553: 1.01}


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("classes", 112600000107),  # items without a wrong patch: intervals of phi and Surplus
        ("pixels", 112605000019),  # two uncertainties, equal in verify and not in the run
        ("ood", 112600000090),  # entropies above 2, of two pixels one step of float32 apart
        ("ood", 112701000079),  # mutual information near ln 2: many pixels equal in float32 only
        ("classes", 112701000879),  # pixels are clipped at the temperature: the NLL has kinks
        ("classes", 9100000000431),  # a bound of AURC far above the changes of narrower bins
        ("classes", 5000184),  # Brier scores of 1e-9, whose shares of their mean are compared
        ("classes", 9300000000760),  # Brier scores below 1e-16 are 0, and their shares undefined
        ("numbers", 880012000103),  # draws of one target: their NMSE was 1e14, not undefined
        ("classes", 112701002553),  # none is clipped at it, and the clipped NLL is lower elsewhere
    ],
)
def test_reports_that_verify_refused_although_they_are_right(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    monkeypatch.chdir(tmp_path)
    from benchmarks import random_settings

    draws = 2000 if seed in OF_INTERVALS else 200
    assert random_settings.problems_of(kind, seed, draws) == []
    if seed in OTHER_TEMPERATURES:
        report = read("report.json")
        report["results"]["calibration"]["temperature"]["value"] *= OTHER_TEMPERATURES[seed]
        assert any("temperature" in own.field for own in differences(report))
