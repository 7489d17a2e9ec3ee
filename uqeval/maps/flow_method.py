"""Methods of optical flow as users write them: a name, a preset, changed parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from uqeval.errors import UsageError, nearest, number_in, quoted

Number = int | float


class _Parameter(NamedTuple):
    """A parameter's name and default, and the smallest and largest value that the estimator
    supports.

    An integer default means whole numbers. Estimators check little themselves: other values may
    crash the process, or give flow that is not finite.
    """

    name: str
    default: Number
    least: Number
    most: Number


#: OpenCV's `calcOpticalFlowFarneback`; the values of Nilsson and Sminchisescu's GRFP.
_FARNEBACK = (
    _Parameter("pyr_scale", 0.5, 0.01, 0.99),
    _Parameter("levels", 3, 1, 100),
    _Parameter("winsize", 15, 1, 999),
    _Parameter("iterations", 3, 1, 1000),
    _Parameter("poly_n", 5, 1, 99),
    _Parameter("poly_sigma", 1.2, 0.1, 100.0),
    _Parameter("flags", 0, 0, 256),  # 256: a Gaussian window; other flags need an initial flow
)


def _dis(finest: int, stride: int, descent: int, refinement: int) -> tuple[_Parameter, ...]:
    return (
        _Parameter("finest_scale", finest, 0, 9),
        _Parameter("patch_size", 8, 4, 16),
        _Parameter("patch_stride", stride, 1, 16),
        _Parameter("gradient_descent_iterations", descent, 0, 1000),
        _Parameter("variational_refinement_iterations", refinement, 0, 1000),
        _Parameter("variational_refinement_alpha", 20.0, 0.0, 1e6),
        _Parameter("variational_refinement_delta", 5.0, 0.0, 1e6),
        _Parameter("variational_refinement_gamma", 10.0, 0.0, 1e6),
        _Parameter("variational_refinement_epsilon", 0.01, 1e-6, 1e6),
        _Parameter("use_mean_normalization", 1, 0, 1),
        _Parameter("use_spatial_propagation", 1, 0, 1),
    )


#: scikit-image's `optical_flow_tvl1`.
_TVL1 = (
    _Parameter("attachment", 15.0, 0.0, 1e6),
    _Parameter("tightness", 0.3, 1e-6, 1e6),
    _Parameter("num_warp", 5, 1, 1000),
    _Parameter("num_iter", 10, 1, 1000),
    _Parameter("tol", 1e-4, 0.0, 1.0),
    _Parameter("prefilter", 0, 0, 1),
)

_METHODS: dict[str, tuple[_Parameter, ...]] = {
    "farneback": _FARNEBACK,
    "dis:medium": _dis(1, 3, 25, 5),
    "dis:fast": _dis(2, 4, 16, 5),
    "dis:ultrafast": _dis(2, 4, 12, 0),
    "tvl1": _TVL1,
    "file": (),
}

#: The choices of `--flow`; parameters follow as `farneback:winsize=21` or
#: `dis:fast,finest_scale=1`.
CHOICES = ("farneback", "dis", "dis:medium", "dis:fast", "dis:ultrafast", "tvl1", "file")


@dataclass(frozen=True)
class FlowMethod:
    """A method of optical flow with all its parameters; made by `flow_method`.

    `parameters` includes defaults. `scale`: the side of the images for the estimate, as a fraction
    of the frames' side; 1 is full resolution. `file` means saved flow.
    """

    name: str
    preset: str | None
    parameters: tuple[tuple[str, Number], ...]
    scale: float = 1.0

    @property
    def id(self) -> str:
        """Return the canonical text of the method.

        For example `farneback:winsize=21`, `dis:medium`, `dis:fast@0.5`. Defaults are left out, so
        equal methods have equal ids.
        """
        base = self.name if self.preset is None else f"{self.name}:{self.preset}"
        defaults = {p.name: p.default for p in _METHODS[base]}
        changed = [f"{n}={v!r}" for n, v in self.parameters if v != defaults[n]]
        text = base
        if changed:
            text += f"{',' if ':' in base else ':'}{','.join(changed)}"
        return text if self.scale == 1.0 else f"{text}@{self.scale!r}"


def flow_method(text: str, scale: float = 1.0) -> FlowMethod:
    """Return the flow that `text` names: one of `CHOICES`, followed by changed parameters, or an
    `id`.

    Raises `UsageError` for an unknown name, preset or parameter, and for values that the estimator
    does not support.
    """
    bare, at, scale_text = text.partition("@")
    if at:
        scale = _scale_of(text, scale_text, scale)
    head, _, arguments = bare.partition(":")
    words = arguments.split(",") if arguments else []
    base = head
    if words and "=" not in words[0]:
        base = f"{head}:{words.pop(0)}"
    elif head == "dis":
        base = "dis:medium"
    if base not in _METHODS or bare.endswith((":", ",")):
        raise UsageError(
            f"--flow {quoted(text)}; expected one of {', '.join(CHOICES)}.{_nearest(base, CHOICES)}"
        )
    parameters = {p.name: p for p in _METHODS[base]}
    values = {p.name: p.default for p in parameters.values()}
    for word in words:
        name, _, value = word.partition("=")
        if name not in parameters:
            choices = f"one of {', '.join(parameters)}" if parameters else "none"
            raise UsageError(
                f"--flow {quoted(text)}: parameter {quoted(name)}; expected "
                f"{choices}.{_nearest(name, parameters)}"
            )
        values[name] = _number(text, parameters[name], value)
    if values.get("flags") not in (None, 0, 256):
        raise UsageError(f"--flow {quoted(text)}: flags; expected 0, or 256 for a Gaussian window.")
    if values.get("patch_stride", 0) > values.get("patch_size", 0):
        raise UsageError(f"--flow {quoted(text)}: patch_stride; expected at most patch_size.")
    if not 0.01 <= scale <= 1:
        raise UsageError(f"--flow-scale {scale}; expected 0.01 to 1.")
    if base == "file" and scale != 1:
        raise UsageError("--flow-scale applies to estimated flow; --flow file is used as saved.")
    name, _, preset = base.partition(":")
    return FlowMethod(name, preset or None, tuple(values.items()), float(scale))


def _number(text: str, parameter: _Parameter, value: str) -> Number:
    is_integer = isinstance(parameter.default, int)
    try:
        number: Number = number_in(value)
        if is_integer:
            number = int(value)
    except ValueError:
        number = math.nan
    if not parameter.least <= number <= parameter.most:
        raise UsageError(
            f"--flow {quoted(text)}: {parameter.name}={value}; expected a "
            f"{'whole ' if is_integer else ''}number from {parameter.least} to {parameter.most}."
        )
    return number


def _scale_of(text: str, spelling: str, scale: float) -> float:
    try:
        factor = number_in(spelling)
    except ValueError:
        raise UsageError(f"--flow {quoted(text)}: expected a number after @.") from None
    if scale not in (1.0, factor):
        raise UsageError(
            f"--flow {quoted(text)} and --flow-scale {scale} differ; give one of them."
        )
    return factor


def _nearest(name: str, choices: Iterable[str]) -> str:
    near = nearest(name, choices)
    return f" Did you mean {near}?" if near else ""
