"""Find input options without effect on the given data, which are errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.inputs.opened import Inputs
from uqeval.inputs.options import InputOptions


def _arrays(inputs: Inputs) -> set[str]:
    stores = [*inputs.record["predictions"], inputs.record.get("reference") or {"arrays": ()}]
    return {name for store in stores for name in store["arrays"]}


def _paths(inputs: Inputs, *kinds: str) -> list[str]:
    """Return the paths of the stores of these kinds, as the record of the inputs has them."""
    unused: list[str] = []
    for kind in kinds:
        stores = inputs.record.get(kind) or ()
        for store in [stores] if isinstance(stores, Mapping) else stores:
            unused.append(str(store["path"]))
    return unused


def _has_samples(inputs: Inputs) -> bool:
    regression = inputs.source.kind == "regression"
    return regression and "samples" in _arrays(inputs)


def _has_probs(inputs: Inputs) -> bool:
    return "probs" in _arrays(inputs)


def _has_truth(inputs: Inputs) -> bool:
    return inputs.source.kind == "video" or inputs.record.get("labels") is not None


def _has_label_files(inputs: Inputs) -> bool:
    from uqeval.inputs.common import is_folder_of_files

    labels = inputs.record.get("labels")
    return labels is not None and is_folder_of_files(Path(labels["path"]))


def _has_chunks(inputs: Inputs) -> bool:
    from uqeval.stores.zarr.source import is_zarr

    paths = _paths(inputs, "predictions", "labels", "target", "reference", "frames", "flow")
    return any("://" in path or is_zarr(path) for path in paths)


def _has_bare_predictions(inputs: Inputs) -> bool:
    # For other kinds of data, opening checks the declaration.
    if inputs.source.kind != "video":
        return True
    from uqeval.stores.files.label_folder import png_files

    paths = _paths(inputs, "predictions")
    return any(not Path(path).is_dir() or not png_files(path) for path in paths)


#: The requirement of an option in words, and a function that checks it for opened inputs.
_NEEDS: Mapping[str, tuple[str, Callable[[Inputs], bool]]] = {
    "missing_chunks": ("a Zarr store: only its chunks can be missing", _has_chunks),
    "kind": ("predictions in a store, not in label PNGs", _has_bare_predictions),
    "axes": ("predictions in a store, not in label PNGs", _has_bare_predictions),
    "nan_samples": ("`samples` of a regression", _has_samples),
    "sum_tolerance": ("class probabilities, an array `probs`", _has_probs),
    "ignore_index": ("labels", _has_truth),
    "label_map": ("a folder of label PNGs", _has_label_files),
}


def refuse_without_effect(options: InputOptions, inputs: Inputs) -> None:
    """Raise one `UsageError` for all options that have no effect on these inputs."""
    messages = []
    for name, (needs, has_need) in _NEEDS.items():
        value: Any = getattr(options, name)
        if value != type(options).__dataclass_fields__[name].default and not has_need(inputs):
            messages.append(f"--{name.replace('_', '-')} {value} needs {needs}")
    if messages:
        available = ", ".join(sorted(_arrays(inputs)))
        raise UsageError(
            f"{'; '.join(messages)}; {inputs.source.where} does not have that (it holds "
            f"{available}). It would have no effect: leave it out, or give what it needs."
        )


#: Options of saved and cached flow.
_OF_FLOW = ("flow_path", "flow_forward_path", "flow_cache")


def refuse_flow_without_effect(inputs: Inputs, wanted_maps: Collection[str]) -> None:
    """Raise `UsageError` for saved or cached flow that none of the maps reads."""
    typed = {name for name in _OF_FLOW if inputs.options.get(name) is not None}
    if not typed:
        return
    read_maps = _flow_maps(wanted_maps)
    needs = {
        "flow_path": ("flow:file" in read_maps, "--flow file (in Python flow='file')"),
        "flow_forward_path": (
            "flow_forward:file" in read_maps,
            "--flow file with --occlusion fb, --tracks or --grid previous",
        ),
        "flow_cache": (
            any(not name.endswith(":file") for name in read_maps),
            "a flow that is estimated, such as --flow dis",
        ),
    }
    messages = [
        f"--{name.replace('_', '-')} needs {need}"
        for name, (has_need, need) in needs.items()
        if name in typed and not has_need
    ]
    if messages:
        raise UsageError(
            f"{'; '.join(messages)}. It would have no effect: leave it out, or give what it needs."
        )


def _flow_maps(wanted_maps: Collection[str]) -> set[str]:
    """Return the flow maps among the requested maps, and those that tracks follow."""
    from uqeval.maps import video_names
    from uqeval.maps.names import rules_of

    flow_maps = {name for name in wanted_maps if name.startswith(("flow:", "flow_forward:"))}
    for name in wanted_maps:
        if name.startswith("tracks:"):
            _, method = rules_of(name)
            flow_maps |= {video_names.flow(method), video_names.flow_forward(method)}
    return flow_maps
