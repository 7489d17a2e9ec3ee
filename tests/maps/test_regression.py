"""Maps of predicted numbers: members, samples, masks, every layout, and bad values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_regression as naive
import numpy as np
import pytest
from command import refused
from number_stores import NAMES, SHAPE, evaluated, numbers, save
from scenes import all_same, opened, zarr_group

import uqeval
from uqeval.errors import DataError, StoreError, UqevalError, UsageError
from uqeval.maps.names import ERROR_KEY

MAPS = ("label", "mean", "target", "error", "sigma", "lambda")


def read(predictions: Any, target: Any = None, wanted: Any = MAPS, **options: Any) -> list[Any]:
    source = opened(predictions, target, **options)
    source.want(wanted)
    assert all(source.batch_bytes(batch) > 0 for batch in source.batches())
    return [maps for batch in source.batches() for maps in source.read(batch)]


def maps_refused(kind: type[UqevalError], words: str, *given: Any, **options: Any) -> None:
    refused(lambda: read(*given, **options), *words.split("|"), error=kind)


def test_maps_of_one_member(tmp_path: Path) -> None:
    arrays = numbers(1)
    arrays["std"][0, :3] = 0
    arrays["mean"][0, 0] = arrays["target"][0, 0]
    known = evaluated(arrays)
    for i, maps in enumerate(read(save(tmp_path / "r.npz", arrays))):
        assert sorted(maps) == sorted(MAPS)
        np.testing.assert_array_equal(maps["label"], np.where(known[i], 0, 255))
        for name in MAPS[1:]:
            assert maps[name].dtype == ("f8" if name == "error" else "f4")
            assert (maps[name][~known[i]] == 0).all()
        for at in np.argwhere(known[i]):
            y, x = at
            mean, target = float(arrays["mean"][i, y, x]), float(arrays["target"][i, y, x])
            assert maps["error"][y, x] == abs(mean - target)
            assert maps["sigma"][y, x] == arrays["std"][i, y, x]
            expected = naive.ratio(float(maps["error"][y, x]), float(maps["sigma"][y, x]))
            assert maps["lambda"][y, x] == expected


@pytest.mark.parametrize(("kind", "dtype"), [("std", "f4"), ("std", "f8"), ("variance", "f4")])
def test_maps_are_float32_where_that_holds_what_is_stored(
    tmp_path: Path, kind: str, dtype: str
) -> None:
    arrays = numbers(1)
    arrays = {name: v if name == "valid" else v.astype(dtype) for name, v in arrays.items()}
    arrays[kind] = arrays.pop("std")
    source = opened(save(tmp_path / "r.npz", arrays))
    names = ("label", "mean", "target", "error", "sigma", ERROR_KEY)
    source.want(names)
    found = [maps for batch in source.batches() for maps in source.read(batch)]
    assert source.maps_bytes() == sum(v.nbytes for maps in found for v in maps.values())
    for maps in found:
        stored = {"mean": dtype, "target": dtype, "sigma": dtype if kind == "std" else "f8"}
        expected = stored | {"label": "u1", "error": "f8", ERROR_KEY: "f4"}
        assert {name: values.dtype for name, values in maps.items()} == expected
        np.testing.assert_array_equal(maps[ERROR_KEY], maps["error"].astype("f4"))
    # The rank keys alone are the same numbers.
    source = opened(tmp_path / "r.npz")
    source.want([ERROR_KEY])
    for batch in source.batches():
        for item, maps in zip(batch, source.read(batch), strict=True):
            np.testing.assert_array_equal(maps[ERROR_KEY], found[item][ERROR_KEY])


def test_numbers_are_read_at_any_byte(tmp_path: Path) -> None:
    arrays = numbers(1)
    for shift in range(4):  # a name more moves the next members by a byte
        path = save(tmp_path / f"{shift}.npz", {"n" * (shift + 1): np.zeros(1, "u1")} | arrays)
        all_same(read(path), read(save(tmp_path / "r.npz", arrays)))


def test_a_mapped_source_gives_what_a_pass_needs(tmp_path: Path) -> None:
    path = save(tmp_path / "r.npz", numbers(1))
    whole = read(path)
    source = opened(path)
    source.want(MAPS)
    assert source.mapped
    for names in (["error", "label"], ["target"], MAPS):
        source.need(names)
        for batch in source.batches():
            for item, maps in zip(batch, source.read(batch), strict=True):
                assert set(maps) == {"label", *names}
                all_same([maps], [{name: whole[item][name] for name in maps}])
    members = numbers(1)
    members["samples"] = np.stack([members.pop("mean"), members.pop("std")], axis=1)
    source = opened(save(tmp_path / "m.npz", members))
    source.want(MAPS)
    source.need(["error"])  # its maps are kept for later passes, which need others
    assert set(source.read(source.batches()[0])[0]) == set(MAPS)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("kind", ["std", "variance", "samples", "mean"])
def test_members(tmp_path: Path, dtype: str, kind: str) -> None:
    arrays = numbers(2, members=3)
    known = evaluated(arrays)
    means, stds = arrays["mean"].astype(dtype), arrays["std"].astype(dtype)
    given = {"target": arrays["target"], "valid": arrays["valid"]}
    given["samples" if kind == "samples" else "mean"] = means
    if kind in ("std", "variance"):
        given[kind] = stds
    spreads = {"std": stds.astype("f8"), "variance": np.sqrt(stds.astype("f8"))}.get(kind)
    for i, maps in enumerate(read(save(tmp_path / "r.npz", given))):
        for y, x in np.argwhere(known[i]):
            pairs = [
                (float(means[i, m, y, x]), float(spreads[i, m, y, x]) if spreads is not None else 0)
                for m in range(3)
            ]
            mu, sigma = naive.mixture(pairs)
            assert maps["mean"][y, x] == pytest.approx(mu, rel=1e-15)
            assert maps["sigma"][y, x] == pytest.approx(sigma, rel=1e-13)


def test_members_with_other_arrays_are_refused_with_a_way_out(tmp_path: Path) -> None:
    arrays = numbers(2)
    other = {n: v for n, v in arrays.items() if n != "std"} | {"variance": arrays["std"] ** 2}
    stores = [save(tmp_path / "a.npz", arrays), save(tmp_path / "b.npz", other)]
    words = "a.npz: mean+std|b.npz: mean+variance|`std` in all of them (in place of variance, sqrt"
    maps_refused(StoreError, words, stores)


def test_any_layout_and_several_stores_give_the_same_bits(tmp_path: Path) -> None:
    arrays = numbers(3, members=4)
    expected = read(save(tmp_path / "r.npz", arrays))
    wanted = {k: v for k, v in arrays.items() if k in ("target", "valid")}
    for i, (n, m, h, w) in enumerate([(1, 1, 12, 16), (2, 3, 5, 16), (3, 4, 12, 3)]):
        one = {k: (v, {"chunks": (n, m, h, w)}) for k, v in arrays.items() if v.ndim == 4}
        path = zarr_group(tmp_path / f"{i}.zarr", one | wanted)
        all_same(read(path), expected)
    apart = [
        zarr_group(tmp_path / f"m{j}.zarr", {k: arrays[k][:, 2 * j : 2 * j + 2]
                   for k in ("mean", "std")} | (wanted if j == 0 else {}))
        for j in range(2)
    ]  # fmt: skip
    all_same(read(apart), expected)
    single = [
        zarr_group(tmp_path / f"s{j}.zarr", {k: arrays[k][:, j] for k in ("mean", "std")})
        for j in range(4)
    ]
    target = zarr_group(tmp_path / "t.zarr", wanted)
    all_same(read(single, target), expected)


def test_identical_samples_have_no_spread(tmp_path: Path) -> None:
    arrays = numbers(4)
    samples = np.repeat(arrays["mean"][:, None] + np.float32(1e6), 7, axis=1)
    path = save(tmp_path / "r.npz", {"samples": samples, "target": arrays["target"]})
    assert all((maps["sigma"] == 0).all() for maps in read(path))


def test_samples_that_are_no_numbers(tmp_path: Path) -> None:
    arrays = numbers(5, members=5)
    samples, known = arrays["mean"], evaluated(arrays)
    samples[~known[:, None].repeat(5, axis=1)] = np.nan  # nobody looks there
    given = {"samples": samples, "target": arrays["target"], "valid": arrays["valid"]}
    expected = read(save(tmp_path / "clean.npz", given))
    all_same(read(tmp_path / "clean.npz", nan_samples="skip"), expected)
    y, x = (int(k) for k in np.argwhere(known[1])[0])
    samples[1, 2, y, x] = np.nan
    path = save(tmp_path / "nan.npz", given)
    maps_refused(
        DataError, f"nan.npz[samples], item 1: 1 of|row {y}, column {x} of member 2|skip", path
    )
    found = read(path, nan_samples="skip")[1]
    kept = np.delete(samples[1, :, y, x].astype("f8"), 2)
    assert found["mean"][y, x] == pytest.approx(kept.astype(float).mean(), rel=1e-15)
    assert found["sigma"][y, x] == pytest.approx(kept.std(), rel=1.2e-7)
    samples[1, :, y, x] = np.nan
    path = save(tmp_path / "all.npz", given)
    maps_refused(DataError, f"no sample that is a number, first at row {y}, column {x}", path,
            nan_samples="skip")  # fmt: skip
    samples[1, :, y, x] = np.inf
    path = save(tmp_path / "inf.npz", given)
    maps_refused(DataError, "NaN or infinite", path, nan_samples="skip")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("log_variance", 200.0, "1 evaluated pixels are beyond float32"),
        ("log_variance", 2000.0, "1 of 180 evaluated values are NaN, or their σ is infinite"),
        ("log_std", 100.0, "1 evaluated pixels are beyond float32"),
        ("variance", 1e80, "1 evaluated pixels are beyond float32"),
    ],
)
@pytest.mark.parametrize("members", [1, 2])
def test_a_spread_that_overflows_is_named(
    tmp_path: Path, name: str, value: float, says: str, members: int
) -> None:
    spread = np.ones((1, members, 12, 15))
    spread[0, -1, 3, 4] = value
    mean, target = np.zeros(spread.shape), np.zeros((1, 12, 15))
    path = save(tmp_path / "large.npz", {"mean": mean, name: spread, "target": target})
    says = says.replace("180", str(180 * members))
    message = refused(lambda: uqeval.evaluate(path, None, "regression"), f"[{name}], item 0", says)
    plain = {"log_variance": "variance", "log_std": "std"}.get(name)
    assert (f"call the array {plain}." in message) == (plain is not None)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("mean", np.nan, "[mean], item 2: 1 of|NaN or infinite"),
        ("std", np.nan, "[std], item 2: 1 of|NaN or infinite"),
        ("std", np.inf, "[std], item 2"),
        (
            "std",
            -1.0,
            "[std], item 2|are negative, the first is -1 at|standard deviation is not negative",
        ),
        ("std", -1.0, "call the array log_std, or log_variance"),
        ("std", 1e300, "[std], item 2: 1 evaluated pixels are beyond float32"),
        ("mean", 1e300, "[mean], item 2: 1 evaluated pixels are beyond float32"),
        ("energy", -1.0, "[energy], item 2: 1 evaluated values are negative, the first is -1 at"),
        ("energy", np.nan, "[energy], item 2: 1 evaluated values are NaN"),
    ],
)
def test_bad_values_where_evaluated(
    tmp_path: Path, name: str, value: float, words: str
) -> None:  # fmt: skip
    arrays = {k: v.astype("f8") if v.dtype != bool else v for k, v in numbers(6).items()}
    arrays["energy"] = np.ones(SHAPE)
    known = evaluated(arrays)
    out = tuple(np.argwhere(~known)[-1])
    arrays[name][out] = value
    wanted = (*MAPS, "lambda:energy")
    read(save(tmp_path / "r.npz", arrays), wanted=wanted)  # nobody looks there
    y, x = (int(k) for k in np.argwhere(known[2])[7])
    arrays[name][2, y, x] = value
    maps_refused(DataError, f"{words}|row {y}, column {x}", save(tmp_path / "b.npz", arrays),
            wanted=wanted)  # fmt: skip


def test_a_table_is_an_image_of_one_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    mean, std, target = rng.normal(size=(3, 442))
    std = abs(std)
    (maps,) = read(save(tmp_path / "t.npz", {"mean": mean, "std": std, "target": target}))
    assert maps["error"].shape == (1, 442)
    np.testing.assert_array_equal(maps["error"][0], abs(mean - target))
    np.save(tmp_path / "y.npy", target)
    path = save(tmp_path / "p.npz", {"mean": mean, "std": std})
    all_same(read(path, tmp_path / "y.npy"), [maps])
    samples = rng.normal(size=(5, 442))
    path = save(tmp_path / "s.npz", {"samples": samples, "target": target})
    (maps,) = read(path)
    np.testing.assert_allclose(maps["sigma"][0], samples.std(0), rtol=1e-6)


def test_one_image(tmp_path: Path) -> None:
    arrays = {k: v[0] for k, v in numbers(8).items()}
    expected = read(save(tmp_path / "i.npz", arrays))
    assert expected[0]["label"].shape == SHAPE[1:]
    np.save(tmp_path / "y.npy", arrays.pop("target"))
    all_same(read(save(tmp_path / "p.npz", arrays), tmp_path / "y.npy"), expected)


def test_masks_of_both_stores_have_to_agree(tmp_path: Path) -> None:
    arrays = numbers(9)
    other = np.random.default_rng(1).random(SHAPE) < 0.5
    path = save(tmp_path / "p.npz", {k: arrays[k] for k in ("mean", "std", "valid")})
    target = save(tmp_path / "t.npz", {"target": arrays["target"], "valid": other})
    for i, maps in enumerate(read(path, target)):
        np.testing.assert_array_equal(maps["label"] == 0, (evaluated(arrays) & other)[i])


def test_a_value_is_invalid_where_the_store_says_so(tmp_path: Path) -> None:
    arrays = numbers(10)
    arrays["target"][:, 0] = 0
    own = {k: arrays[k] for k in ("mean", "std")}
    plain = zarr_group(tmp_path / "0.zarr", own | {"target": arrays["target"]})
    assert (read(plain)[0]["label"][0] == 0).all()
    said = {"target": (arrays["target"], {"attributes": {"invalid": 0}})}
    assert (read(zarr_group(tmp_path / "1.zarr", own | said))[0]["label"][0] == 255).all()


def test_stores_that_do_not_fit(tmp_path: Path) -> None:
    arrays = numbers(11)
    mean, std, target = (arrays[k] for k in ("mean", "std", "target"))
    several = numbers(11, members=3)

    def made(**own: Any) -> Path:
        return save(tmp_path / f"{len(list(tmp_path.iterdir()))}.npz", own)

    maps_refused(UsageError, "has no target: it holds mean, std", made(mean=mean, std=std))
    maps_refused(
        StoreError, "no standard deviation|energy", made(mean=mean, target=target, energy=std)
    )
    maps_refused(StoreError, "no map 'energy'", made(mean=mean, std=std, target=target),
            wanted=("energy",))  # fmt: skip
    maps_refused(
        StoreError,
        "holds std and variance; expected only one",
        made(mean=mean, std=std, variance=std),
    )
    maps_refused(StoreError, "holds samples and mean", made(mean=mean, samples=several["mean"]))
    maps_refused(StoreError, "differ in members or size: item 0 has|(3, 12, 16) and (1, 12, 16)",
            made(mean=several["mean"], std=std))  # fmt: skip
    maps_refused(StoreError, "holds 2 targets", made(mean=mean, std=std), made(target=target[:2]))
    maps_refused(StoreError, "11×16 (height×width), the predictions are 12×16",
            made(mean=mean, std=std), made(target=target[:, 1:]))  # fmt: skip
    maps_refused(StoreError, "valid is 12×15", made(mean=mean, std=std),
            made(target=target, valid=arrays["valid"][:, :, 1:]))  # fmt: skip
    maps_refused(StoreError, "members of one ensemble", [made(mean=mean, std=std), made(mean=mean)])
    maps_refused(
        StoreError, "holds 2 items,", [made(mean=mean, std=std), made(mean=mean[:2], std=std[:2])]
    )
    maps_refused(StoreError, "has height, width (11, 16), but|has (12, 16)|agree",
            [made(mean=mean, std=std), made(mean=mean[:, 1:], std=std[:, 1:])])  # fmt: skip
    maps_refused(UsageError, "--nan-samples skip is for `samples`",
            made(mean=mean, std=std, target=target), nan_samples="skip")  # fmt: skip
    maps_refused(UsageError, "--nan-samples 'drop'", made(mean=mean), nan_samples="drop")
    for name, value in (("classes", 3), ("ignore_index", 0), ("sum_tolerance", 0.1)):
        maps_refused(UsageError, f"--{name.replace('_', '-')} is for classes", made(mean=mean),
                **{name: value})  # fmt: skip


def test_limit_and_names(tmp_path: Path) -> None:
    arrays = numbers(12)
    path = zarr_group(tmp_path / "r.zarr", arrays, names=NAMES)
    source = opened(path, limit=2)
    assert (source.names, source.items, source.samples, source.kind) == (
        ("aachen", "bonn"), 2, 1, "regression",
    )  # fmt: skip
    source.want(["error"])
    assert len([m for b in source.batches() for m in source.read(b)]) == 2
