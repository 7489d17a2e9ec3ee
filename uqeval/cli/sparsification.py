"""`uqeval sparsification`: does the error fall as the least certain pixels are removed?"""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli.evaluating import evaluating
from uqeval.cli.options import choice_of
from uqeval.metrics.sparsification_settings import CHOICES

_CHOICES = "Choices of a definition"

_choice = choice_of(CHOICES)
Error, Definition, Scope, Keep = (_choice(n) for n in ("error", "definition", "scope", "keep"))
Ties, Normalise, End, Grid = (_choice(n) for n in ("ties", "normalise", "end", "grid"))


@evaluating
def sparsification(
    uncertainty: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False,
        help="entropy (default for classes), sigma (default for regression), mutual_information, "
        "confidence, …, or any map of the store; give it again for more.")] = None,
    error: Annotated[list[Error] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False,
        help="brier (default) or zero-one for classes; rmse (default), mse, mae or abs-rel for "
        "regression; give it again for more.")] = None,
    scope: Annotated[list[Scope] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False,
        help="Pooled over the set (default), or the mean over items of their own curves.")] = None,
    steps: Annotated[list[int] | None, typer.Option(
        metavar="K", show_default=False, rich_help_panel=_CHOICES,
        help="Curves at the fractions k/K removed (default 100).")] = None,
    keep: Annotated[list[Keep] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Pixels kept of N: N - floor(kN/K) (default), the float (1 - k/K)N cut to an integer, "
        "or up to a quantile.")] = None,
    ties: Annotated[list[Ties] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Pixels tied at a cut: averaged (default), or kept together.")] = None,
    normalise: Annotated[list[Normalise] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Divide the curves by their first value (default), or not.")] = None,
    end: Annotated[list[End] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Areas end at the last fraction (default), or at 1 with an error of 0 there.")] = None,
    grid: Annotated[list[Grid] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_CHOICES,
        help="Areas of the curves at the steps (default), or over every rank.")] = None,
    definition: Annotated[list[Definition] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False,
        help="Whose definition: sets the choices below as that paper or code has them; several "
        "make variants.")] = None,
) -> None:  # fmt: skip
    """Sparsification: does the error fall as the least certain pixels are removed?

    The curve over the fraction removed, the oracle that removes the largest errors first, AUSE
    (the area between them) and AURG (the gain over removing at random).

    Example: uqeval sparsification preds.zarr labels/ --error brier --error zero-one
    """
