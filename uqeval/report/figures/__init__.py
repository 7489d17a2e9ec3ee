"""Figures of one report, or of several over each other; nothing is drawn before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uqeval.disk.leftovers import clear_beside
from uqeval.errors import OutputError, cut
from uqeval.report.figures import (
    accuracy_by_uncertainty,
    classes,
    failure,
    headlines,
    nmerci,
    pavpu,
    regression,
    reliability,
    slices,
    sparsification,
    sweep,
    temporal,
)
from uqeval.report.figures.contract import Figure, Maker, lines_of
from uqeval.report.files import write
from uqeval.report.schema import Report

__all__ = ["FORMATS", "Figure", "figures_of", "write_figures"]

FORMATS = ("svg", "png", "pdf")
#: What draws the results of a family, beside its bars by class.
_MAKERS: dict[str, tuple[Maker, ...]] = {
    "pavpu": (pavpu.figures, accuracy_by_uncertainty.figures),
    "calibration": (reliability.figures,),
    "failure": (failure.figures,),
    "sparsification": (sparsification.figures,),
    "regression": (regression.figures,),
    "nmerci": (nmerci.figures,),
    "temporal": (temporal.figures,),
    "sweep": (sweep.figures,),
}


def figures_of(reports: Mapping[str, Report]) -> dict[str, list[Figure]]:
    """Figures by family, in the order of the reports' results; "" are those over all families,
    "slices" those of the slices of one report."""
    families = lines_of(reports)
    by_class = classes.makers()
    overall = headlines.figure(families)
    found = {"": [overall]} if overall else {}
    for family, lines in families.items():
        makers = _MAKERS.get(family, ())
        own = [figure for make in makers for figure in make(lines)]
        if family in by_class:
            own += by_class[family](lines)
        if own:
            found[family] = own
    if len(reports) == 1:
        (report,) = reports.values()
        cut = slices.figure(families, report.slices)
        found |= {"slices": [cut]} if cut else {}
    return found


def write_figures(reports: Mapping[str, Report], folder: str | Path, form: str) -> list[Path]:
    """Write all figures into a folder as `svg`, `png` or `pdf`. Raises `OutputError`."""
    from uqeval.report.figures.style import render

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{cut(folder)}: cannot be made: {error.strerror}.") from error
    written = []
    for figures in figures_of(reports).values():
        for figure in figures:
            path = Path(folder) / f"{figure.name}.{form}"
            clear_beside(path)  # what a killed process has left
            write(path, render(figure, form))
            written.append(path)
    return written
