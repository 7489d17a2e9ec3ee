"""`uqeval run` in rounds: each store of a file has its shards and its file of fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_uqeval, run_well
from saved_runs import told

import uqeval
from uqeval import UsageError

N, C, H, W = 4, 3, 12, 16


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two stores: one needs three passes, the other one; rules, and a sweep in another file."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(C), (N, H, W)).transpose(0, 3, 1, 2).astype("f4")
    labels = rng.integers(0, C, (N, H, W)).astype("u1")
    np.savez(tmp_path / "p.npz", probs=p, labels=labels)
    mean = rng.normal(size=(N, H, W)).astype("f4")
    np.savez(tmp_path / "r.npz", mean=mean, std=np.ones_like(mean), target=mean + 1)
    path = tmp_path / "uqeval.yaml"
    path.write_text(
        "stores: {p: {predictions: p.npz}, r: {predictions: r.npz}}\n"
        "evaluate: {p: {failure: {}}, r: {regression: {}}}\n"
        "gate: {failure.auroc: {min: 1}}\n"
    )
    return path


def test_each_store_has_the_bits_of_a_single_run(file: Path) -> None:
    folder = file.parent
    (folder / "fitted").mkdir()
    whole = {
        "p": uqeval.evaluate(folder / "p.npz", None, "failure"),
        "r": uqeval.evaluate(folder / "r.npz", None, "regression"),
    }
    options: dict[str, Any] = {}
    for passes in (1, 2, 3):
        for k in (1, 2):
            out = folder / "shards" / str(k)
            outcome = uqeval.run_config(file, output=out, part=f"{k}/2", **options)
            assert outcome.status == 0 and outcome.judgement is None
            assert set(outcome.reports) == ({"p", "r"} if passes == 1 else {"p"})
            endings = {"p.json", "p.states.zip", "r.json", "r.states.zip"}
            assert {path.name for path in out.iterdir() if path.name[0] != "."} == endings
        for store in ("p", "r"):
            states = sorted((folder / "shards").glob(f"*/{store}.states.zip"))
            fitted = uqeval.fit_shards(states, folder / "fitted" / f"{store}.json")
            assert bool(fitted.unfinished) == (store == "p" and passes < 3)
            if not fitted.unfinished:
                assert told(uqeval.merge(states)) == told(whole[store])
        options = {"fitted": folder / "fitted"}
    with pytest.raises(UsageError, match=r"Give a folder with p\.json, r\.json"):
        uqeval.run_config(file, output=folder / "x", part="1/2", fitted=folder / "p.npz")


def test_a_round_after_the_last_has_nothing_to_do(file: Path) -> None:
    """It says so, ends with status 0 and changes no file."""
    folder = file.parent
    (folder / "fitted").mkdir()
    file.write_text(file.read_text().replace("failure: {}", "segmentation: {}"))
    shard = ("run", "--part", "1/1", "-o", "shards/1")
    run_well(*shard, cwd=folder)
    for store in ("p", "r"):
        states = folder / "shards" / "1" / f"{store}.states.zip"
        assert not uqeval.fit_shards(states, folder / "fitted" / f"{store}.json").unfinished
    before = {path: path.read_bytes() for path in (folder / "shards" / "1").iterdir()}
    done = run_well(*shard, "--fitted", "fitted/", cwd=folder)
    assert "uqeval: all passes of p, r are counted; the shards have no work left" in done.stderr
    assert not done.stdout
    assert {path: path.read_bytes() for path in (folder / "shards" / "1").iterdir()} == before
    outcome = uqeval.run_config(file, output=folder / "x", part="1/1", fitted=folder / "fitted")
    assert (outcome.status, outcome.counted, outcome.reports) == (0, ["p", "r"], {})
    assert not (folder / "x").exists()


def test_the_commands_after_a_shard_of_a_file(file: Path) -> None:
    """They name the states of one store, and work as they are printed."""
    folder = file.parent
    for k in (1, 2):
        done = run_well("run", "--part", f"{k}/2", "-o", f"my parts/{k}", cwd=folder)
    said = " ".join((done.stdout + done.stderr).split())
    fit = "mkdir -p fitted; uqeval merge --fit 'my parts'/*/p.states.zip -o fitted/p.json"
    assert said.count(f"{fit} (and so for each store)") == 2
    assert "with --fitted fitted/" in said and "SHARDS" not in said
    assert "mkdir -p report; uqeval merge 'my parts'/*/r.states.zip -o report/r.json also" in said
    refused(
        run_uqeval("merge", "--fit", "my parts", "-o", "f.json", cwd=folder),
        "my parts holds no states files (*.states.zip) itself, but its folders do. Give the files "
        "of one store: 'my parts'/*/p.states.zip, or r.states.zip.",
    )
    generic = run_well("run", "--part", "1/2", "-o", "other", cwd=folder)
    assert "uqeval merge --fit SHARDS -o fitted.json" in " ".join(generic.stdout.split())


def test_a_sweep_has_shards_of_its_own(file: Path) -> None:
    file.write_text(file.read_text().replace("failure: {}", "sweep: {metric: pavpu}"))
    outcome = uqeval.run_config(file, output=file.parent / "out", part="1/2")
    assert "a run of a shard cannot contain a sweep" in outcome.failed["p"]
