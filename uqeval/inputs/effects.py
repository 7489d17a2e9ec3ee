"""Which input options change anything for the given data: others are refused, not ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.inputs.given import InputOptions, Inputs


def _arrays(inputs: Inputs) -> set[str]:
    return {name for store in inputs.record["predictions"] for name in store["arrays"]}


def _has_samples(inputs: Inputs) -> bool:
    return inputs.source.kind == "regression" and "samples" in _arrays(inputs)


def _has_probs(inputs: Inputs) -> bool:
    return "probs" in _arrays(inputs)


def _has_truth(inputs: Inputs) -> bool:
    return inputs.source.kind == "video" or inputs.record.get("labels") is not None


def _has_label_files(inputs: Inputs) -> bool:
    from uqeval.inputs.common import is_folder_of_files

    labels = inputs.record.get("labels")
    return labels is not None and is_folder_of_files(Path(labels["path"]))


#: What an option needs, in words, and whether opened inputs have it.
_NEEDS: Mapping[str, tuple[str, Callable[[Inputs], bool]]] = {
    "nan_samples": ("`samples` of a regression", _has_samples),
    "sum_tolerance": ("class probabilities, an array `probs`", _has_probs),
    "ignore_index": ("labels", _has_truth),
    "label_map": ("a folder of label PNGs", _has_label_files),
}


def refuse_without_effect(options: InputOptions, inputs: Inputs) -> None:
    """Raise one `UsageError` for all options that change nothing for these inputs."""
    told = []
    for name, (needs, has) in _NEEDS.items():
        value: Any = getattr(options, name)
        if value != type(options).__dataclass_fields__[name].default and not has(inputs):
            told.append(f"--{name.replace('_', '-')} {value} needs {needs}")
    if told:
        held = ", ".join(sorted(_arrays(inputs)))
        raise UsageError(
            f"{'; '.join(told)}; {inputs.source.where} comes without (it holds {held}). It would "
            "have no effect: leave it out, or give what it needs."
        )
