"""Shared by families of predicted numbers: the map of σ, and checks of targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from uqeval.arrays import State, np
from uqeval.errors import IN_MEMORY, DataError, UsageError, in_command, listed, number_of
from uqeval.maps.names import sigma_of
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._evaluation import Run
from uqeval.settings import Settings, option

#: The share of targets that may be 0, or a negative marker, without a warning.
_FEW = 0.01
#: With fewer different targets, one far from the others may be measured: counts, ids.
_FEW_VALUES = 9
#: A target that many pixels have exactly is doubtful if the others are this many times smaller.
_FAR = 3.0
#: At least so many pixels have it: in a small table, the largest rounded value may be there twice.
_SEVERAL = 5
#: A target that two pixels have is doubtful if the others are this many times smaller.
_VERY_FAR = 1000.0
#: Negative values that often mean `not measured`.
_MARKERS = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, -32768.0, -2147483648.0)


def sigma_map(uncertainty: str) -> str:
    """Return the map of an uncertainty: the predicted σ, or a map of the store, never negative."""
    return "sigma" if uncertainty in ("std", "sigma") else sigma_of(uncertainty)


@dataclass(frozen=True)
class SigmaSettings(Settings):
    """Settings of a family that reads the predicted standard deviation."""

    # fmt: off
    uncertainty: str = option(
        "sigma", "The predicted standard deviation, or another map of the store. Repeat for "
        "variants.",
        metavar="NAME", common=True)
    # fmt: on

    @property
    def sigma(self) -> str:
        """Return the map of σ."""
        return sigma_map(self.uncertainty)


def check_sigma(uncertainty: str, info: DatasetInfo) -> None:
    """Raise `UsageError` for a map of errors."""
    if uncertainty.split(":")[0] in ("label", "mean", "target", "error", "lambda", "valid"):
        raise UsageError(
            f"--uncertainty {uncertainty} is not an uncertainty of {info.where}; expected sigma, "
            "or the name of a map in the store."
        )


def check_unit(uncertainty: str, info: DatasetInfo) -> None:
    """Raise `UsageError` for a map whose name says that it is a logarithm, not a standard
    deviation."""
    if "log" in uncertainty.lower():
        stores = " ".join(map(in_command, dict.fromkeys(info.paths or (info.where,))))
        raise UsageError(
            f"--uncertainty {uncertainty}: its name says that it is a logarithm. NLL, CRPS, AUCE, "
            "sharpness, coverage and interval scores need a standard deviation in units of the "
            "target. Store a natural logarithm next to `mean` as log_variance, log_std or log_b, "
            "and leave --uncertainty out: uqeval converts it. For scores that need only its "
            f"order: uqeval sparsification {stores} --uncertainty {quote(uncertainty)}"
        )


def zero_targets(state: State, info: DatasetInfo) -> list[str]:
    """Return a warning if many targets are 0 and none is negative (state of `TargetCounts`)."""
    pixels, zeros, negative = state["counts"].tolist()
    if negative or zeros <= _FEW * pixels or info.invalid:
        return []
    return [
        f"{zeros} of {pixels} evaluated targets ({zeros / pixels:.1%}) are exactly 0 and none is "
        f"negative: they count as measurements. If 0 means `not measured`, "
        f"{_how_to_leave_out('0', info)}. {_confirmed('0 is', info)}"
    ]


def negative_targets(
    state: State, ends: tuple[float, float], info: DatasetInfo, *, depths: bool
) -> list[str]:
    """Return a warning if negative targets look like a value that means `not measured`.

    `state` of `TargetCounts`; `ends`: the smallest and the largest target. A depth is never
    negative. Other targets must reach above 1 (targets in [-1, 1] are scaled), and have a marker as
    their smallest value.
    """
    pixels, _, negative = state["counts"].tolist()
    least, most = ends
    is_marker = least in _MARKERS and most > 1 and negative > _FEW * pixels
    if info.invalid or not negative or not (depths or is_marker):
        return []
    text = (
        f"{negative} of {pixels} evaluated targets ({negative / pixels:.1%}) are negative, down to "
        f"{least:.6g}, and others reach {most:.6g}: they count as measurements."
    )
    if least in _MARKERS:
        value = f"{least:.0f}"
        text += f" If {value} means `not measured`, {_how_to_leave_out(value, info)}."
    else:
        text += " If they mean `not measured`, leave them out with an array `valid`."
    return [f"{text} {_confirmed('they are', info)}"]


def marked_targets(run: Run, info: DatasetInfo, *, skip_smallest: bool = False) -> list[str]:
    """Return warnings about the largest and the smallest target if they look like a value that
    means `not measured`: many pixels have it, and the others are several times smaller; or it is
    the only negative value.

    The targets of all items are compared, so the result does not depend on their parts.
    """
    from uqeval.tallies.error_sums import TargetCounts

    tally = TargetCounts()
    counted = run.counted[tally]
    pixels, _, negative = counted.total["counts"].tolist()
    items = tally.unpack_items(counted.items)
    ends, has_targets = items["ends"], items["counts"][:, 0] > 0
    is_known = np.isfinite(ends).all(axis=1) & (ends[:, 6] > 0)  # not in states of 0.1.0
    if info.invalid or not has_targets.any() or not is_known[has_targets].all():
        return []
    ends = ends[has_targets]
    ends_of_set = np.unique(ends[:, [0, 2, 3, 5]])
    if max(ends_of_set.size, ends[:, 6].max()) < _FEW_VALUES:
        return []
    messages = []
    for sign, place, other, name in ((1, 3, "smaller", "largest"), (-1, 0, "larger", "smallest")):
        end, *others = np.sort(sign * ends_of_set)[::-1].tolist()
        count = int(ends[sign * ends[:, place] == end, place + 1].sum())
        next_size = max(abs(others[0]), abs(others[-1]))
        is_many = count >= _SEVERAL and count > _FEW * pixels
        is_doubtful = (is_many and end > _FAR * next_size) or (
            count > 1 and end > _VERY_FAR * next_size
        )
        if sign < 0:  # a signed quantity has several negative values
            is_doubtful |= is_many and count == negative and others[-1] < -1
        if not is_doubtful or (sign < 0 and skip_smallest):
            continue
        value = _spelled(sign * end)
        messages.append(
            f"{count} of {pixels} evaluated targets ({count / pixels:.1%}) are exactly {value}, "
            f"the {name}, and the next {other} is {sign * others[0]:.6g}: they count as "
            f"measurements. If {value} means `not measured`, {_how_to_leave_out(value, info)}. "
            f"{_confirmed('they are', info)}"
        )
    return messages


def _spelled(value: float) -> str:
    """Return a target with as many digits as tell it from others."""
    if value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return str(single) if float(single) == value else repr(value)


def _has_no_command(info: DatasetInfo) -> bool:
    return any(IN_MEMORY in path for path in info.paths)


def _how_to_leave_out(value: str, info: DatasetInfo) -> str:
    """Return how to leave out targets of a value."""
    if _has_no_command(info):
        return f"give invalid={value}"
    command = " ".join(["uqeval", info.command, *map(quote, info.paths), f"--invalid {value}"])
    return (
        f"add --invalid to the command: {command}  (invalid: {value} in uqeval.yaml, "
        f"invalid={value} in Python)"
    )


def _confirmed(these_are: str, info: DatasetInfo) -> str:
    option = "invalid='nan'" if _has_no_command(info) else "--invalid nan"
    return f"If {these_are} measured, {option} confirms it."


def refuse_nothing(pixels: int, info: DatasetInfo, region: str = "") -> None:
    """Raise `DataError` if no pixel of the set has a valid target; a region may be empty."""
    if pixels == 0 and not region:
        raise DataError(
            f"{info.where}: nothing is left to evaluate: the target of all "
            f"{number_of(len(info.names), 'item')} is invalid everywhere (not finite, not "
            "`valid`, 0 in a KITTI PNG, or a value of --invalid). Check the target, the mask and "
            "--invalid."
        )


def counts_of(state: State) -> dict[str, int]:
    """Return the counts of a state of `ErrorSums` for a report's numerics."""
    return {
        "sigma_zero": int(state["zero"][:, 0].sum()),
        "lambda_infinite": int(state["zero"][:, 1].sum()),
        "invalid": int(state["invalid"][0]),
    }


def void_items(names: tuple[str, ...], pixels: Sequence[int], region: str = "") -> list[str]:
    """Return a warning about items without an evaluated pixel, if there are any; none for a region,
    because many items may lack it."""
    void = [] if region else [name for name, n in zip(names, pixels, strict=True) if n == 0]
    if not void:
        return []
    return [f"{len(void)} of {len(names)} items have no valid target: {listed(void)}."]
