"""What the fields of a report are called, which come first, and what they mean in one sentence."""

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

_MEANINGS = {
    "segmentation.miou": "Overlap of prediction and label, averaged over classes.",
    "segmentation.pixel_accuracy": "Share of pixels with the right class.",
    "segmentation.mean_accuracy": "Share of pixels with the right class, averaged over classes.",
    "pavpu.surplus": "How much the uncertainty knows of the errors; 0: nothing, below 0: less "
    "than nothing.",
    "pavpu.pavpu": "Share of patches that are accurate and certain, or inaccurate and uncertain.",
    "pavpu.pavpu_chance": "The PAvPU of an uncertainty that knows nothing of the errors.",
    "pavpu.p_accurate": "Share of patches that are accurate.",
    "pavpu.p_certain": "Share of patches that are certain.",
    "pavpu.p_accurate_given_certain": "Where the model is certain, how often it is right.",
    "pavpu.p_uncertain_given_inaccurate": "Where the model is wrong, how often it is uncertain.",
    "pavpu.phi": "Correlation of accurate with certain.",
    "calibration.ece": "Mean gap between confidence and accuracy.",
    "calibration.mce": "Greatest gap between confidence and accuracy of a bin.",
    "calibration.adaptive_ece": "Mean gap, in bins of equally many pixels.",
    "calibration.classwise_ece": "Mean gap, over the probabilities of all classes.",
    "calibration.kumar_l2": "Root of the mean squared gap, corrected for the noise of the bins.",
    "calibration.kumar_l1": "Mean gap, corrected for the noise of the bins.",
    "calibration.sweep_l1": "Mean gap in as many bins as keep the accuracy rising.",
    "calibration.sweep_l2": "Root of the mean squared gap in as many bins as keep the accuracy "
    "rising.",
    "calibration.brier": "Squared error of the probabilities.",
    "calibration.nll": "Surprise at the labels.",
    "calibration.temperature.value": "Above 1 the model is over-confident.",
    "failure.auroc": "How often a wrong pixel is more uncertain than a right one; 0.5 is chance.",
    "failure.aurc": "Mean share of errors left, over all coverages.",
    "failure.fpr95": "Share of right pixels flagged when 95 % of the errors are.",
    "failure.undetected_error_rate": "Share of pixels that are wrong and not flagged.",
    "sparsification.ause": "Area between the curve and the oracle.",
    "sparsification.aurg": "Gain over removing pixels at random.",
    "regression.rmse": "Root of the mean squared error.",
    "regression.mae": "Mean absolute error.",
    "regression.auce": "Area between nominal and observed coverage.",
    "regression.crps": "Distance of the predicted distribution to the target.",
    "regression.sharpness": "Root of the mean predicted variance.",
    "nmerci.nmerci": "0: the uncertainty is the error; 1: it is no better than a constant.",
    "nmerci.mae_trimmed": "Mean error without the greatest ones.",
    "divergence.kl": "How far the predictions are from the reference.",
    "temporal.mtc": "Overlap of each frame's prediction with that of the frame before, moved "
    "along by the optical flow.",
    "temporal.miou_mean": "Mean over frames of their mIoU.",
}  # fmt: skip


def label(field: str) -> str:
    """What a field is called for the eye."""
    parts = [_LABELS.get(part, part.replace("_", " ")) for part in field.split(".")]
    return ", ".join(parts)


def family_label(family: str) -> str:
    """What a family is called for the eye."""
    return FAMILIES.get(family, family)


def meaning(family: str, field: str) -> str:
    """What a field says, in one sentence, or nothing."""
    return _MEANINGS.get(f"{family}.{field}", "")
