"""Which options of a report the plain path supports, and with which values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqeval.errors import StoreError, cut, option_name, quoted
from uqeval.glossary import default_setting, families, recorded_settings
from uqeval.keys import family_of

#: Options of a family of which the plain path supports only these values.
_PLAIN: dict[str, dict[str, tuple[Any, ...]]] = {
    "pavpu": {
        "border": ("drop",), "void": ("exclude",), "top_k": (1,), "threshold_scope": ("set",),
    },
    "calibration": {"edge": ("lower",), "at_one": ("last",), "binary": ("top",)},
    "sparsification": {
        "keep": ("floor",), "ties": ("averaged",), "normalise": ("first",), "end": ("last",),
        "grid": ("steps",), "error": ("brier", "zero-one", "rmse", "mse", "mae"),
    },
    "regression": {"proportion": ("interval",), "area": ("trapezoid",), "grid": ("open",)},
    "nmerci": {"over": ("all",), "interpolation": ("linear", "inverted_cdf")},
    "conformal": {"method": ("lac", "aps", "scaled")},
    "temporal": {
        "grid": ("current",), "out_of_frame": ("exclude",), "absent": ("exclude", "zero"),
        "flow_scale": (1.0,),
    },
}  # fmt: skip

#: Options with any value: the plain path computes with them, or knows which fields to leave out.
_COMPUTED: dict[str, str] = {
    "pavpu": "uncertainty window stride region_share log_base threshold threshold_from curve_range "
    "deciles accuracy_threshold accuracy_op uncertainty_op",
    "calibration": "bins estimator clip adaptive temperature temperature_of fit_on",
    "failure": "uncertainty threshold threshold_from log_base",
    "image_failure": "uncertainty threshold threshold_from log_base risk confidence patch "
    "risk_limit item_table",
    "sparsification": "uncertainty scope steps",
    "regression": "uncertainty distribution levels depth",
    "nmerci": "uncertainty alpha mae",
    "divergence": "clip",
    "ood": "uncertainty aggregation patch log_base",
    "conformal": "fit_on alpha risk uncertainty",
    "annotators": "uncertainty distance distance_classes absent pairs disagreement ncc_ddof bins "
    "clip",
    "temporal": "flow model occlusion least_pixels average drop_cuts",
}

#: Options that change only fields that are not recomputed.
_OF_OTHER_FIELDS: dict[str, str] = {
    "calibration": "isotonic vector",
    "regression": "ence ence_bins sigma_scale fit_on",
    "nmerci": "depth_step",
    "temporal": "tracks track_step track_length track_everywhere",
}


def refuse_other_settings(path: str, key: str, settings: Mapping[str, Any]) -> None:
    """Raise `StoreError` for settings of a key that no run records: values that their options do
    not allow, and parameters of another optical flow."""
    checked = recorded_settings(key, settings, path)
    if family_of(key) != "temporal":
        return
    method = checked.method
    for name, value in {"flow": method.id, "flow_parameters": dict(method.parameters)}.items():
        if settings[name] != value:
            raise StoreError(
                f"{path}: settings.{cut(key)}: {name} is {quoted(settings[name])}; a run with this "
                f"flow records {quoted(value)}. Evaluate again."
            )


def supported_options(family: str) -> set[str]:
    """Return the options of a family of which `not_supported` knows the supported values."""
    # A definition sets other options. Of `ood` it requests scores, which are recomputed.
    any_value = f"definition {_COMPUTED.get(family, '')} {_OF_OTHER_FIELDS.get(family, '')}"
    return {*_PLAIN.get(family, {}), *any_value.split()}


def not_supported(family: str, settings: Mapping[str, Any]) -> str | None:
    """Return which option has a value that the plain path does not support; None without one.

    Of an option in no list of this module, it supports the default only.
    """
    known = supported_options(family)
    supported = dict(_PLAIN.get(family, {})) | {
        name: (default_setting(family, name),)
        for name in families()[family].settings_type.__dataclass_fields__ if name not in known
    }  # fmt: skip
    for name, values in supported.items():
        if name in settings and settings[name] not in values:
            return f"{option_name(name)} {settings[name]} is not supported by uqeval verify"
    return None


def converted(options: Mapping[str, Any]) -> str | None:
    """Return why no score is recomputed where input options convert the predictions; else None."""
    for name in ("baseline_focal", "median_scaling"):
        if options.get(name):
            return f"{option_name(name)} is not supported by uqeval verify"
    return None
