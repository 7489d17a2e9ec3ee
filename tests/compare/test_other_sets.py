"""Reports whose items are in other sets: OUT sets in another order, or IN and OUT exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command import refused
from gate_reports import rules

import uqeval
from uqeval.compare import Choice, Comparison, compare, load_models
from uqeval.gate import Judgement, judge
from uqeval.records.folder import Named

#: Uncertainty of each set.
SETS = {"known": 0.2, "fog": 0.4, "rain": 0.8}
SINGLE = "ood.per_set.fog.auroc"


def save(folder: Path, *, named: bool = True, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for name, level in SETS.items():
        u = level + rng.normal(size=(6, 1, 1)) * 0.3 + rng.normal(size=(6, 4, 5)) * 0.01
        store = {"predictions": np.zeros((6, 4, 5), "u1"), "u": u.astype("f4")}
        names = {"names": [f"{name}{i}" for i in range(6)]} if named else {}
        np.savez(folder / f"{name}.npz", **store, **names)


def evaluate(folder: Path, called: str, order: Sequence[str], *, memory: bool = False) -> None:
    stores: list[object] = [folder / f"{name}.npz" for name in order]
    if memory:
        stores = [dict(np.load(folder / f"{name}.npz")) for name in order]
    uqeval.evaluate(
        stores[0], None, {"ood": {"uncertainty": "u"}}, classes=2, out=stores[1:],
        states=folder / f"{called}.states.zip", workers=1,
    ).save(folder / f"{called}.json")  # fmt: skip


def compared(folder: Path, *names: str, metrics: Sequence[str] = ()) -> Comparison:
    paths = [str(folder / f"{name}.json") for name in names]
    return compare(load_models(paths), Choice(tuple(metrics), draws=200))


def judged(folder: Path, text: str, now: str, before: str) -> Judgement:
    reports = [[Named.load(folder / f"{name}.json")] for name in (now, before)]
    return judge(reports[0], rules(folder, text), reports[1])


def test_in_and_out_exchanged(tmp_path: Path) -> None:
    save(tmp_path)
    evaluate(tmp_path, "a", ("known", "fog"))
    evaluate(tmp_path, "b", ("fog", "known"))
    says = ("the set of item 'known0' and of 11 others is 'in' in", "'known' in", "b.json",
            "with the same IN and OUT stores")  # fmt: skip
    refused(lambda: compared(tmp_path, "a", "b"), *says)
    refused(
        lambda: judged(tmp_path, "ood.auroc: {max_drop: 0.01}", "a", "b"),
        "the set of item 'known0' and of 11 others is 'in' in this report and 'known' in",
    )


def test_out_sets_with_other_items(tmp_path: Path) -> None:
    """Scores of all OUT sets stay comparable; those of single sets only in the same order."""
    save(tmp_path)
    evaluate(tmp_path, "a", ("known", "fog", "rain"))
    evaluate(tmp_path, "same", ("known", "rain", "fog"))
    (found,) = (row for row in compared(tmp_path, "a", "same", metrics=[SINGLE]).rows)
    assert found.cells[1].difference is not None and found.cells[1].difference.value == 0
    for name, other in (("fog", "x"), ("rain", "fog"), ("x", "rain")):
        (tmp_path / f"{name}.npz").rename(tmp_path / f"{other}.npz")
    evaluate(tmp_path, "b", ("known", "fog", "rain"))
    whole = compared(tmp_path, "a", "b")
    assert any(str(row.address) == "ood.auroc" for row in whole.rows)
    assert SINGLE not in {str(row.address) for row in whole.rows}
    says = "the set of item 'fog0' and of 11 others is 'fog' in"
    refused(lambda: compared(tmp_path, "a", "b", metrics=[SINGLE]), says)
    verdicts = judged(
        tmp_path, f"{{ood.auroc: {{max_drop: 0.01}}, {SINGLE}: {{max_drop: 0.01}}}}", "a", "b"
    )
    assert [str(own.address) for own in verdicts.verdicts] == ["a/ood.auroc"]
    (unjudged,) = verdicts.not_evaluated
    assert says in unjudged.why


def test_out_sets_in_another_order_have_the_same_test(tmp_path: Path) -> None:
    """Swaps mix the counts of the set of one name, wherever it is among the sets."""
    orders = {"same": ("known", "fog", "rain"), "other": ("known", "rain", "fog")}
    save(tmp_path)
    evaluate(tmp_path, "a", orders["same"])
    (tmp_path / "b").mkdir()
    save(tmp_path / "b", seed=2)
    p = []
    for called, order in orders.items():
        evaluate(tmp_path / "b", called, order)
        (row,) = compared(tmp_path, "a", f"b/{called}", metrics=[SINGLE]).rows
        assert row.cells[1].difference is not None
        p.append(row.cells[1].difference.p)
    assert p[0] == p[1] is not None


@pytest.mark.parametrize("memory", [False, True])
def test_items_without_names(tmp_path: Path, memory: bool) -> None:
    """Names of files tell the sets; of arrays in memory nothing does, so a warning says it."""
    save(tmp_path, named=False)
    for called, order in (("a", ("known", "fog", "rain")), ("b", ("known", "rain", "fog"))):
        evaluate(tmp_path, called, order, memory=memory)
    score = "ood.per_set.out.auroc" if memory else SINGLE
    found = compared(tmp_path, "a", "b", metrics=[score])
    unknown = [text for text in found.warnings if "whether the OUT sets are the same" in text]
    verdicts = judged(tmp_path, f"{{{score}: {{max_drop: 0.01}}}}", "a", "b")
    unknown += [text for text in verdicts.warnings if "whether the OUT sets are the same" in text]
    assert len(unknown) == 2 * memory
    (difference,) = (row.cells[1].difference for row in found.rows)
    assert difference is not None and (difference.value == 0) == (not memory)


def test_an_earlier_version_numbered_files_of_one_name(tmp_path: Path) -> None:
    """The recorded paths tell which set is which."""
    save(tmp_path, named=False)
    for name, other in (("fog", "fog.v1"), ("rain", "fog.v2")):
        (tmp_path / f"{name}.npz").rename(tmp_path / f"{other}.npz")
    for called, order in (("a", ("fog.v1", "fog.v2")), ("b", ("fog.v2", "fog.v1"))):
        evaluate(tmp_path, called, ("known", *order))
        path = tmp_path / f"{called}.json"
        text = path.read_text()
        for old, new in zip(order, ("fog", "fog_2"), strict=True):
            text = text.replace(f'"{old}"', f'"{new}"').replace(f'"{old}/', f'"{new}/')
        report = uqeval.Report.load(path)
        path.write_text(text)
        path.with_suffix(".states.zip").unlink()
        assert [own["name"] for own in report.inputs["sets"]] == ["in", *order]
    says = "the set of the store 'fog.v1' is 'fog' in"
    for score in (SINGLE, "ood.auroc"):  # `fog/0` is another item there
        refused(lambda score=score: compared(tmp_path, "a", "b", metrics=[score]), says)
