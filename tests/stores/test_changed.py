"""Data that change while a run reads them: the run ends, names item and file, and keeps nothing."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from number_stores import numbers
from small_stores import NAMES, labels, probs, save, save_complete, save_label_folder
from small_videos import save_flows, save_folder, save_store, video

import uqeval
from uqeval.engine.scratch import Scratch
from uqeval.errors import ChangedError, StoreError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.stores import watch
from uqeval.stores.planes import Planes
from uqeval.stores.store import open_store
from uqeval.stores.watch import Watch, file_state, one_look, read_whole
from uqeval.stores.watched_parts import WatchedText
from uqeval.usecases.convert import convert
from uqeval.usecases.gallery.opening import open_gallery
from uqeval.usecases.inspect import inspect
from uqeval.usecases.reduce import reduce as write_maps

#: What is read, and the file of it that is replaced: by its place below the test's folder.
Case = tuple[dict[str, Any], dict[str, Any], str]


def classes(path: Path) -> Case:
    save_complete(path / "p.zarr")
    return {"predictions": path / "p.zarr"}, {"calibration": {}}, "p.zarr/probs/c/2/0/0/0/0"


def label_folder(path: Path) -> Case:
    save(path / "p.zarr", {"probs": probs()}, {"names": NAMES})
    save_label_folder(path / "l", names=NAMES)
    return {"predictions": path / "p.zarr", "labels": path / "l"}, {"pavpu": {}}, "l/celle.png"


def one_file(path: Path) -> Case:
    np.save(path / "p.npy", probs())
    return {"predictions": path / "p.npy", "labels": labels()}, {"pavpu": {}}, "p.npy"


def maps_store(path: Path) -> Case:
    save_complete(path / "p.zarr")
    write_maps(open_inputs(path / "p.zarr", None, InputOptions()), path / "m.zarr")
    return {"predictions": path / "m.zarr"}, {"pavpu": {}}, "m.zarr/entropy/c/2/0/0"


def reference(path: Path) -> Case:
    save_complete(path / "p.zarr")
    save_complete(path / "r.zarr")
    given = {"predictions": path / "p.zarr", "reference": path / "r.zarr"}
    return given, {"divergence": {}}, "r.zarr/probs/c/2/0/0/0/0"


def target(path: Path) -> Case:
    own = numbers()
    save(path / "p.zarr", {k: own[k] for k in ("mean", "std")}, {"names": NAMES})
    for name, values in zip(NAMES, own["target"], strict=True):
        (path / "t").mkdir(exist_ok=True)
        np.save(path / "t" / f"{name}.npy", values)
    return {"predictions": path / "p.zarr", "labels": path / "t"}, {"nmerci": {}}, "t/celle.npy"


def valid(path: Path) -> Case:
    save(path / "p.zarr", numbers(), {"names": NAMES})
    return {"predictions": path / "p.zarr"}, {"nmerci": {}}, "p.zarr/valid/c/2/0/0"


def film(path: Path, file: str) -> Case:
    save_folder(path / "v", video(), labels=True)
    return {"video": path / "v"}, {"tc": {}}, f"v/{file}/v_003.png"


def flow(path: Path) -> Case:
    given, _, _ = film(path, "frames")
    flows = {name: np.zeros((36, 48, 2)) for name in video().names[1:]}
    save_flows(path / "f", flows)
    return given | {"flow_path": path / "f"}, {"tc": {"flow": "file"}}, "f/v_003.flo"


def stored_frames(path: Path) -> Case:
    own = video()
    held = {kind: own.stack(kind) for kind in ("frames", "predictions")}
    save_store(path / "v.zarr", own.names, **held)
    return {"video": path / "v.zarr"}, {"tc": {}}, "v.zarr/frames/c/3/0/0/0"


def zone(path: Path) -> Case:
    save_label_folder(path / "z", labels() % 2, NAMES)
    given, _, _ = classes(path)
    return given | {"region": [f"map:{path / 'z'}:1"]}, {"pavpu": {}}, "z/celle.png"


def depth(path: Path) -> Case:
    (path / "d").mkdir()
    for name, values in zip(NAMES, labels() + 1.0, strict=True):
        np.save(path / "d" / f"{name}.npy", values)
    given, _, _ = classes(path)
    options = {"region": ["depth:0-5"], "depth_map": path / "d"}
    return given | options, {"pavpu": {}}, "d/celle.npy"


def mask(path: Path) -> Case:
    save(path / "m.zarr", {"labels": labels() % 2}, {"names": NAMES})
    given, _, _ = classes(path)
    return given | {"ood_mask": path / "m.zarr"}, {"ood": {}}, "m.zarr/labels/c/2/0/0"


#: Maps of other stores, which two threads read.
OF_OPTIONS: dict[str, Callable[[Path], Case]] = {"zone": zone, "depth": depth, "mask": mask}
CASES: dict[str, Callable[[Path], Case]] = {
    "probs": classes, "labels": label_folder, "npy": one_file, "maps": maps_store,
    "reference": reference, "target": target, "valid": valid, "flow": flow,
    "frames": lambda path: film(path, "frames"), "ids": lambda path: film(path, "predictions"),
    "video labels": lambda path: film(path, "labels"), "stored frames": stored_frames,
    **OF_OPTIONS,
}  # fmt: skip


def replace(file: Path) -> None:
    """Put a copy of a file in its place, with its size and its time: only the file is another."""
    beside = file.with_suffix(f".{threading.get_ident()}")  # several workers may be at it
    shutil.copy2(file, beside)
    beside.replace(file)


#: A video is read once, so that nothing changes between two passes.
OF_A_VIDEO = ("flow", "frames", "ids", "video labels", "stored frames")
CHANGES = [
    (case, when) for case in CASES for when in ("between", "within", "at the end")
    if when != "between" or case not in OF_A_VIDEO
]  # fmt: skip


@pytest.mark.parametrize("form", ["npy", "npz", "zarr", "one pixel", "h5"])
def test_items_with_equal_files_have_equal_states(tmp_path: Path, form: str) -> None:
    values = {"probs": probs(), "labels": labels()}
    path = tmp_path / f"p.{form}"
    if form in ("npy", "one pixel"):
        path = tmp_path / "p.npy"
        np.save(path, values["probs"][:, 0, :, 0, 0] if form == "one pixel" else values["probs"])
    elif form == "npz":
        np.savez(path, **values)
    elif form == "h5":
        h5py = pytest.importorskip("h5py", reason="HDF5 is an extra")
        with h5py.File(path, "w") as file:
            for name, array in values.items():
                file[name] = array
    else:
        save(path, values)
    parts = open_store(path, role="predictions").arrays["probs"]
    shares_file = [parts[0].files == part.files for part in parts]
    assert shares_file == ([True] * len(parts) if form != "zarr" else [True, False, False])
    assert shares_file == [parts[0].states() == part.states() for part in parts]
    assert parts[0].states()


@pytest.mark.parametrize("together", [1, 2, 5])
def test_a_chunk_of_several_items_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """At each look; for stamps, once by each thread that makes some."""
    values = {"probs": np.full((5, 2, 1, 1), 0.5, "f2"), "labels": np.zeros((5, 1, 1), "u1")}
    store = save(tmp_path / "p.zarr", values, together=together)
    inputs = open_inputs(store, None, InputOptions())
    parts = inputs.watch.parts
    assert len({part[1].files for part in parts}) == -(-5 // together)
    looks: Counter[str] = Counter()
    for name in ("_state_now", "_stamp_now"):
        real = getattr(watch, name)
        monkeypatch.setattr(watch, name, lambda path, r=real: looks.update([str(path)]) or r(path))
    inputs.watch.check(range(5))
    assert looks and set(looks.values()) == {1}
    time.sleep(0.03)  # what was written just now has no stamp
    with watch.one_look():
        looks.clear()
        assert len({part[1].stamp() for part in parts}) in (1, 5)  # 1: None in memory
        assert looks and set(looks.values()) == {1}
    replace(tmp_path / "p.zarr" / "probs" / "c" / "0" / "0" / "0" / "0")
    with pytest.raises(ChangedError):
        inputs.watch.check(range(5))


@pytest.mark.parametrize(("case", "when"), CHANGES)
def test_a_change_ends_the_run(
    tmp_path: Path, case: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the second of two passes, while an item is read, and once all has been read."""
    given, metrics, name = CASES[case](tmp_path)
    states, file = tmp_path / "out" / "r.states.zip", tmp_path / name
    states.parent.mkdir()
    monkeypatch.setattr(Scratch, "_keep", lambda *_: None)
    source = type(open_inputs(
        given.get("predictions"), given.get("labels"),
        InputOptions(**{k: v for k, v in given.items()
                        if k not in ("predictions", "labels", "reference")}),
    ).source)  # fmt: skip
    read, asked = source.read, []

    def changing(self: Any, batch: range, *more: Any) -> Any:
        asked.append(batch.start)
        if when == "between" and asked.count(0) == 2 and batch.start == 0:
            replace(file)
        found = read(self, batch, *more)
        if when == "within" and batch.stop > 2:
            replace(file)
        return found

    def ending(self: Watch) -> None:
        replace(file)
        check_all(self)

    check_all = Watch.check_all
    if when == "at the end":
        monkeypatch.setattr(Watch, "check_all", ending)
    monkeypatch.setattr(source, "read", changing)
    with pytest.raises(ChangedError) as error:
        workers = 1 + (case in OF_OPTIONS)
        uqeval.evaluate(metrics=metrics, states=states, workers=workers, memory="1MB", **given)
    assert str(file) in str(error.value) and "(item " in str(error.value)
    assert not list(states.parent.iterdir())


def test_a_map_of_regions_that_is_removed_while_its_ids_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, metrics, name = zone(tmp_path)
    read = Planes.read

    def removing(self: Planes, item: int) -> Any:
        (tmp_path / name).unlink(missing_ok=True)
        return read(self, item)

    monkeypatch.setattr(Planes, "read", removing)
    with pytest.raises(ChangedError, match=rf"{name} \(item celle\) was removed"):
        uqeval.evaluate(metrics=metrics, **given)


def test_what_does_not_change_is_not_refused(tmp_path: Path) -> None:
    """Reading a file, which may set the time of access, is no change."""
    given, metrics, name = label_folder(tmp_path)
    inputs = open_inputs(*given.values(), InputOptions())
    (tmp_path / name).read_bytes()
    os.utime(tmp_path / "p.zarr")
    inputs.watch.check_all()
    assert uqeval.evaluate(metrics=metrics, **given).results


def test_watch(tmp_path: Path) -> None:
    inputs = open_inputs(*label_folder(tmp_path)[0].values(), InputOptions(names=None))
    watch = inputs.watch
    with watch.reading(range(3)):
        pass
    with pytest.raises(StoreError, match="another error"), watch.reading((2,)):
        raise StoreError("another error")
    with pytest.raises(ChangedError, match=r"celle\.png \(item celle\) was removed"):
        _remove_while_read(watch, tmp_path / "l/celle.png")
    watch.check((0, 1))
    with pytest.raises(ChangedError, match="celle"):
        watch.check_all()
    assert Watch(["a"], [[WatchedText("text")]]).check_all() is None  # type: ignore[func-returns-value]


def _remove_while_read(watch: Watch, file: Path) -> None:
    with watch.reading((2,)):
        file.unlink()
        raise StoreError("there is no such file")


def _replace_while_read(part: Any, file: Path) -> None:
    with read_whole(part, "it"):
        replace(file)


def test_a_names_file_is_watched(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("a\nb\nc\n")
    inputs = open_inputs(probs(), labels(), InputOptions(names=names))
    inputs.watch.check_all()
    names.write_text("a\nb\nd\ne\n")
    with pytest.raises(ChangedError, match=r"names\.txt changed"):
        inputs.watch.check_all()


def test_a_part_that_is_read_once(tmp_path: Path) -> None:
    parts = open_inputs(*label_folder(tmp_path)[0].values(), InputOptions()).watch.parts[2]
    with read_whole(parts[-1], "it"):
        pass
    with pytest.raises(ChangedError, match=r"celle\.png changed while it was read"):
        _replace_while_read(parts[-1], tmp_path / "l/celle.png")


@pytest.mark.parametrize("use", ["reduce", "convert", "inspect"])
def test_commands_that_write_stores(
    tmp_path: Path, use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left of a store whose data changed."""
    from uqeval.stores.zarr.array import ZarrArray

    save(tmp_path / "p.zarr", {"probs": probs(), "labels": labels()}, {"names": NAMES})
    read = ZarrArray.read

    def changing(self: ZarrArray, region: Any) -> Any:
        replace(tmp_path / "p.zarr/probs/c/1/0/0/0/0")
        return read(self, region)

    monkeypatch.setattr(ZarrArray, "read", changing)
    before = sorted(tmp_path.iterdir())
    if use == "inspect":
        found = inspect(tmp_path / "p.zarr", full=True)
        assert any("(item bonn) changed" in text for text in found.problems)
        return
    with pytest.raises(ChangedError, match=r"\(item bonn\) changed"):
        if use == "reduce":
            inputs = open_inputs(tmp_path / "p.zarr", None, InputOptions())
            write_maps(inputs, tmp_path / "m.zarr")
        else:
            convert(tmp_path / "p.zarr", tmp_path / "m.zarr")
    assert sorted(tmp_path.iterdir()) == before


def test_a_gallery_says_that_its_data_are_others(tmp_path: Path) -> None:
    given, metrics, name = label_folder(tmp_path)
    report = uqeval.evaluate(metrics=metrics, **given)

    def gallery() -> Any:
        return open_gallery(report, *given.values(), None, InputOptions())

    found = gallery()
    assert found.note == "" and found.pictures(2)
    shutil.copy(tmp_path / "l/bonn.png", tmp_path / name)
    with pytest.raises(ChangedError, match="item celle"):
        found.pictures(2)
    assert str(tmp_path / "l") in gallery().note and "p.zarr" not in gallery().note


def test_one_look_sees_each_file_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with one_look(), one_look():
        before = file_state(path)
        path.write_bytes(b"newer")
        assert file_state(path) == before
    assert file_state(path) != before
    with one_look():
        assert file_state(path) != before


def _tables(folder: Path) -> dict[str, Any]:
    """Write small inputs and the files that options name; return the arguments of a run."""
    rng = np.random.default_rng(0)
    names = [f"i{k}" for k in range(6)]
    chances = rng.dirichlet([1.0] * 3, (6, 8, 8)).transpose(0, 3, 1, 2).astype(np.float32)
    save(folder / "s.zarr", {"probs": chances, "labels": chances.argmax(1)}, {"names": names})
    (folder / "fit.txt").write_text("i0\ni1\ni2\n")
    (folder / "items.csv").write_text(
        "name,sky\n" + "".join(f"{n},{n in names[:3]}\n" for n in names)
    )
    fit = {"fit_on": str(folder / "fit.txt")}
    return {
        "predictions": folder / "s.zarr", "slices": folder / "items.csv", "workers": 1,
        "metrics": {"calibration": fit, "conformal": fit | {"alpha": 0.4}},
        "states": folder / "r.states.zip", "map_cache": folder / "cache",
    }  # fmt: skip


@pytest.mark.parametrize("file", ["fit.txt", "items.csv"])
@pytest.mark.parametrize("is_warm", [False, True])
@pytest.mark.parametrize("batch", [0, 7])
def test_a_file_of_an_option_that_changes_ends_the_run(
    file: str, is_warm: bool, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fit reads the names again, and slices read the table after the last pass."""
    arguments = _tables(tmp_path)
    if is_warm:
        uqeval.evaluate(**arguments | {"states": None})
    read, batches = Scratch.read, iter(range(1000))

    def change_and_read(*given: Any) -> Any:
        if next(batches) == batch:
            lines = (tmp_path / file).read_text().splitlines()
            (tmp_path / "new").write_text("\n".join([lines[0], *lines[:0:-1]]))
            (tmp_path / "new").rename(tmp_path / file)
        return read(*given)

    with monkeypatch.context() as changing:
        changing.setattr(Scratch, "read", change_and_read)
        with pytest.raises(ChangedError, match=f"{file} changed after this run had begun"):
            uqeval.evaluate(**arguments)
    assert next(batches) > batch
    assert not (tmp_path / "r.states.zip").exists()
    assert uqeval.evaluate(**arguments).results
