"""`uqeval regression`: errors, calibration and proper scores of predicted numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli.evaluating import evaluating
from uqeval.cli.options import choice_of
from uqeval.metrics.regression import CHOICES

_choice = choice_of(CHOICES)
Distribution, Definition = _choice("distribution"), _choice("definition")
Grid, Proportion, Area = _choice("grid"), _choice("proportion"), _choice("area")
_PLOT = "Calibration plot"


@evaluating
def regression(
    uncertainty: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False,
        help="sigma (default), the predicted standard deviation; or a map of the store in its "
        "place; give it again for more.")] = None,
    distribution: Annotated[list[Distribution] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False,
        help="Whose standard deviation σ is: gaussian (default) or laplace.")] = None,
    levels: Annotated[list[int] | None, typer.Option(
        metavar="K", show_default=False, rich_help_panel=_PLOT,
        help="Calibration at K levels (default 99).")] = None,
    grid: Annotated[list[Grid] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_PLOT,
        help="Where they lie: k/(K + 1), open (default); evenly from 0 to 1, closed; or evenly "
        "from 0.05 to 0.95, 5-95.")] = None,
    proportion: Annotated[list[Proportion] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_PLOT,
        help="Share of the targets in the central interval of a level (default), or on one side of "
        "its quantile.")] = None,
    area: Annotated[list[Area] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_PLOT,
        help="AUCE of the gaps: trapezoid (default), crossing (cut where their line crosses 0), or "
        "their mean.")] = None,
    definition: Annotated[list[Definition] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False,
        help="Whose definition: sets the other options as that paper or code has them; several "
        "make variants.")] = None,
) -> None:  # fmt: skip
    """Regression: are the predicted numbers right, and their standard deviations honest?

    RMSE, MAE, AUCE with its over- and under-confident parts and its calibration plot, NLL, CRPS,
    sharpness, interval scores and coverage.

    Example: uqeval regression depth.zarr kitti/ -o report.json
    """
