"""`uqeval nmerci`: does the predicted uncertainty follow the error, whatever its scale?"""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli.evaluating import evaluating
from uqeval.cli.options import choice_of
from uqeval.metrics.nmerci import CHOICES

_CHOICES = "Choices of a definition"

_choice = choice_of(CHOICES)
Interpolation, Over = _choice("interpolation"), _choice("over")
Mae, Definition = _choice("mae"), _choice("definition")


@evaluating
def nmerci(
    uncertainty: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False,
        help="sigma (default), the predicted standard deviation; or a map of the store in its "
        "place; give it again for more.")] = None,
    alpha: Annotated[list[float] | None, typer.Option(
        metavar="PERCENT", show_default=False,
        help="Share of the pixels that the rescaled intervals hold (default 95); several make "
        "variants.")] = None,
    depth_step: Annotated[float | None, typer.Option(
        metavar="STEP", show_default=False,
        help="Also by interval of the target of this width, each with its own "
        "percentiles.")] = None,
    interpolation: Annotated[list[Interpolation] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Percentiles: linear (default), inverted_cdf, or truncated: the last of the first "
        "floor(N·α) values.")] = None,
    over: Annotated[list[Over] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Means over all pixels (default), or over those kept: with λ up to λ^α.")] = None,
    mae: Annotated[list[Mae] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="The MAE of all pixels (default), or trimmed to errors up to max^α.")] = None,
    definition: Annotated[list[Definition] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False,
        help="Whose definition: sets the choices below as that paper or code has them; several "
        "make variants.")] = None,
) -> None:  # fmt: skip
    """n-MeRCI: does the predicted uncertainty follow the error, whatever its scale?

    0 for an uncertainty equal to the error, 1 for a constant one; MeRCI, its curve over α, and by
    interval of the ground truth.

    Example: uqeval nmerci depth.zarr kitti/ --depth-step 5 -o report.json
    """
