"""Messages to callers in Python name keywords; those of commands name flags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import refused, run_uqeval

import uqeval
from uqeval.argument_types import spelled


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("give --missing-chunks fill, or write it.", "give missing_chunks fill, or write it."),
        ("--fit-on needs it; leave out --no-temperature.",
         "fit_on needs it; leave out temperature=False."),
        ("--labels and --pseudo-labels exclude each other",
         "labels and pseudo_labels exclude each other"),
        ("--part 9/4; expected K/N", "part=9/4; expected K/N"),
        ("give --ci LEVEL, such as --ci 0.95.", "give ci=LEVEL, such as ci=0.95."),
        ("--kind 'x'; expected", "kind='x'; expected"),
        ("Give --flow dis, or --flow dis:fast.", "Give flow dis, or flow dis:fast."),
        ("give -o FILE.", "give states=FILE."),
        ("run `uqeval merge --fit SHARDS -o FILE` and --fitted FILE",
         "run `uqeval merge --fit SHARDS -o FILE` and fitted=FILE"),
        ("add --kind=logits, or", "add kind='logits', or"),
        ("Ids: uqeval run x.zarr LABELS --classes N. Or give --classes.",
         "Ids: uqeval run x.zarr LABELS --classes N. Or give classes."),
        ("Start `dask worker ADDRESS --nthreads=1`, then --dask local:N",
         "Start `dask worker ADDRESS --nthreads=1`, then dask local:N"),
        ("a--b, 3 --- 4 and x=--", "a--b, 3 --- 4 and x=--"),
    ],
)  # fmt: skip
def test_flags_become_keywords(text: str, keywords: str) -> None:
    assert spelled(text) == keywords
    assert spelled(keywords) == keywords


def test_the_caller_determines_the_spelling(tmp_path: Path) -> None:
    store, labels = tmp_path / "probs.npy", tmp_path / "labels.npy"
    np.save(store, np.full((2, 3, 4, 4), 1 / 3, np.float32))
    np.save(labels, np.zeros((2, 4, 4), np.uint8))
    call = (lambda: uqeval.evaluate(store, labels, "segmentation", missing_chunks="x"),
            lambda: uqeval.evaluate(store, labels, {"calibration": {"temperature_of": "y"}}),
            lambda: uqeval.evaluate(store, labels, draws=200))  # fmt: skip
    refused(call[0], "missing_chunks='x'; expected one of error, fill")
    refused(call[1], "temperature_of='y'")
    refused(call[2], "draws and seed need intervals; give ci=LEVEL, such as ci=0.95")
    refused(run_uqeval("pavpu", store, labels, "--draws", "200"), "such as --ci 0.95")
