"""Smooth ECE: the calibration error without bins (Błasiok & Nakkiran 2023).

smECE_σ = ∫ |Σ_i K_σ(t, c_i)(y_i - c_i) / N| dt over [0, 1], with the Gaussian kernel K of bandwidth
σ, reflected at 0 and 1. The score is the one bandwidth σ* with smECE_σ* = σ*.

The gaps y_i - c_i are counted at nodes of a grid of width w, each shared between its two nearest
nodes. Kernel and sums are cosine series: K_σ(t, c) = 1 + 2 Σ_k exp(-σ²π²k²/2) cos(πkt) cos(πkc).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, Floats, State, np
from uqeval.metrics._columns import Place, SetColumns, SetStates
from uqeval.metrics._contract import NO_LABEL, Metric, set_value
from uqeval.metrics._evaluation import Part, Passes
from uqeval.metrics._score_kinds import Gaps
from uqeval.metrics.calibration_settings import CalibrationSettings
from uqeval.metrics.temperature_advice import TEMPERATURE

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies.fine_gaps import FineGaps

#: A bandwidth is found when it differs from its error by no more than this.
_TOLERANCE = 1e-10
#: Bandwidth, nodes, cosines: the numbers of nodes and cosines that the integral needs for larger
#: bandwidths. 32 nodes in a bandwidth give 6 digits of the integral; cosines left out are below
#: 1e-16.
_LEVELS = ((1 / 16, 512, 48), (1 / 64, 2048, 192))
#: Of many sets, 8 nodes in a bandwidth find it to 4 digits. One step of Newton's method with
#: `_FINER` times as many nodes then finds it to 7.
_COARSE = ((1 / 16, 128, 48), (1 / 64, 512, 192), (1 / 256, 2048, 768))
_FINER = 4
#: More cosines than these are summed by a Fourier transform.
_SUMMED = 64
#: Sets that are scored at a time.
_SETS = 256
#: Nodes at which the smoothed gaps are tested.
_TESTED = 512


def smooth_ece(gaps: Array, pixels: int) -> float | None:
    """Return σ* of the gaps [node] of a set; undefined without pixels."""
    return float(bandwidths(gaps[None] / pixels)[0]) if pixels else None


def bandwidths(gaps: Array, *, coarse: bool = False) -> Array:
    """Return σ* of each row of gaps [set, node] over the pixels, with smECE_σ* = σ*.

    smECE_σ does not increase with σ: σ* lies above a bandwidth where the error is greater than it.
    `coarse`: within 1e-7, several times as fast.
    """
    widths, most = np.zeros(len(gaps)), gaps.shape[1] - 1
    if coarse:
        # Smoothing does not change the integral of gaps of one sign, such as those of one pixel.
        is_mixed = (gaps > 0).any(axis=1) & (gaps < 0).any(axis=1)
        if not is_mixed.all():
            widths[~is_mixed] = np.abs(gaps[~is_mixed].sum(axis=1))
            widths[is_mixed] = bandwidths(gaps[is_mixed], coarse=True) if is_mixed.any() else 0
            return widths
    levels = _COARSE if coarse else _LEVELS
    for first in range(0, len(gaps), _SETS):
        block = gaps[first : first + _SETS]
        at, high = np.arange(len(block)), np.full(len(block), np.inf)
        for least, nodes, terms in (*levels, (0.0, most, most + 1)):
            spectrum = _spectrum(block[at], terms)
            low = np.maximum(np.abs(spectrum[:, 0]), least)
            top = _error(spectrum, low, nodes)
            # No error is below the mean gap, the error of an infinite bandwidth.
            is_between = (low > least) | (top > low) | (not least)
            bracket = low[is_between], np.minimum(top, high[at])[is_between], top[is_between]
            sigma = _fixed_points(spectrum[is_between], *bracket, nodes)
            if coarse and nodes < most:
                sigma = _newton_step(spectrum[is_between], sigma, nodes, min(_FINER * nodes, most))
            widths[first + at[is_between]] = sigma
            high[at], at = low, at[~is_between]
            if not at.size:
                break
    return widths


def _fixed_points(spectrum: Array, low: Array, high: Array, top: Array, nodes: int) -> Array:
    """Return σ* of each set between `low`, where the error is `top`, and `high`.

    By false position (the Illinois rule).
    """
    at_low, at_high = top - low, _error(spectrum, high, nodes) - high
    midpoints = np.where(at_low <= _TOLERANCE, low, high)
    at = np.flatnonzero((at_low > _TOLERANCE) & (at_high < -_TOLERANCE))
    side = np.zeros(len(low))
    for _ in range(100):
        if not at.size:
            break
        a, b = at_low[at], at_high[at]
        middle = low[at] + (high[at] - low[at]) * a / (a - b)
        excess = _error(spectrum[at], middle, nodes) - middle
        midpoints[at] = middle
        above = excess < 0  # σ* lies below the middle
        high[at] = np.where(above, middle, high[at])
        low[at] = np.where(above, low[at], middle)
        repeated = side[at] == np.where(above, 1, -1)
        at_high[at] = np.where(above, excess, np.where(repeated, b / 2, b))
        at_low[at] = np.where(above, np.where(repeated, a / 2, a), excess)
        side[at] = np.where(above, 1, -1)
        at = at[np.abs(excess) > _TOLERANCE]
    return midpoints


def _newton_step(spectrum: Array, sigma: Array, nodes: int, finer: int) -> Array:
    """Return σ* of each set by the error at `finer` nodes, from σ* by the error at `nodes`."""
    step = 1e-3 * sigma
    slope = (_error(spectrum, sigma + step, nodes) - _error(spectrum, sigma, nodes)) / step
    excess = _error(spectrum, sigma, finer) - sigma
    return sigma + excess / (1 - np.minimum(slope, 0.0))


@functools.cache
def _cosines(terms: int, nodes: int) -> Array:
    """Return cos(πkj / nodes) [k, j]."""
    turns = np.outer(np.arange(terms), np.arange(nodes + 1)) % (2 * nodes)
    return np.cos(np.pi / nodes * np.arange(2 * nodes))[turns]


def _spectrum(gaps: Array, terms: int) -> Array:
    """Return Σ_j gaps_j·cos(πkj / n) of gaps [set, n + 1], for k < `terms`: [set, k]."""
    nodes = gaps.shape[1] - 1
    if terms <= _SUMMED:
        return np.asarray(gaps @ _cosines(terms, nodes).T)
    mirrored = np.concatenate([gaps, gaps[:, -2:0:-1]], axis=1)
    mirrored[:, 1:nodes] /= 2
    mirrored[:, nodes + 1 :] /= 2
    return np.ascontiguousarray(np.fft.rfft(mirrored, axis=1).real[:, :terms])


def _smoothed(spectrum: Array, sigma: Array, nodes: int) -> Array:
    """Return the smoothed gaps at j / nodes [set, j] for a bandwidth of each set."""
    k = np.arange(spectrum.shape[1])
    damped = spectrum * np.exp(-0.5 * (np.pi * sigma[:, None] * k) ** 2)
    if len(k) <= _SUMMED:
        damped[:, 1:] *= 2
        return np.asarray(damped @ _cosines(len(k), nodes))
    damped[:, nodes:] *= 2
    return np.fft.irfft(damped, 2 * nodes, axis=1)[:, : nodes + 1] * (2 * nodes)


def _tested(gaps: Array, sigma: float) -> Array:
    """Return gaps [set, node], smoothed at the bandwidth, at j / `_TESTED` [set, j]."""
    most = gaps.shape[1] - 1
    levels = ((terms, _TESTED) for least, _, terms in _LEVELS if sigma >= least)
    terms, nodes = next(levels, (most + 1, most))
    smoothed = _smoothed(_spectrum(gaps, terms), np.full(len(gaps), sigma), nodes)
    return smoothed[:, :: nodes // _TESTED]


def _error(spectrum: Array, sigma: Array, nodes: int) -> Array:
    """Return smECE_σ of each set: the integral of |f| by the trapezoidal rule.

    Where f crosses 0 there are two triangles. The rule is too low there by h²/6·|f'|, which is
    added (Euler and Maclaurin). Elsewhere it is exact, because f has slope 0 at both ends.
    """
    f = _smoothed(spectrum, sigma, nodes)
    size = np.abs(f)
    total = size.sum(axis=1) - (size[:, 0] + size[:, -1]) / 2
    rows, at = np.nonzero(np.signbit(f[:, 1:]) != np.signbit(f[:, :-1]))
    a, b = size[rows, at], size[rows, at + 1]
    remainder = (a + b) / 6 - a * b / np.maximum(a + b, np.finfo(float).tiny)
    total += np.bincount(rows, remainder, len(total))
    return np.asarray(total / nodes)


def _bound(sigma: Array, absolute: Array, nodes: int) -> Array:
    """Return how far σ* may be from that of the pixels; `absolute`: the mean of |y - c|.

    Between nodes at a distance w the kernel differs from a line by at most w²/8·|K''|, and ∫|K''|
    is at most 4φ(1)/σ² = 0.968/σ²: smECE_σ differs by at most 0.121·(w/σ)²·`absolute`. As smECE_σ
    does not increase, σ* differs by no more than that. No score exceeds `absolute`. The integral
    adds 10⁻⁶, more where a bandwidth has less than 32 nodes.
    """
    with np.errstate(all="ignore"):
        width_in_nodes = (nodes - 1) * sigma
        integral = 1e-6 * sigma * np.fmax(1.0, (32 / width_in_nodes) ** 3)
        bound: Array = np.fmin(absolute * 0.968 / 8 / width_in_nodes**2 + integral, absolute)
    return bound


METRICS = (
    Metric("calibration", "smooth_ece", "fraction", "lower", (0.0, 1.0),
           "Błasiok & Nakkiran 2023, Definition 3", NO_LABEL, smooth_ece,
           label="smooth ECE",
           meaning="Gap between confidence and accuracy, smoothed over neighbouring confidences.",
           **TEMPERATURE, interval="gaps"),
)  # fmt: skip


class SmoothEce(Part[CalibrationSettings]):
    """The smooth ECE of the confidences that are binned for the ECE."""

    name = "smooth_ece"
    metrics = METRICS
    flat = True

    @property
    def _gaps(self) -> FineGaps:
        from uqeval.tallies.fine_gaps import FineGaps

        classes = self.info.classes
        return FineGaps(classes, self.settings.is_positive(classes))

    def fit(self) -> Passes:
        self.fitted["nodes"] = self._gaps.fields["gaps"].shape[0]
        yield from ()

    def tallies(self) -> tuple[Tally, ...]:
        return (self._gaps,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        state, record = states[self._gaps], dict[str, Any]()
        pixels, gaps = int(state["pixels"][0]), state["gaps"]
        (metric,) = METRICS
        value = metric.formula(gaps, pixels)
        bound = None
        if value is not None:
            absolute = state["absolute"] / pixels
            bound = float(_bound(np.array([value]), absolute, len(gaps))[0])
        set_value(record, "smooth_ece", value, metric.undefined)
        set_value(record, "smooth_ece_bandwidth", value, metric.undefined)
        set_value(record, "smooth_ece_bound", bound, metric.undefined)
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        state = states[self._gaps]
        pixels, nonempty = state["pixels"], state["pixels"][:, 0] > 0
        values = np.full(state.sets, np.nan)
        values[nonempty] = bandwidths(state["gaps"][nonempty] / pixels[nonempty], coarse=True)
        bound = _bound(values, state["absolute"][:, 0] / pixels[:, 0], state["gaps"].shape[1])
        return {("smooth_ece",): values, ("smooth_ece_bandwidth",): values,
                ("smooth_ece_bound",): np.where(nonempty, bound, np.nan)}  # fmt: skip

    def gaps(self) -> dict[Place, Gaps]:
        """Return the smoothed gaps at the bandwidth σ* of the first set.

        Flipped signs give a greater smooth ECE exactly where they give a greater smECE_σ*.
        """
        tally = self._gaps

        def signed(states: Mapping[Tally, SetStates]) -> Floats:
            gaps, pixels = states[tally]["gaps"], max(states[tally]["pixels"][0, 0], 1)
            return _tested(gaps, float(bandwidths(gaps[:1] / pixels)[0]))

        def weights(states: Mapping[Tally, SetStates]) -> Floats:
            pixels = np.maximum(states[tally]["pixels"], 1)
            width = np.full(_TESTED + 1, 1 / _TESTED)
            width[[0, -1]] /= 2
            return width / pixels

        return {("smooth_ece",): Gaps(signed, weights)}

    needs_fitted = ("nodes",)
