"""`verify` of reports whose settings the given stores cannot satisfy: nothing is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import changed
from command import refused, run_uqeval, run_well
from folders import made_in

import uqeval
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.verify.verifying import verify

#: By key of results, the stores and the options of the run.
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "pavpu": ("classes.npz", {}),
    "failure": ("classes.npz", {}),
    "sparsification": ("classes.npz", {}),
    "ood": ("classes.npz", {"out": ["out.npz"]}),
    "image_failure": ("classes.npz", {}),
    "regression": ("numbers.npz", {}),
    "nmerci": ("numbers.npz", {}),
    "conformal": ("numbers.npz", {"fit_on": "fit.json", "alpha": 0.3}),
}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores, and a report of each family that names a map."""
    with made_in(tmp_path_factory, "unmet") as folder:
        np.savez("classes.npz", **synthetic_data.classes("verify", items=8))
        np.savez("out.npz", probs=synthetic_data.classes("out", items=3)["probs"])
        np.savez("numbers.npz", **synthetic_data.numbers("verify", items=8))
        Path("fit.json").write_text(json.dumps([str(i) for i in range(4)]))
        for family, (store, options) in RUNS.items():
            settings = {name: options[name] for name in options if name != "out"}
            out = {"out": options["out"]} if "out" in options else {}
            uqeval.evaluate(store, metrics={family: settings}, workers=1, **out).save(
                f"{family}.json"
            )
    return folder


@pytest.mark.parametrize("family", RUNS)
@pytest.mark.parametrize("everything", [True, False])
def test_a_map_that_the_store_lacks_is_no_excuse(
    family: str, everything: bool, folder: Path
) -> None:
    def change(record: Any) -> None:
        record["settings"][family]["uncertainty"] = "absent"
        if "uncertainty" in record["results"][family]:
            record["results"][family]["uncertainty"] = "absent"

    assert verify(f"{family}.json", everything=everything).passed
    found = verify(changed(family, change), everything=everything)
    assert not found.passed
    assert any(
        text.startswith(f"{family}: nothing was recomputed: ") and "absent" in text
        for text in found.problems()
    )


def test_the_command_says_that_nothing_was_recomputed(folder: Path) -> None:
    path = changed("failure", lambda r: r["settings"]["failure"].update(uncertainty="absent"))
    outcome = run_uqeval("verify", path, "--all")
    refused(outcome, "failure: nothing was recomputed: the store holds no map absent", printed=True)
    assert "not verified" in outcome.stdout


def test_a_threshold_that_was_removed_is_no_excuse(folder: Path) -> None:
    path = changed("pavpu", lambda r: r["results"]["pavpu"].update(uncertainty_threshold=None))
    texts = verify(path, everything=True).problems()
    assert any("its uncertainty threshold is null, although" in text for text in texts)


def test_a_threshold_that_the_settings_give_is_compared(folder: Path) -> None:
    settings = {"threshold": 0.5}
    metrics = {"pavpu": settings, "failure": settings}
    uqeval.evaluate("classes.npz", metrics=metrics, workers=1).save("given.json")
    assert verify("given.json", everything=True).passed

    def change(record: Any) -> None:
        for own in record["results"].values():
            own["uncertainty_threshold"] = 0.6

    fields = [own.field for own in verify(changed("given", change), everything=True).differences]
    assert {f"{name}.uncertainty_threshold" for name in metrics} <= set(fields)


def test_a_threshold_is_undefined_if_all_patches_are_accurate(folder: Path) -> None:
    arrays = dict(np.load("classes.npz"))
    arrays["labels"] = arrays["probs"].astype(np.float64).mean(axis=1).argmax(axis=1)
    np.savez("accurate.npz", **(arrays | {"labels": arrays["labels"].astype(np.uint8)}))
    metrics = {"pavpu": {"threshold": "max-surplus"}}
    report = uqeval.evaluate("accurate.npz", metrics=metrics, workers=1)
    assert report.results["pavpu"]["uncertainty_threshold"] is None
    report.save("accurate.json")
    found = verify("accurate.json", everything=True)
    assert found.passed, found.problems()
    path = changed("accurate", lambda record: record["results"]["pavpu"].update(pavpu=0.9))
    differing = verify(path, everything=True).differences
    assert [own.field for own in differing] == ["pavpu.pavpu"]


def test_a_region_that_the_stores_lack_is_no_excuse(folder: Path) -> None:
    region = ["box:0:0.5,0:1"]
    uqeval.evaluate("classes.npz", metrics=["segmentation"], workers=1, region=region).save(
        "region.json"
    )
    text = Path("region.json").read_text()
    Path("changed.json").write_text(text.replace("segmentation@box:", "segmentation@box:7:"))
    found = verify("changed.json", everything=True)
    assert any("nothing was recomputed: box:7:" in own for own in found.problems())


def test_what_the_plain_path_does_not_support_is_said_loudly(folder: Path) -> None:
    run_well("pavpu", "classes.npz", "--border", "pad", "-o", "pad.json", "--no-states", "-q")
    outcome = run_uqeval("verify", "pad.json", "--all")
    assert outcome.status == 0
    reason = "pavpu: --border pad is not supported by uqeval verify"
    assert f"uqeval: not recomputed: {reason}." in outcome.stderr
    assert "but not recomputed: pavpu (--border pad" in outcome.stdout
    record = json.loads(verify("pad.json").to_json())
    assert record["not_recomputed"] == {"pavpu": reason.removeprefix("pavpu: ")}
