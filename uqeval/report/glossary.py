"""What the fields of a report are called, and which come first."""

from __future__ import annotations

#: The scores of each family that a reader asks for first; the first of them ranks the items.
HEADLINES: dict[str, tuple[str, ...]] = {
    "segmentation": ("miou", "pixel_accuracy"),
    "pavpu": ("surplus", "pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate"),
    "calibration": ("ece", "mce", "brier", "nll"),
    "failure": ("auroc", "aurc", "fpr95", "undetected_error_rate"),
    "sparsification": ("ause", "aurg"),
    "regression": ("rmse", "auce", "nll", "crps"),
    "nmerci": ("nmerci", "mae_trimmed"),
    "divergence": ("kl",),
    "temporal": ("mtc", "miou_mean"),
}
#: Which way is better.
ARROWS = {"higher": "↑", "lower": "↓"}
#: Fields of an item that rank it, where it has none of the headlines.
OF_ITEMS = {"temporal": ("tc", "miou")}

FAMILIES = {
    "segmentation": "Segmentation", "pavpu": "Patch accuracy vs patch uncertainty",
    "calibration": "Calibration", "failure": "Failure detection",
    "sparsification": "Sparsification", "regression": "Regression", "nmerci": "n-MeRCI",
    "divergence": "Divergence from a reference", "temporal": "Temporal consistency",
    "sweep": "Number of samples",
}  # fmt: skip

_LABELS = {
    "miou": "mIoU", "pixel_accuracy": "pixel accuracy", "mean_accuracy": "mean accuracy",
    "iou": "IoU", "pavpu": "PAvPU", "pavpu_chance": "PAvPU by chance", "surplus": "Surplus",
    "half_surplus": "half Surplus", "surplus_auc": "area under the Surplus", "phi": "phi",
    "p_accurate": "p(accurate)", "p_certain": "p(certain)",
    "p_accurate_given_certain": "p(accurate | certain)",
    "p_uncertain_given_inaccurate": "p(uncertain | inaccurate)",
    "n_ac": "accurate, certain", "n_au": "accurate, uncertain", "n_ic": "inaccurate, certain",
    "n_iu": "inaccurate, uncertain", "ece": "ECE", "mce": "MCE", "adaptive_ece": "adaptive ECE",
    "kumar_l2": "Kumar l2", "kumar_l1": "Kumar l1", "sweep_l1": "sweep l1", "sweep_l2": "sweep l2",
    "sweep_bins": "bins of the sweep",
    "classwise_ece": "class-wise ECE", "brier": "Brier score", "nll": "NLL", "auroc": "AUROC",
    "aupr_error": "AUPR of errors", "aupr_success": "AUPR of successes", "fpr95": "FPR95",
    "aurc": "AURC", "e_aurc": "e-AURC", "augrc": "AUGRC",
    "undetected_error_rate": "undetected errors", "ause": "AUSE", "aurg": "AURG", "rmse": "RMSE",
    "mae": "MAE", "nmse": "nMSE", "auce": "AUCE", "auce_over": "AUCE, over-confident",
    "auce_under": "AUCE, under-confident", "crps": "CRPS", "nmerci": "n-MeRCI", "merci": "MeRCI",
    "lambda": "λ", "mae_trimmed": "MAE trimmed", "max_alpha": "max error", "alpha": "α",
    "kl": "KL divergence",
    "per_class": "by class", "by_depth": "by interval of the target",
    "mtc": "mTC", "mtc_no_warp": "mTC without a warp", "mtc_pooled": "mTC, pooled",
    "mtc_frequency_weighted": "mTC, weighted by pixels", "tc": "TC", "miou_mean": "mean mIoU",
}  # fmt: skip


def label(field: str) -> str:
    """What a field is called for the eye."""
    parts = [_LABELS.get(part, part.replace("_", " ")) for part in field.split(".")]
    return ", ".join(parts)


def family_label(family: str) -> str:
    """What a family is called for the eye."""
    return FAMILIES.get(family, family)
