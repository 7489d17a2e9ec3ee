"""Split the paths of a command line."""

from __future__ import annotations

from uqeval.cli.options import split_paths


def split(paths: list[str]) -> tuple[list[str], str | None]:
    """Return the paths of the predictions, and that of the ground truth."""
    predictions, truth = split_paths(paths)
    return [str(store) for store in predictions], None if truth is None else str(truth)
