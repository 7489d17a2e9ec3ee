"""Reports of a video with several models: a result is compared with one of the same model."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import refused
from gate_reports import rules
from small_videos import save_folder, save_images, video

import uqeval
from uqeval.compare import Choice, Comparison, compare, load_models
from uqeval.gate import Judgement, judge
from uqeval.records.folder import Named

#: The models of each report, in their order.
REPORTS = {
    "both": ("mc", "ens"), "swapped": ("ens", "mc"), "single": ("ens",), "new": ("mc_2", "ens_2"),
    "third": ("mc_2", "mc"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    save_folder(made / "v", video(seed=1))
    for k, name in enumerate(("mc", "ens", "mc_2", "ens_2")):
        save_images(made / name, video(seed=k + 1).predictions)
    for name, models in REPORTS.items():
        uqeval.evaluate(
            [str(made / own) for own in models], None, {"tc": {"flow": "dis:fast"}},
            video=str(made / "v"), states=made / f"{name}.states.zip", workers=1,
        ).save(made / f"{name}.json")  # fmt: skip
    return made


def judged(folder: Path, baseline: str) -> Judgement:
    now, before = ([Named.load(folder / f"{name}.json")] for name in ("both", baseline))
    return judge(now, rules(folder, "{temporal.mtc: {max_drop: 0.9}}"), before)


def compared(folder: Path, *names: str) -> Comparison:
    paths = [str(folder / f"{name}.json") for name in names]
    return compare(load_models(paths), Choice(level=None))


@pytest.mark.parametrize(("baseline", "model"), [("swapped", "ens"), ("single", "ens")])
def test_another_model_of_the_other_report(folder: Path, baseline: str, model: str) -> None:
    says = f"the model is 'mc' in this report and '{model}' in {folder / baseline}.json"
    message = refused(lambda: judged(folder, baseline), says, "same models in the same order")
    command = f"uqeval tc {folder / 'v'} {folder / 'mc'} {folder / 'ens'}"
    assert (command in message) == (baseline == "swapped")
    refused(lambda: compared(folder, "both", baseline), f"the model is 'mc' in {folder}", "in the")


def test_models_that_one_report_has_are_compared_by_their_order(folder: Path) -> None:
    """A new model has a new name. "third" has the first model in another place."""
    assert judged(folder, "new").passed
    assert "temporal" in {own.address.key for own in compared(folder, "both", "new").rows}
    refused(lambda: judged(folder, "third"), "the model is 'mc' in this report and 'mc_2' in")
