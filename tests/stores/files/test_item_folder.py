"""Folders of one .npy or .npz file an item, as frameworks dump them."""

from __future__ import annotations

import re
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from PIL import Image
from split import split

import uqeval
from uqeval.errors import StoreError, UqevalError, UsageError
from uqeval.stores.bfloat16 import tolerance_of
from uqeval.stores.store import open_store
from uqeval.usecases.convert import convert

RNG = np.random.default_rng(5)
T, C = 3, 4
#: Items of two sizes, in folders as Cityscapes has them.
SIZES = {"aachen/a_000": (8, 12), "aachen/a_001": (8, 12), "bonn/b_000": (6, 10)}
STACKS = {
    name: np.moveaxis(RNG.dirichlet(np.ones(C), (T, *size)), -1, 1) for name, size in SIZES.items()
}
LABELS = {name: RNG.integers(0, C, size).astype(np.uint8) for name, size in SIZES.items()}


def save(folder: Path, value: Callable[[str], Any], dump: Any = np.save) -> Path:
    """One file an item, by the item's name."""
    for name in SIZES:
        path = folder / f"{name}{'.npz' if dump is not np.save else '.npy'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        dump(path, value(name))
    return folder


def label_folder(folder: Path, flat: bool = False) -> Path:
    for name, plane in LABELS.items():
        path = folder / f"{name.split('/')[-1] if flat else name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(plane).save(path)
    return folder


def scores(*given: Any, **options: Any) -> dict[str, Any]:
    metrics = {"pavpu": {"window": 2}, "calibration": {"temperature": False}}
    found = uqeval.evaluate(*given, metrics=metrics, **options)
    return {"ece": found.results["calibration"]["ece"], "pavpu": found.results["pavpu"]["pavpu"]}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The scores of all samples, of a store that is no folder of files."""
    folder = tmp_path_factory.mktemp("expected")
    sizes = {name: STACKS[name].shape[2:] for name in SIZES}
    with uqeval.PredictionWriter(
        folder / "s.zarr", names=list(sizes), samples=T, classes=C, dtype="float32", size=None
    ) as writer:
        for name in sizes:
            writer.add(name, STACKS[name].astype("f4"))
    return scores(folder / "s.zarr", label_folder(folder / "labels"))


def close(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    return all(found[key] == pytest.approx(expected[key], rel=1e-5) for key in expected)


def test_one_file_an_item(tmp_path: Path, expected: dict[str, Any]) -> None:
    labels = label_folder(tmp_path / "labels", flat=True)
    folder = save(tmp_path / "p", lambda n: STACKS[n].astype("f4"))
    (folder / "aachen/a_000.png").write_bytes(b"a picture beside")
    assert open_store(folder, role="predictions").names == tuple(SIZES)
    assert split([str(folder), str(labels)]) == ([str(folder)], str(labels))
    assert close(scores(folder, labels), expected)
    report = uqeval.evaluate(folder, labels, metrics=("segmentation",))
    assert [item["name"] for item in report.items] == list(SIZES)
    last = save(tmp_path / "last", lambda n: np.moveaxis(STACKS[n], 1, -1).astype("f4"))
    assert close(scores(last, labels, axes="THWC"), expected)
    np_files = save(tmp_path / "z", lambda n: STACKS[n].astype("f4"), np.savez_compressed)
    assert close(scores(np_files, labels), expected)
    convert(folder, tmp_path / "s.zarr")
    assert close(scores(tmp_path / "s.zarr", labels), expected)


def test_members_in_folders_of_their_own(tmp_path: Path, expected: dict[str, Any]) -> None:
    labels = label_folder(tmp_path / "labels")
    members = [
        save(tmp_path / f"ens/m{t}", lambda n, t=t: STACKS[n][t].astype("f4")) for t in range(T)
    ]
    assert close(scores(members, labels), expected)
    logits = [save(tmp_path / f"logits{t}", lambda n, t=t: np.log(STACKS[n][t])) for t in range(T)]
    assert close(scores(logits, labels, kind="logits"), expected)
    (tmp_path / "ens/m1/bonn/b_000.npy").unlink()
    with pytest.raises(StoreError, match="name their items differently"):
        scores(members, labels)


def test_names_in_the_files_and_the_folders(tmp_path: Path, expected: dict[str, Any]) -> None:
    labels = label_folder(tmp_path / "labels")
    by_name = save(
        tmp_path / "named", lambda n: STACKS[n],
        lambda path, values: np.savez(path, logits=np.log(values), other=np.ones(3)),
    )  # fmt: skip
    assert close(scores(by_name, labels), expected)
    deep = tmp_path / "deep"
    save(deep / "logits", lambda n: np.log(STACKS[n]))
    save(deep / "labels", lambda n: LABELS[n])
    assert close(scores(deep), expected)
    assert close(scores(deep / "logits", deep / "labels", kind="logits"), expected)
    units = {n: np.rint(STACKS[n] * 255).astype(np.uint8) for n in SIZES}
    scaled = save(
        tmp_path / "scaled", units.get,
        lambda path, values: np.savez(path, probs=values, scale=np.float64(1 / 255)),
    )  # fmt: skip
    assert scores(scaled, labels)["ece"] == pytest.approx(expected["ece"], abs=0.02)


@pytest.mark.parametrize("form", ["npz", "folders", "endings"])
def test_means_and_deviations(tmp_path: Path, form: str) -> None:
    means = {n: RNG.normal(5, 1, size) for n, size in SIZES.items()}
    targets = {n: means[n] + RNG.normal(0, 1, size) for n, size in SIZES.items()}
    folder = tmp_path / "p"
    if form == "npz":
        save(folder, means.get, lambda path, m: np.savez(path, mean=m, std=np.ones_like(m)))
    else:
        at = "{}/{}.npy" if form == "folders" else "{1}_{0}.npy"
        for name, mean in means.items():
            for kind, values in (("mean", mean), ("std", np.ones_like(mean))):
                path = folder / at.format(kind, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                np.save(path, values)
    target = save(tmp_path / "t", targets.get)
    assert split([str(folder), str(target)]) == ([str(folder)], str(target))
    report = uqeval.evaluate(folder, target, metrics=("regression",))
    assert [item["name"] for item in report.items] == list(SIZES)
    errors = np.concatenate([(means[n] - targets[n]).ravel() for n in SIZES])
    assert report.results["regression"]["rmse"] == pytest.approx(np.sqrt((errors**2).mean()))


def test_arrays_of_one_store_are_no_items(tmp_path: Path) -> None:
    """Also beside files of other names, such as a target or another store."""
    for name in ("mean", "std", "names", "truth"):
        np.save(tmp_path / f"{name}.npy", np.ones((3, 4, 4), "f4"))
    words = (
        f"{tmp_path}: mean.npy, std.npy are called as arrays, not as items.",
        'numpy.savez("preds.npz", mean=mean, names=names, std=std)', "give preds.npz",
        "Add the arrays of truth.npy with the names of what they hold",
    )  # fmt: skip
    assert "alone" not in refused(lambda: open_store(tmp_path, role="predictions"), *words)
    np.savez(tmp_path / "samples.npz", samples=np.ones((3, 2, 4, 4), "f4"))
    refused(
        lambda: open_store(tmp_path, role="predictions"),
        'savez("preds.npz", mean=mean, names=names, std=std)',
        "samples.npz may be a store alone: give its path.",
    )
    for name in ("mean", "std", "names", "truth"):
        (tmp_path / f"{name}.npy").unlink()
    np.savez(tmp_path / "probs.npz", probs=np.ones((3, 2, 1, 4, 4), "f4"))
    message = refused(
        lambda: open_store(tmp_path, role="predictions"), "Give one of them, or put their arrays"
    )
    assert "savez" not in message


def test_predicted_ids(tmp_path: Path) -> None:
    labels = label_folder(tmp_path / "labels")
    ids = {n: STACKS[n].mean(0).argmax(0).astype(np.uint8) for n in SIZES}
    arrays = save(tmp_path / "ids", ids.get)
    pictures = tmp_path / "pngs"
    for name, plane in ids.items():
        (pictures / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(plane).save(pictures / f"{name}.png")
    right = np.concatenate([(ids[n] == LABELS[n]).ravel() for n in SIZES]).mean()
    for folder in (arrays, pictures):
        assert split([str(folder), str(labels)]) == ([str(folder)], str(labels))
        report = uqeval.evaluate(folder, labels, metrics=("segmentation",), classes=C)
        assert report.results["segmentation"]["pixel_accuracy"] == pytest.approx(right)
        with pytest.raises(StoreError, match="no uncertainty"):
            uqeval.evaluate(folder, labels, metrics=("pavpu",), classes=C)
        with pytest.raises(UsageError, match=rf"uqeval run {re.escape(str(folder))} LABELS"):
            uqeval.evaluate(folder, labels, metrics=("pavpu",))
        everything = uqeval.evaluate(folder, labels, metrics="all", classes=C)
        assert list(everything.results) == ["segmentation"]
        assert any("no uncertainty" in text for text in everything.warnings)


def test_a_folder_of_more_files_than_may_be_open(tmp_path: Path) -> None:
    names = [f"{i:03}" for i in range(150)]
    one = np.full((2, 3, 4), 0.5, "f4")
    (tmp_path / "t").mkdir()
    for name in names:
        np.savez_compressed(tmp_path / f"{name}.npz", probs=one)
        np.save(tmp_path / "t" / f"{name}.npy", np.zeros((3, 4), np.uint8))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    (tmp_path / "t").rename(tmp_path.parent / f"{tmp_path.name}-labels")
    used = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 110, hard))
    try:
        report = uqeval.evaluate(
            tmp_path, tmp_path.parent / f"{tmp_path.name}-labels", metrics=("segmentation",)
        )
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert report.inputs["items"] == 150


@pytest.mark.parametrize(
    ("files", "options", "says"),
    [
        ({"a.npy": np.ones((4, 5))}, {}, r"a\.npy has the shape \(4, 5\) .*`mean/` and `std/`"),
        ({"a.npy": np.array([["x"]])}, {}, r"a\.npy"),
        ({"a.npy": np.ones((2, 4, 5)), "b.npy": np.ones((3, 4, 5))}, {}, "item 1 has 3"),
        ({"a.npy": np.ones((2, 4, 5)), "a.npz": np.ones((2, 4, 5))}, {}, "'a' has 'probs' in"),
        ({"a.npy": np.ones((4, 5, 2))}, {"axes": "NCHW"}, "axes 'NCHW' are 4, but"),
        ({"mean/a.npy": np.ones((4, 5)), "std/b.npy": np.ones((4, 5))}, {}, "only 1 of 2 items"),
        ({"a.pt": None}, {}, r"1 \.pt.*unpickling runs code.*torch\.load\('.*a\.pt'.*numpy\(\)"),
        ({"a.mha": None}, {}, r"SimpleITK\.ReadImage\('.*a\.mha'\).*"),
        ({"a.pkl": None, "b.pkl": None}, {}, r"2 \.pkl.*pickle\.load"),
    ],
)  # fmt: skip
def test_what_is_refused(
    tmp_path: Path, files: dict[str, Any], options: dict[str, Any], says: str
) -> None:
    for name, values in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if values is None:
            path.write_bytes(b"\x80\x04")
        elif name.endswith("npz"):
            np.savez(path, values)
        else:
            np.save(path, values)
    with pytest.raises((StoreError, UsageError), match=says):
        uqeval.evaluate(tmp_path, None, metrics=("segmentation",), **options)


@pytest.mark.parametrize("end", [".pt", ".pth", ".pkl"])
def test_files_that_would_run_code(tmp_path: Path, end: str) -> None:
    (tmp_path / f"preds{end}").write_bytes(b"\x80\x04")
    with pytest.raises(StoreError, match=f"is a {end} file.*Convert it.*python -c.*preds.npy"):
        open_store(tmp_path / f"preds{end}", role="predictions")


#: nnU-Net's cases: probabilities [class, z, y, x] and labels [z, y, x].
CASES = {
    f"case_{k}": np.moveaxis(RNG.dirichlet(np.ones(C), (2 + k, 8, 12)), -1, 0).astype("f4")
    for k in range(3)
}
TRUTH = {name: RNG.integers(0, C, p.shape[1:]).astype(np.uint8) for name, p in CASES.items()}


def nnunet(folder: Path, member: str = "probabilities") -> Path:
    folder.mkdir()
    for name, probs in CASES.items():
        np.savez_compressed(folder / f"{name}.npz", **{member: probs})
        (folder / f"{name}.pkl").write_bytes(b"\x80\x04cposix\nsystem\n")  # never read
        np.savez(folder.parent / f"{name}-labels.npz", TRUTH[name])
    return folder


@pytest.mark.parametrize("member", ["probabilities", "softmax"])
@pytest.mark.parametrize("form", ["npz", "npy", "png"])
def test_cases_of_nnunet(tmp_path: Path, form: str, member: str) -> None:
    folder, labels = nnunet(tmp_path / "p", member), tmp_path / "l"
    labels.mkdir()
    for name, truth in TRUTH.items():
        if form == "png":
            (labels / name).mkdir()
            for z, plane in enumerate(truth):
                Image.fromarray(plane).save(labels / name / f"{z:04}.png")
        else:
            dump: Any = np.save if form == "npy" else np.savez_compressed
            dump(labels / f"{name}.{form}", truth)
    assert split([str(folder), str(labels)]) == ([str(folder)], str(labels))
    report = uqeval.evaluate(folder, labels, metrics=("segmentation",), ci=0.9, draws=200)
    assert [item["name"] for item in report.items[:3]] == [
        "case_0/0000", "case_0/0001", "case_1/0000",
    ]  # fmt: skip
    right = np.concatenate([(CASES[n].argmax(0) == TRUTH[n]).ravel() for n in CASES])
    assert report.results["segmentation"]["pixel_accuracy"] == pytest.approx(right.mean())
    said = report.settings["intervals"]
    assert (said["unit"], said["units"], said["group_by"]) == ("group", 3, "case")
    assert said["groups"] == ["case_0"] * 2 + ["case_1"] * 3 + ["case_2"] * 4


def test_cases_are_the_groups_of_parts_and_gates(tmp_path: Path) -> None:
    folder = nnunet(tmp_path / "p")
    (tmp_path / "l").mkdir()
    for name, truth in TRUTH.items():
        np.save(tmp_path / "l" / f"{name}.npy", truth)
    options: dict[str, Any] = {"metrics": ("segmentation",), "ci": 0.9, "draws": 200}
    whole = uqeval.evaluate(folder, tmp_path / "l", group_by="case", **options)
    for k in (1, 2):
        uqeval.evaluate(
            folder, tmp_path / "l", metrics=("segmentation",), part=f"{k}/2",
            states=tmp_path / f"{k}.states.zip",
        )  # fmt: skip
    files = [tmp_path / f"{k}.states.zip" for k in (1, 2)]
    merged = uqeval.merge(files, ci=0.9, draws=200)
    assert merged.intervals == whole.intervals
    assert merged.settings["intervals"]["groups"] == whole.settings["intervals"]["groups"]
    with pytest.raises(UsageError, match="the items are not slices of cases"):
        uqeval.evaluate(
            STACKS["bonn/b_000"][None], LABELS["bonn/b_000"][None], group_by="case", **options
        )


@pytest.mark.parametrize("crop", [np.s_[:, 1:], np.s_[1:], np.s_[:, :, :-2]])
def test_cases_that_are_not_uncropped(tmp_path: Path, crop: Any) -> None:
    folder = nnunet(tmp_path / "p")
    (tmp_path / "l").mkdir()
    for name, truth in TRUTH.items():
        np.save(tmp_path / "l" / f"{name}.npy", np.pad(truth, 1)[crop])
    with pytest.raises(StoreError, match="probabilities of the cropped volume"):
        uqeval.evaluate(folder, tmp_path / "l", metrics=("segmentation",))


def test_labels_of_another_case_are_never_used(tmp_path: Path) -> None:
    folder, labels = nnunet(tmp_path / "p"), tmp_path / "l"
    labels.mkdir()
    for name, truth in TRUTH.items():
        np.save(labels / f"{name}.npy", truth)
    np.save(labels / "case_1.npy", TRUTH["case_1"][:2])
    with pytest.raises(StoreError, match=r"label of the case 'case_1' has 2 slices.* has 3"):
        uqeval.evaluate(folder, labels, metrics=("segmentation",))
    (labels / "case_1.npy").unlink()
    for call in (
        lambda: uqeval.evaluate(folder, labels, metrics=("segmentation",)),
        lambda: convert(folder, tmp_path / "s.zarr", labels=labels),
    ):
        with pytest.raises(StoreError, match="1 of 3 cases have no label: case_1"):
            call()


@pytest.mark.parametrize("longer", ["predictions", "labels"])
def test_a_case_of_one_slice(tmp_path: Path, longer: str) -> None:
    """It is the same item as an image, although its name has a slice beside longer cases."""
    folders = {"predictions": tmp_path / "p", "labels": tmp_path / "l"}
    for folder in folders.values():
        folder.mkdir()
    probs, truth = CASES["case_0"][:, :1], TRUTH["case_0"][:1]
    np.savez(folders["predictions"] / "case_0.npz", probabilities=probs)
    np.save(folders["labels"] / "case_0.npy", truth)
    given: dict[str, Any] = {"metrics": ("segmentation",)}
    expected = uqeval.evaluate(*folders.values(), **given).results
    if longer == "predictions":
        np.savez(folders[longer] / "case_1.npz", probabilities=CASES["case_1"])
        given["names"] = ["case_0/0000"]
    else:
        np.save(folders[longer] / "case_1.npy", TRUTH["case_1"])
    report = uqeval.evaluate(*folders.values(), **given)
    assert report.results == expected
    np.save(folders["labels"] / "case_0.npy", TRUTH["case_0"])
    with pytest.raises(
        StoreError, match=r"of 2 slices, but this item is one image|same case have: case_0"
    ):
        uqeval.evaluate(*folders.values(), **given)


def test_samples_in_a_member_of_nnunets_name(tmp_path: Path, expected: dict[str, Any]) -> None:
    labels = label_folder(tmp_path / "labels")
    folder = save(
        tmp_path / "p", lambda n: STACKS[n].astype("f4"),
        lambda path, values: np.savez(path, softmax=values),
    )  # fmt: skip
    assert close(scores(folder, labels, axes="TCHW"), expected)
    with pytest.raises(UqevalError, match=r"3 classes|have no label"):
        scores(folder, labels)


def test_the_arrays_of_all_items_are_looked_at_once_not_for_each_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of n files took n² steps."""
    (tmp_path / "p").mkdir()
    truth = np.random.default_rng(0).integers(0, 2, (20, 4, 5)).astype("u1")
    for item, labels in enumerate(truth):
        np.save(
            tmp_path / "p" / f"{item:02}.npy", np.stack([labels == 0, labels == 1]).astype("f4")
        )
    looked_at: list[Any] = []

    def counted(array: Any, dtype: str) -> float:
        looked_at.append(array)
        return tolerance_of(array, dtype)

    monkeypatch.setattr("uqeval.stores.stack.tolerance_of", counted)
    uqeval.evaluate(tmp_path / "p", truth, ["segmentation", "failure"], workers=1)
    # Once for each file, and once for the items that are reduced together.
    assert len(set(map(id, looked_at))) == 20
    assert len(looked_at) <= 21


def test_labels_with_another_axis_are_no_volume(tmp_path: Path) -> None:
    """They are of the items with their names, but have slices."""
    probs = np.full((2, 3, 4, 5), 1 / 3, "f4")
    np.savez(tmp_path / "p.npz", probs=probs, names=["a", "b"])
    for count, shape in ((4, (4, 5, 1)), (3, (3, 4, 5))):
        folder = tmp_path / f"{count}"
        folder.mkdir()
        for name in "ab":
            np.save(folder / f"{name}.npy", np.zeros(shape, "u1"))
        says = f"of 'a' is read as a volume [Z, H, W] of {count} slices, but this item is one image"
        both = tmp_path / "p.npz", folder
        refused(lambda: uqeval.evaluate(*both, "segmentation"), says, "numpy.squeeze")  # noqa: B023


@pytest.mark.parametrize(("end", "dump"), [("npy", np.save), ("npz", np.savez)])
def test_a_dot_in_a_name_is_part_of_it(tmp_path: Path, end: str, dump: Any) -> None:
    names = ["frame.0001", "frame.0002", "frame"]
    arrays = list(STACKS.values())
    planes = list(LABELS.values())
    for folder, values in (("preds", arrays), ("labels", planes)):
        (tmp_path / folder).mkdir()
        for name, value in zip(names, values, strict=True):
            dump(tmp_path / folder / f"{name}.{end}", value)
    labels = open_store(tmp_path / "labels", role="labels", names=names).arrays["labels"]
    for item, plane in zip(labels, planes, strict=True):
        assert np.array_equal(item.array.read((slice(None),) * 2), plane)
    (tmp_path / f"labels/frame.{end}").rename(tmp_path / f"labels/frame.old.{end}")
    with pytest.raises(StoreError, match=r"1 of 3 items have no label: frame \("):
        uqeval.evaluate(tmp_path / "preds", tmp_path / "labels", metrics=["segmentation"])


def test_attributes_of_each_file(tmp_path: Path) -> None:
    """All files have one void id: it is that of the folder. If not, it is an error."""
    options = {"class_names": np.array(list("abcd")), "ignore_index": 3}

    def dumped(folder: str, attributes: Callable[[str], dict[str, Any]]) -> Path:
        return save(
            tmp_path / folder,
            lambda name: (
                {"probs": STACKS[name].astype("f4"), "labels": LABELS[name]} | attributes(name)
            ),
            lambda path, arrays: np.savez(path, **arrays),
        )

    everywhere = dumped("all", lambda name: options)
    found = uqeval.evaluate(everywhere, None, "segmentation").results["segmentation"]
    assert found["pixels"] == sum(np.count_nonzero(plane != 3) for plane in LABELS.values())
    assert [row["name"] for row in found["per_class"]] == list("abcd")
    first = next(iter(SIZES))
    once = dumped("one", lambda name: options if name == first else {})
    (said,) = open_store(str(once), role="predictions").warnings
    assert "left out ignore_index, which is not the same in all files" in said
    with pytest.raises(StoreError, match=r"ignore_index is 3, but the void id is 255"):
        uqeval.evaluate(once, None, "segmentation")
    given = uqeval.evaluate(once, None, "segmentation", ignore_index=3)
    assert given.results["segmentation"]["miou"] == found["miou"]


def test_invalid_counts_for_the_target_of_its_file(tmp_path: Path) -> None:
    for name, invalid in (("a", -1.0), ("b", 0.0)):
        target = np.full((4, 5), 10.0)
        target[0], target[1] = -1, 0
        arrays = {"mean": np.full((4, 5), 9.0), "std": np.ones((4, 5)), "target": target}
        np.savez(tmp_path / f"{name}.npz", invalid=invalid, **arrays)
    report = uqeval.evaluate(tmp_path, None, "regression")
    assert report.results["regression"]["pixels"] == 30
    assert [item["regression"]["rmse"] for item in report.items] == pytest.approx(
        [np.sqrt((81 * 5 + 10) / 15), np.sqrt((100 * 5 + 10) / 15)]
    )
