"""`uqeval pavpu`: patch metrics of Mukhoti & Gal and of Ma et al., with the segmentation scores."""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli.evaluating import evaluating
from uqeval.cli.options import choice_of
from uqeval.metrics.pavpu_settings import CHOICES

_PATCH, _THRESHOLD = "Patches", "Thresholds"

_choice = choice_of(CHOICES)
Definition, Border, Void = _choice("definition"), _choice("border"), _choice("void")
AccuracyOp, UncertaintyOp = _choice("accuracy_op"), _choice("uncertainty_op")
Scope = _choice("threshold_scope")


@evaluating
def pavpu(
    uncertainty: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False, rich_help_panel=_PATCH,
        help="entropy (default), mutual_information, expected_entropy, confidence, "
        "variation_ratio, std, or any map of the store; give it again for more.")] = None,
    window: Annotated[list[int] | None, typer.Option(
        metavar="PIXELS", show_default=False, rich_help_panel=_PATCH,
        help="Side of a patch (default 4); several make variants.")] = None,
    stride: Annotated[list[int] | None, typer.Option(
        metavar="PIXELS", show_default=False, rich_help_panel=_PATCH,
        help="Step between patches (default: the window; 1 slides).")] = None,
    border: Annotated[list[Border] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_PATCH,
        help="Incomplete patches: drop them (default), keep what they have, or pad with wrong "
        "pixels of uncertainty 0.")] = None,
    void: Annotated[list[Void] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_PATCH,
        help="Void pixels: leave the patch (default), or count as inaccurate.")] = None,
    top_k: Annotated[list[int] | None, typer.Option(
        metavar="K", show_default=False, rich_help_panel=_PATCH,
        help="A pixel is right when its label is among the K likeliest (default 1).")] = None,
    log_base: Annotated[str | None, typer.Option(
        metavar="e|2|classes", show_default=False, rich_help_panel=_PATCH,
        help="Base of the entropies (default e).")] = None,
    threshold: Annotated[list[str] | None, typer.Option(
        metavar="RULE", show_default=False, rich_help_panel=_THRESHOLD,
        help="Uncertainty threshold: mean (default) of the pixels; median or pNN of the patches; "
        "range:T; max-surplus; or a number.")] = None,
    threshold_from: Annotated[str | None, typer.Option(
        metavar="REPORT", show_default=False, rich_help_panel=_THRESHOLD,
        help="Take the uncertainty threshold that another report fitted.")] = None,
    threshold_scope: Annotated[list[Scope] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_THRESHOLD,
        help="Fit the threshold on the whole set (default), each class, or each item.")] = None,
    curve_range: Annotated[str | None, typer.Option(
        metavar="LOW:HIGH", show_default=False, rich_help_panel=_THRESHOLD,
        help="Ends of the curve over thresholds (default: the least and the greatest uncertainty "
        "of the set); with a number as threshold, parts can be merged.")] = None,
    accuracy_threshold: Annotated[list[float] | None, typer.Option(
        metavar="A", show_default=False, rich_help_panel=_THRESHOLD,
        help="A patch is accurate above this share of right pixels (default 0.5).")] = None,
    accuracy_op: Annotated[list[AccuracyOp] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_THRESHOLD,
        help="Is a patch on the accuracy threshold accurate? > no (default), >= yes.")] = None,
    uncertainty_op: Annotated[list[UncertaintyOp] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_THRESHOLD,
        help="Is a patch on the uncertainty threshold uncertain? > no (default), >= yes.")] = None,
    deciles: Annotated[bool | None, typer.Option(
        "--deciles/--no-deciles", show_default=False, rich_help_panel=_THRESHOLD,
        help="The table of accuracy by decile of uncertainty (default). Deciles are of the whole "
        "set, which is read again for them when it has grown.")] = None,
    definition: Annotated[list[Definition] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False,
        help="Whose definition: sets the other options as that paper or code has them; several "
        "make variants.")] = None,
) -> None:  # fmt: skip
    """Patch accuracy vs patch uncertainty: are the uncertain places the wrong ones?

    PAvPU, p(accurate | certain), p(uncertain | inaccurate), phi, the PAvPU Surplus, their curves,
    per class and for mixed patches, with the segmentation scores beside them.

    Example: uqeval pavpu preds.zarr labels/ -o report.json
    """
