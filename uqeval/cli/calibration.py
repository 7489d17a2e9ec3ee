"""`uqeval calibration`: does a confidence of 0.9 mean right nine times in ten?"""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli.evaluating import evaluating
from uqeval.cli.options import choice_of
from uqeval.metrics.calibration import CHOICES

_BINS, _TEMPERATURE = "Bins", "Temperature"

_choice = choice_of(CHOICES)
Definition, Edge, AtOne = _choice("definition"), _choice("edge"), _choice("at_one")
TemperatureOf, Binary = _choice("temperature_of"), _choice("binary")
Estimator = _choice("estimator")


@evaluating
def calibration(
    bins: Annotated[list[int] | None, typer.Option(
        metavar="B", show_default=False, rich_help_panel=_BINS,
        help="Bins of confidence (default 15); several make variants.")] = None,
    edge: Annotated[list[Edge] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_BINS,
        help="A confidence on an edge lies in the lower bin (default), in the upper one, or in the "
        "upper one with edges rounded to float32.")] = None,
    at_one: Annotated[list[AtOne] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_BINS,
        help="With --edge upper, confidence 1 lies in the last bin (default), in its own, or in "
        "none.")] = None,
    binary: Annotated[list[Binary] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_BINS,
        help="With two classes, the bins are of the top label's probability (default) or of class "
        "1's.")] = None,
    estimator: Annotated[list[Estimator] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_BINS,
        help="Beside the plug-in ECE, an estimate with less bias: Kumar et al. 2019 (root of the "
        "mean squared gap, mean gap) or Roelofs et al. 2022; several make variants.")] = None,
    clip: Annotated[float | None, typer.Option(
        metavar="P", show_default=False,
        help="Least probability in the NLL (default 2^-24).")] = None,
    adaptive: Annotated[bool | None, typer.Option(
        "--adaptive/--no-adaptive", show_default=False, rich_help_panel=_BINS,
        help="The adaptive ECE (default). Its bins are of the whole set, which is read again for "
        "them when it has grown.")] = None,
    temperature: Annotated[bool | None, typer.Option(
        "--temperature/--no-temperature", show_default=False, rich_help_panel=_TEMPERATURE,
        help="Fit a temperature and give the scores after it (default).")] = None,
    temperature_of: Annotated[list[TemperatureOf] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False, rich_help_panel=_TEMPERATURE,
        help="It scales the mean of the samples (default), or each of the samples before they are "
        "averaged, which reads the stack again; both make variants.")] = None,
    fit_on: Annotated[str | None, typer.Option(
        metavar="FILE", show_default=False, rich_help_panel=_TEMPERATURE,
        help="Fit it on the items that FILE names, a JSON list or one a line (default: all).",
        )] = None,
    definition: Annotated[list[Definition] | None, typer.Option(  # type: ignore[valid-type]
        show_default=False,
        help="Whose definition: sets the other options as that paper or code has them; several "
        "make variants.")] = None,
) -> None:  # fmt: skip
    """Confidence vs accuracy: does 0.9 mean right nine times in ten?

    ECE, MCE, adaptive and class-wise ECE, Brier score, NLL, the reliability diagram, and the
    temperature that makes the NLL least, with the scores after it.

    Example: uqeval calibration preds.zarr labels/ -o report.json
    """
