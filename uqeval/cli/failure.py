"""`uqeval failure`: does the uncertainty find the errors?"""

from __future__ import annotations

from typing import Annotated

import typer

from uqeval.cli.evaluating import evaluating


@evaluating
def failure(
    uncertainty: Annotated[list[str] | None, typer.Option(
        metavar="NAME", show_default=False,
        help="entropy (default), mutual_information, expected_entropy, confidence, "
        "variation_ratio, std, or any map of the store; give it again for more.")] = None,
    threshold: Annotated[list[str] | None, typer.Option(
        metavar="RULE", show_default=False,
        help="Uncertainty threshold of the undetected errors: mean (default) of the pixels; median "
        "or pNN of the 4×4 patches; range:T; max-surplus; or a number.")] = None,
    log_base: Annotated[str | None, typer.Option(
        metavar="e|2|classes", show_default=False,
        help="Base of the entropies (default e): the unit of thresholds.")] = None,
) -> None:  # fmt: skip
    """Failure detection: are wrong pixels less certain than right ones?

    AUROC, AUPR, FPR95, AURC, e-AURC, AUGRC, risk at coverage, coverage at risk and undetected
    errors, of all pixels and by ground-truth class, nothing sampled.

    Example: uqeval failure preds.zarr labels/ --uncertainty entropy --uncertainty confidence
    """
