"""`uqeval.Evaluator`: the bits of a store, however the items were divided; and what goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from command import refused, run_script

import uqeval
from uqeval.errors import DataError, OutputError, UsageError
from uqeval.usecases import evaluator as module

N, T, C = 9, 2, 3
FAMILIES = {"pavpu": {"window": 2, "uncertainty": ["entropy", "mutual_information"]},
            "failure": {}, "calibration": {}, "sparsification": {}}  # fmt: skip
NAMES = [f"street {k}/a" for k in range(N)]


def predictions() -> tuple[Any, Any]:
    generator = np.random.default_rng(3)
    probs = generator.dirichlet(np.ones(C), (N, T, 8, 6)).transpose(0, 1, 4, 2, 3)
    labels = generator.integers(0, C, (N, 8, 6))
    labels[:, 0] = 255
    return probs.astype(np.float32), labels


@pytest.fixture
def evaluator(tmp_path: Path) -> Iterator[uqeval.Evaluator]:
    with uqeval.Evaluator(["segmentation", "pavpu"], scratch=tmp_path) as evaluator:
        yield evaluator


def test_the_bits_of_a_store_in_any_order_from_two_processes(tmp_path: Path) -> None:
    probs, labels = predictions()
    order = np.random.default_rng(0).permutation(N)
    with (
        uqeval.Evaluator(FAMILIES, scratch=tmp_path) as first,
        uqeval.Evaluator(FAMILIES, scratch=tmp_path) as second,
        uqeval.Evaluator(FAMILIES, scratch=tmp_path) as idle,
    ):
        for own, places in ((first, order[:5]), (second, order[4:])):  # one item is in both
            for start in range(0, len(places), 2):
                batch = places[start : start + 2]
                own.update(probs[batch], labels[batch], [NAMES[k] for k in batch])
        idle.merge([second.folder, first])
        assert (len(first), len(second), len(idle)) == (5, 5, N)
        report = idle.report(ci=0.9, draws=200)
    expected = uqeval.evaluate(
        {"probs": probs, "labels": labels}, None, FAMILIES, names=NAMES, ci=0.9, draws=200
    )
    assert report.results == expected.results
    assert report.items == expected.items
    assert report.intervals == expected.intervals
    assert report.warnings[-1].startswith(f"1 item was repeated and left out: '{NAMES[order[4]]}")
    assert report.inputs["predictions"][0]["path"] == report.inputs["labels"]["path"]
    assert str(tmp_path) not in report.to_json()
    assert list(tmp_path.iterdir()) == []


def test_images_of_several_sizes_logits_and_more_items_after_a_report(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    logits = [
        generator.normal(size=(1, C, 6, 4 + 2 * (k % 2))).astype(np.float32) for k in range(4)
    ]
    labels = [generator.integers(0, C, (1, *one.shape[2:])) for one in logits]
    with uqeval.Evaluator("all", kind="logits", class_names=["a", "b", "c"]) as evaluator:
        for k in (2, 0, 3):
            evaluator.update(logits[k], labels[k], [f"i{k}"])
        assert [item["name"] for item in evaluator.report().items] == ["i0", "i2", "i3"]
        assert evaluator.update(logits[1], labels[1], ["i1"]) == 1
        report = evaluator.report()
    assert [item["name"] for item in report.items] == ["i0", "i1", "i2", "i3"]
    wrong = sum(int((a[0].argmax(0) != b[0]).sum()) for a, b in zip(logits, labels, strict=True))
    pixels = sum(b.size for b in labels)
    assert report.results["segmentation"]["pixel_accuracy"] == pytest.approx(1 - wrong / pixels)
    assert [own["name"] for own in report.results["segmentation"]["per_class"]] == ["a", "b", "c"]


def test_only_maps_that_are_read_are_kept(evaluator: uqeval.Evaluator) -> None:
    probs, labels = predictions()
    assert evaluator.update(probs[:4], labels[:4], NAMES[:4]) == 4
    assert evaluator.scratch_bytes == 4 * 8 * 6 * (1 + 1 + 4)  # ids, labels, entropy
    kept = {path.name for path in (evaluator.folder / "maps" / "items").glob("*/*/")}
    assert kept == {"predictions", "labels", "entropy"}
    assert evaluator.update(probs[:4], labels[:4], NAMES[:4]) == 0


def test_a_bad_update_leaves_the_items_before(evaluator: uqeval.Evaluator) -> None:
    probs, labels = predictions()
    evaluator.update(probs[:3], labels[:3], NAMES[:3])
    before = evaluator.report().results
    bad = probs[3:5].copy()
    bad[1, 0, 0, 0, 0] = np.nan
    with pytest.raises(DataError, match="street 4/a"):
        evaluator.update(bad, labels[3:5], NAMES[3:5])
    with pytest.raises(
        DataError, match=r"1 name, probs .* expected the same number of items in each"
    ):
        evaluator.update(probs[3:5], labels[3:5], NAMES[3:4])
    with pytest.raises(DataError, match="1 samples and 3 classes; the items before have 2 and 3"):
        evaluator.update(probs[5:6, 0], labels[5:6], NAMES[5:6])
    with pytest.raises(DataError, match=r"label|class"):
        evaluator.update(probs[5:6], labels[5:6] + 100, NAMES[5:6])
    with pytest.raises(OutputError, match="takes 256 bytes as the name of a folder"):
        evaluator.update(probs[5:7], labels[5:7], [NAMES[5], "x" * 256])
    assert len(evaluator) in (3, 4)  # the item before the bad one is good
    if len(evaluator) == 3:
        assert evaluator.report().results == before


def test_a_full_disk(evaluator: uqeval.Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    probs, labels = predictions()
    evaluator.update(probs[:1], labels[:1], NAMES[:1])
    monkeypatch.setattr(module, "has_room", lambda folder, size: False)
    with pytest.raises(OutputError, match=r"the disk is full: item 'street 1/a' takes 288 bytes"):
        evaluator.update(probs[1:2], labels[1:2], NAMES[1:2])
    assert len(evaluator.report().items) == 1


def test_what_cannot_be_merged(evaluator: uqeval.Evaluator, tmp_path: Path) -> None:
    probs, labels = predictions()
    with pytest.raises(UsageError, match="has no items; call update first"):
        evaluator.report()
    evaluator.update(probs, labels, NAMES)
    with pytest.raises(UsageError, match="is not the folder of an Evaluator, or it was closed"):
        evaluator.merge([tmp_path])
    with uqeval.Evaluator(["failure"], scratch=tmp_path) as other:
        other.update(probs[:, :1], labels, NAMES)
        with pytest.raises(UsageError, match="is of another evaluation: its samples differ"):
            evaluator.merge([other])
        (other.folder / "maps" / "zarr.json").write_text("[")
        with pytest.raises(UsageError, match="was not written by an Evaluator"):
            evaluator.merge([other])
    with pytest.raises(UsageError, match="kind='ids'"):
        uqeval.Evaluator(kind="ids")  # type: ignore[arg-type]


def test_a_closed_evaluator_is_refused(tmp_path: Path) -> None:
    with uqeval.Evaluator("failure") as evaluator:
        evaluator.update(*predictions(), NAMES)
    calls: list[Callable[[], object]] = [
        lambda: evaluator.update(*predictions(), NAMES), evaluator.report,
        lambda: evaluator.merge([tmp_path]),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(UsageError, match="the evaluator is closed"):
            call()


def test_several_annotators_in_two_processes(tmp_path: Path) -> None:
    """The energy distance needs the classes of each sample: 1 byte each, not the probabilities."""
    probs, _ = predictions()
    labels = np.random.default_rng(4).integers(0, C, (N, 3, 8, 6)).astype("u1")
    with (
        uqeval.Evaluator("annotators", scratch=tmp_path) as first,
        uqeval.Evaluator("annotators", scratch=tmp_path) as second,
    ):
        first.update(probs[:5], labels[:5], NAMES[:5])
        second.update(probs[4:], labels[4:], NAMES[4:])
        first.merge([second.folder])
        # Prediction, three annotators and two samples; entropy, confidence and three classes.
        assert first.scratch_bytes == N * 8 * 6 * (1 + 3 + T + 4 * (2 + C))
        report = first.report(ci=0.9, draws=200)
        for planes, given in ((labels[:1, :2], "labels of 2"), (labels[:1, 0], "labels without")):
            refused(
                lambda planes=planes: first.update(probs[:1], planes, ["another"]),
                f"an update with {given} annotators", "the items before have labels of 3",
            )  # fmt: skip
        assert first.report(ci=0.9, draws=200).results == report.results
    expected = uqeval.evaluate(probs, labels, "annotators", names=NAMES, ci=0.9, draws=200)
    assert report.results["annotators"]["ged"] is not None
    assert report.results == expected.results
    assert report.items == expected.items
    assert report.intervals == expected.intervals


@pytest.mark.parametrize("metrics", ["all", "pavpu"])
def test_other_numbers_of_annotators_are_refused(metrics: str, tmp_path: Path) -> None:
    """Also where no metric reads the labels of each: the majority is another ground truth."""
    probs, plain = predictions()
    planes = np.stack([plain] * 2, 1)
    for first, second in ((plain, planes), (planes, plain), (plain, plain[:, None])):
        with (
            uqeval.Evaluator(metrics, scratch=tmp_path) as evaluator,
            uqeval.Evaluator(metrics, scratch=tmp_path) as other,
        ):
            evaluator.update(probs[:1], first[:1], ["a"])
            with pytest.raises(DataError, match=r"with labels .* the items before have"):
                evaluator.update(probs[1:2], second[1:2], ["b"])
            other.update(probs[1:2], second[1:2], ["b"])
            with pytest.raises(UsageError, match="its annotators"):
                evaluator.merge([other.folder])
            assert len(evaluator) == 1


def test_warnings_about_the_updates_are_in_the_report(tmp_path: Path) -> None:
    """The store of maps does not show how its labels and probabilities were given."""
    probs, labels = predictions()
    rounded, planes = probs.astype(ml_dtypes.bfloat16), np.stack([labels] * 2, 1)
    with (
        uqeval.Evaluator("pavpu", scratch=tmp_path) as evaluator,
        uqeval.Evaluator("pavpu", scratch=tmp_path) as rank,
    ):
        for k in (0, 1):
            rank.update(rounded[k : k + 1], planes[k : k + 1], [NAMES[k]])
        evaluator.merge([rank.folder])
        found = evaluator.report(workers=1).warnings
    expected = uqeval.evaluate({"probs": rounded[:2], "labels": planes[:2]}, workers=1).warnings
    assert found == expected
    assert "2 annotators" in found[0] and "bfloat16" in found[1]


def test_a_first_update_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    probs, labels = predictions()
    with uqeval.Evaluator({"pavpu": {"window": 4}}, scratch=tmp_path) as evaluator:
        with pytest.raises(UsageError, match="window=4 is larger than item small"):
            evaluator.update(probs[:1, ..., :3, :3], labels[:1, :3, :3], ["small"])
        assert evaluator.update(probs, labels, NAMES) == N
        assert len(evaluator.report(workers=1).items) == N


@pytest.fixture
def refused_rank(tmp_path: Path) -> Iterator[uqeval.Evaluator]:
    """Yield an evaluator whose only update, with bfloat16 and two annotators, was refused."""
    probs, labels = predictions()
    probs[1, 0, 0, 0, 0] = np.nan
    given = probs.astype(ml_dtypes.bfloat16)[[0, 0, 1]], np.stack([labels] * 2, 1)[[0, 0, 1]]
    with uqeval.Evaluator("failure", scratch=tmp_path) as rank:
        with pytest.raises(DataError, match="item street 1/a"):
            rank.update(*given, [NAMES[0], NAMES[0], NAMES[1]])
        assert len(rank) == 0
        yield rank


def test_the_form_of_refused_items_is_not_that_of_later_ones(
    refused_rank: uqeval.Evaluator,
) -> None:
    assert refused_rank.update(*predictions(), NAMES) == N
    warnings = refused_rank.report(workers=1).warnings
    assert not any("annotators" in text or "repeated" in text for text in warnings)


def test_ranks_without_items_are_merged(refused_rank: uqeval.Evaluator) -> None:
    with uqeval.Evaluator("failure") as rank:
        rank.update(*predictions(), NAMES)
        rank.merge([refused_rank])
        refused_rank.merge([rank.folder])
        assert len(rank) == len(refused_rank) == N
        reports = [own.report(workers=1) for own in (rank, refused_rank)]
    assert reports[0].results == reports[1].results
    assert reports[0].warnings == reports[1].warnings


def test_a_later_update_that_is_refused_leaves_no_warning(tmp_path: Path) -> None:
    probs, labels = predictions()
    bad = probs[[1, 1]]
    bad[:, 0, 0, 0, 0] = np.nan
    with (
        uqeval.Evaluator("failure", scratch=tmp_path) as evaluator,
        uqeval.Evaluator("failure", scratch=tmp_path) as rank,
    ):
        evaluator.update(probs[:1], labels[:1], NAMES[:1])
        rank.merge([evaluator])
        with pytest.raises(DataError, match="item street 1/a"):
            evaluator.update(bad.astype(ml_dtypes.bfloat16), labels[[1, 1]], [NAMES[1]] * 2)
        assert evaluator.report(workers=1).warnings == rank.report(workers=1).warnings


def test_a_first_item_of_one_pixel(tmp_path: Path) -> None:
    """Later items may be larger, so these are not images without pixels."""
    probs, labels = predictions()
    updates = [
        (probs[:1, ..., :1, 1:2], labels[:1, 1:2, :1], ["a"]),
        (probs[1:2], labels[1:2], ["b"]),
    ]
    results = []
    for order in (updates, updates[::-1]):
        metrics = {"pavpu": {"window": 4, "border": "partial"}}
        with uqeval.Evaluator(metrics, scratch=tmp_path) as evaluator:
            for update in order:
                evaluator.update(*update)
            results.append(evaluator.report(workers=1).results)
    assert results[0] == results[1]


def test_an_item_that_cannot_be_copied_is_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        target.mkdir()
        raise OSError(28, "No space left on device")

    probs, labels = predictions()
    with (
        uqeval.Evaluator("failure", scratch=tmp_path) as evaluator,
        uqeval.Evaluator("failure", scratch=tmp_path) as rank,
    ):
        rank.update(probs, labels, NAMES)
        with monkeypatch.context() as patched:
            patched.setattr(module.shutil, "copytree", full)
            with pytest.raises(OutputError, match=r"cannot be copied \(.*No space left"):
                evaluator.merge([rank.folder])
        assert len(evaluator) == 0
        evaluator.merge([rank.folder])
        assert len(evaluator) == N


def test_thresholds_of_regions_are_settings_before_the_regions_are_known() -> None:
    probs, labels = np.random.default_rng(0).dirichlet(np.ones(3), (2, 8, 8)), np.eye(8, dtype=int)
    arrays = {"probs": probs.transpose(0, 3, 1, 2).astype("f4"), "labels": np.stack([labels] * 2)}
    metrics = {"pavpu": {"threshold_scope": "region"}}
    options: dict[str, Any] = {"region": "box:0:0.5,0:1", "workers": 1}
    with uqeval.Evaluator(metrics) as evaluator:
        evaluator.update(arrays["probs"], arrays["labels"], ["a", "b"])
        found = evaluator.report(**options)
        with pytest.raises(UsageError, match="has no effect without a region"):
            evaluator.report()
    expected = uqeval.evaluate(arrays, metrics=metrics, names=["a", "b"], **options)
    assert found.results == expected.results


def test_names_and_regions_of_other_types_are_refused() -> None:
    arrays = np.full((2, 2, 4, 4), 0.5, "f4"), np.zeros((2, 4, 4), int)
    with uqeval.Evaluator("failure") as evaluator:
        evaluator.update(*arrays, ["a", "b"])
        for name, place in (("names", "update"), ("labels", "update"), ("metrics", "Evaluator"),
                            ("predictions", "update"), ("ignore_index", "Evaluator"),
                            ("class_names", "Evaluator")):  # fmt: skip
            with pytest.raises(UsageError, match=f"{name}= belongs to {place}"):
                evaluator.report(**{name: ["a"]})
        for region in (3, [3], ["class:0", None], b"class:0"):
            with pytest.raises(UsageError, match="expected a region such as boundary:8"):
                evaluator.report(region=region)
        assert "failure@class:0" in evaluator.report(region=["class:0"]).results


@pytest.mark.parametrize(
    ("metrics", "fit_on"),
    [
        ({"conformal": {"alpha": 0.5}}, NAMES[3:7]),
        ({"calibration": {"temperature": True}}, NAMES[-1:]),
        ({"calibration": {"temperature": True}}, [f"{name}.png" for name in NAMES[3:7]]),
    ],
)
def test_items_to_fit_on_may_come_later(
    metrics: dict[str, dict[str, Any]], fit_on: list[str], tmp_path: Path
) -> None:
    """The maps are planned from the first item, which the file need not name."""
    file = tmp_path / "fit.txt"
    file.write_text("\n".join(fit_on))
    ((family, options),) = metrics.items()
    families = {family: options | {"fit_on": str(file)}}
    probs, labels = predictions()
    with uqeval.Evaluator(families) as evaluator:
        for k in range(N):
            evaluator.update(probs[k : k + 1], labels[k : k + 1], NAMES[k : k + 1])
        report = evaluator.report()
    expected = uqeval.evaluate({"probs": probs, "labels": labels}, None, families, names=NAMES)
    assert report.results == expected.results


@pytest.mark.parametrize("metrics", [{"pavpu": {"window": 100}}, "annotators", "divergence"])
def test_errors_do_not_name_the_temporary_folder(metrics: Any, tmp_path: Path) -> None:
    probs, labels = predictions()
    with uqeval.Evaluator(metrics, scratch=tmp_path) as evaluator:
        with pytest.raises(UsageError) as caught:
            evaluator.update(probs, labels, NAMES)
        assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("metrics", "instead"),
    [
        ("regression", '{"mean": …, "std": …, "target": …}, metrics=\'regression\')'),
        ({"nmerci": {}}, "uqeval.evaluate("), (["tc"], "video="), ("ood", "metrics='ood'"),
    ],
)  # fmt: skip
def test_metrics_of_other_data_are_refused_at_once(metrics: Any, instead: str) -> None:
    message = refused(lambda: uqeval.Evaluator(metrics), "takes class predictions only", instead)
    assert "uqeval pavpu" not in message


def in_threads(count: int, call: Callable[[int], Any]) -> list[Any]:
    """Call a function with 0 … count - 1 in threads that start together; its values or errors."""
    together = threading.Barrier(count)

    def started(k: int) -> Any:
        together.wait()
        try:
            return call(k)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(started, range(count)))


def test_threads_may_update_from_the_first_item_on(tmp_path: Path) -> None:
    probs, labels = predictions()
    with uqeval.Evaluator(FAMILIES, scratch=tmp_path) as alone:
        alone.update(probs, labels, NAMES)
        expected, nbytes = alone.report(), alone.scratch_bytes
    with uqeval.Evaluator(FAMILIES, scratch=tmp_path) as own:

        def update(k: int) -> int:
            parts = [range(i, min(i + 2, N)) for i in range(k, N, 3)]  # some items come twice
            return sum(
                own.update(probs[part], labels[part], [NAMES[i] for i in part]) for part in parts
            )

        counts = in_threads(3, update)
        assert sum(counts) == N == len(own)
        assert own.scratch_bytes == nbytes
        report = own.report()
    assert report.results == expected.results
    assert report.items == expected.items


@contextmanager
def two_evaluators(folder: Path) -> Iterator[tuple[uqeval.Evaluator, uqeval.Evaluator]]:
    with (
        uqeval.Evaluator("segmentation", scratch=folder) as first,
        uqeval.Evaluator("segmentation", scratch=folder) as second,
    ):
        yield first, second


def test_a_report_while_another_thread_updates(tmp_path: Path) -> None:
    probs, labels = predictions()
    with two_evaluators(tmp_path) as (own, other):
        own.update(probs[:1], labels[:1], NAMES[:1])

        def call(k: int) -> list[int]:
            if k == 0:
                return [own.update(probs[[i]], labels[[i]], [NAMES[i]]) for i in range(1, N)]
            if k == 1:
                other.merge([own])
                return [len(other)]
            return [len(own.report().items) for _ in range(3)]

        updated, merged, reported = in_threads(3, call)
        assert updated == [1] * (N - 1)
        assert 1 <= merged[0] <= N
        assert reported == sorted(reported) and all(1 <= count <= N for count in reported)


def test_two_evaluators_that_merge_each_other(tmp_path: Path) -> None:
    probs, labels = predictions()
    with two_evaluators(tmp_path) as (first, second):
        first.update(probs[:4], labels[:4], NAMES[:4])
        second.update(probs[4:], labels[4:], NAMES[4:])
        pair = (first, second)
        assert in_threads(2, lambda k: pair[k].merge([pair[1 - k]])) == [None, None]
        assert len(first) == len(second) == N


def test_a_fork_that_drops_an_evaluator_leaves_that_of_its_parent(tmp_path: Path) -> None:
    """A worker that makes an evaluator of its own drops the inherited one."""
    script = f"""
import os, numpy, uqeval, warnings

warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on, of forks beside threads
probs = numpy.full((2, 1, 2, 4, 4), 0.5, "f4")
labels = numpy.zeros((2, 4, 4), "u1")
evaluator = uqeval.Evaluator(["pavpu"], scratch={str(tmp_path)!r})
evaluator.update(probs[:1], labels[:1], ["a"])
if (child := os.fork()) == 0:
    try:
        evaluator = uqeval.Evaluator(["pavpu"], scratch={str(tmp_path)!r})
        evaluator.close()
    finally:
        os._exit(0)
os.waitpid(child, 0)
evaluator.update(probs[1:], labels[1:], ["b"])
print(len(evaluator.report().items))
"""
    done = run_script(script, tmp_path)
    assert (done.status, done.stdout, done.stderr) == (0, "2\n", "")
