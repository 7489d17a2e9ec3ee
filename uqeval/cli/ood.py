"""`uqeval ood`: is the uncertainty higher out of distribution?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from uqeval.cli import options as o
from uqeval.cli.declared import Shared
from uqeval.cli.options import evaluated, of_family, shared_by
from uqeval.errors import UsageError
from uqeval.inputs.opened import members_of


@of_family("ood", *shared_by("classes"), "ood_mask")
def ood(
    shared: Shared,
    settings: dict[str, Any],
    paths: Annotated[list[str] | None, typer.Argument(
        metavar="IN [OUT]...", show_default=False,
        help="Stores of predictions: IN-distribution items, then one or more OUT sets. Members of "
        "an ensemble are joined by +, such as a.zarr+b.zarr. With --ood-mask: PREDS [LABELS]; "
        "void pixels of LABELS do not count.")] = None,
) -> None:  # fmt: skip
    """Out-of-distribution detection: is the model less certain about what it does not know?

    Computes AUROC, AUPR, FPR at 95 % TPR and detection error by pixel and by image, for each OUT
    set, or inside images with a mask of the pixels that are out of distribution.

    Example: uqeval ood cityscapes.zarr fog.zarr animals.zarr --uncertainty mutual_information
    """
    if not paths:
        data: dict[str, Any] = {}
    elif shared.ood_mask is not None:
        members = [member for path in paths for member in members_of(path)]
        data = o.data_of(members) | {"ood_mask": shared.ood_mask}
        if len(data["predictions"]) > len(members_of(paths[0])):  # OUT, not LABELS
            raise UsageError(
                "--ood-mask is for out-of-distribution pixels inside the images of one set, given "
                f"as PREDS [LABELS], and {paths[1]} holds predictions. Leave out --ood-mask to "
                "evaluate IN OUT, or join the members of an ensemble by +."
            )
    elif len(paths) == 1:
        raise UsageError(
            f"no OUT given with {paths[0]}; give IN OUT, or --ood-mask for pixels inside IN."
        )
    else:
        data = {"predictions": members_of(paths[0]), "out": paths[1:]}
    evaluated("ood", shared, data, settings, "IN OUT")
