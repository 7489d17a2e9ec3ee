"""The same maps on every route: any chunking, dtype, order of axes, number of stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scenes import (
    ALL_MAPS,
    SINGLE,
    Chunked,
    all_same,
    labels,
    opened,
    quantized,
    read_maps,
    read_stack,
    softmax,
    zarr_array,
    zarr_group,
)

from uqeval.errors import StoreError, UsageError
from uqeval.maps.reduction import kernel_view, reduce_array

DTYPES = ["f2", "f4", "f8", "u1", "u2"]
N, T, C, H, W = 3, 4, 3, 5, 6


def store(
    folder: Path, p: Any, dtype: str, chunks: Any = None, name: str = "p", **more: Any
) -> Path:
    """Probabilities as a group with `probs` of a dtype, integers with their scale."""
    if dtype.startswith("u"):
        data = quantized(p, dtype)
        more["attributes"] = {"scale": 1 / np.iinfo(dtype).max}
    else:
        data = p.astype(dtype)
    return zarr_group(folder / name, {"probs": (data, {"chunks": chunks, **more})})


def meant(p: Any, dtype: str) -> Any:
    """The float64 probabilities that a store of `dtype` holds."""
    if dtype.startswith("u"):
        return quantized(p, dtype) * (1 / np.iinfo(dtype).max)
    return p.astype(dtype).astype(np.float64)


def close(found: list[Any], p: Any, truth: Any = None, atol: float = 1e-6) -> None:
    """Asserts maps near the oracle's."""
    for i, maps in enumerate(found):
        expected = naive.maps(p[i], None if truth is None else truth[i])
        for name, values in maps.items():
            if name in ("label", "label_probability", "label_rank", "brier"):
                continue
            np.testing.assert_allclose(values, expected[name], rtol=0, atol=atol, err_msg=name)


# Chunks


@given(st.data())
def test_any_chunking_gives_the_same_bits(data: st.DataObject) -> None:
    shape = [data.draw(st.integers(1, n)) for n in (3, 5, 4, 6, 7)]
    shape[2] += 1  # at least two classes
    chunks = [data.draw(st.integers(1, n + 1)) for n in shape]
    dtype = data.draw(st.sampled_from(DTYPES))
    order = data.draw(st.permutations(range(5)))
    p = softmax(data.draw(st.integers(0, 999)), *shape, dtype="f8")
    scale = 1 / np.iinfo(dtype).max if dtype.startswith("u") else None
    values = quantized(p, dtype) if scale else p.astype(dtype)
    truth = labels(1, shape[0], *shape[3:], classes=shape[2])
    chunked = Chunked(
        values.transpose(order),
        [chunks[k] for k in order],
        [("item", "sample", "class", "y", "x")[k] for k in order],
        scale,
    )
    whole = Chunked(values, scale=scale)
    all_same(read_stack(chunked, truth=truth), read_stack(whole, truth=truth))
    assert chunked.every_chunk_once()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chunks", [None, (1, 1, 1, 2, 3), (2, 3, 2, 5, 6)])
def test_maps_are_those_of_the_oracle(tmp_path: Path, dtype: str, chunks: Any) -> None:
    p = softmax(0, N, T, C, H, W, dtype="f8")
    truth = labels(0, N, H, W, classes=C)
    found = read_maps(store(tmp_path, p, dtype, chunks), truth)
    close(found, meant(p, dtype), truth)
    for maps, label in zip(found, truth, strict=True):
        np.testing.assert_array_equal(maps["label"], label)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_arrays_in_memory_and_files_give_the_same_bits(tmp_path: Path, dtype: str) -> None:
    p = softmax(1, N, T, C, H, W, dtype=dtype)
    expected = read_maps(p)
    np.save(tmp_path / "p.npy", p)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(p))
    np.savez(tmp_path / "p.npz", probs=p)
    for route in ("p.npy", "fortran.npy", "p.npz"):
        all_same(read_maps(tmp_path / route), expected)
    all_same(read_maps(store(tmp_path, p, dtype, (2, 2, 2, 2, 2))), expected)
    alone = [
        {"prediction" if k == "predictions" else k: v for k, v in reduce_array(item).items()}
        for item in p
    ]
    all_same(alone, expected)


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8"])
def test_the_other_order_of_bytes(tmp_path: Path, dtype: str) -> None:
    p = softmax(1, N, T, C, H, W, dtype=dtype[1:])
    np.save(tmp_path / "p.npy", p.astype(dtype))
    all_same(read_maps(tmp_path / "p.npy"), read_maps(p))


def test_images_of_several_blocks(tmp_path: Path) -> None:
    p = softmax(2, 1, 2, 2, 50, 51, dtype="f2")
    found = read_maps(store(tmp_path, p, "f2", (1, 1, 2, 17, 20)))
    all_same(found, read_maps(p))
    entropy = found[0]["entropy"]
    for y, x in ((0, 0), (40, 7), (40, 8), (49, 50)):
        assert entropy[y, x] == pytest.approx(naive.pixel(p[0, :, :, y, x])["entropy"], abs=1e-6)


# Axes


@pytest.mark.parametrize(
    "axes",
    [
        ("item", "sample", "y", "x", "class"),
        ("image", "height", "width", "channel", "member"),
        ("x", "y", "class", "sample", "item"),
    ],
)
def test_any_order_of_named_axes(tmp_path: Path, axes: tuple[str, ...]) -> None:
    from uqeval.stores.axis_names import canonical_axes

    p = softmax(3, N, T, C, H, W, dtype="f2")
    stored = ("item", "sample", "class", "y", "x")
    order = [stored.index(axis) for axis in canonical_axes(axes, "here")]
    chunks = tuple((2, 2, 2, 3, 4)[k] for k in order)
    data = p.transpose(order)
    path = store(tmp_path, data, "f2", chunks, dimension_names=axes)
    all_same(read_maps(path), read_maps(p))


def test_one_sample_without_an_axis(tmp_path: Path) -> None:
    p = softmax(4, N, C, H, W, dtype="f4")
    found = read_maps(store(tmp_path, p, "f4", (1, 2, 3, 3)), wanted=SINGLE)
    all_same(found, read_maps(p[:, None], wanted=SINGLE))
    close(found, p[:, None])
    for name in ("mutual_information", "std", "variation_ratio"):
        with pytest.raises(UsageError, match=f"one sample.*{name} is undefined"):
            read_maps(p, wanted=[name])


def test_items_of_different_sizes(tmp_path: Path) -> None:
    sizes = {"b": (4, 5), "a": (7, 3)}
    root = zarr.create_group(str(tmp_path / "s"), attributes={"names": list(sizes)})
    stacks = {}
    for i, (name, size) in enumerate(sizes.items()):
        stacks[name] = softmax(i, T, C, *size, dtype="f2")
        root.create_group(f"items/{name}")
        zarr_array(tmp_path / "s" / "items" / name / "probs", stacks[name], (2, 1, 3, 2))
    found = read_maps(tmp_path / "s")
    all_same(found, [read_maps(stacks[name][None])[0] for name in sizes])
    assert [maps["entropy"].shape for maps in found] == list(sizes.values())


@pytest.mark.parametrize("limit", [1, 2, 3, 9])
def test_a_limit_reads_the_first_items(tmp_path: Path, limit: int) -> None:
    p = softmax(5, N, T, C, H, W, dtype="f2")
    path = store(tmp_path, p, "f2", (2, T, C, H, W))
    all_same(read_maps(path, limit=limit), read_maps(p)[:limit])


# Logits


def soft(z: Any, axis: int) -> Any:
    e = np.exp(z.astype(np.float64) - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@given(st.data())
def test_logits_in_any_chunks(data: st.DataObject) -> None:
    shape = (2, 3, data.draw(st.integers(1, 4)), 4, 3)
    dtype = data.draw(st.sampled_from(["f2", "f4", "f8"]))
    z = (8 * np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=shape)).astype(dtype)
    chunked = Chunked(z, [data.draw(st.integers(1, n)) for n in shape])
    all_same(read_stack(chunked, kind="logits"), read_stack(Chunked(z), kind="logits"))
    assert chunked.every_chunk_once()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_logits_are_softmaxed(tmp_path: Path, dtype: str) -> None:
    z = (3 * np.random.default_rng(0).normal(size=(N, T, C, H, W))).astype(dtype)
    z[0, :, :, 0, 0] = [300, -300, 0]
    path = zarr_group(tmp_path / "s", {"logits": z})
    close(read_maps(path), soft(z, 2))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_one_logit_is_a_sigmoid(tmp_path: Path, dtype: str) -> None:
    z = (3 * np.random.default_rng(0).normal(size=(N, T, 1, H, W))).astype(dtype)
    z[0, :, :, 0, :2] = [1000, -1000]  # neither overflows nor warns
    path = zarr_group(tmp_path / "s", {"logits": z})
    found = read_maps(path)
    close(found, soft(np.concatenate([0 * z, z], 2), 2))
    assert found[0]["prediction"][0, :2].tolist() == [1, 0]
    assert opened(path).classes == 2


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_probability_is_the_foreground(tmp_path: Path, dtype: str) -> None:
    p = np.random.default_rng(0).random((N, T, 1, H, W))
    p[0, :, 0, 0, :2] = [0, 1]
    found = read_maps(store(tmp_path, p, dtype, (1, 3, 1, 2, 2)))
    q = meant(p, dtype)
    close(found, np.concatenate([1 - q, q], 2))
    assert found[0]["prediction"][0, :2].tolist() == [0, 1]
    assert found[0]["entropy"][0, :2].tolist() == [0, 0]


@pytest.mark.parametrize(("dtype", "one"), [("u1", 255), ("u1", 100), ("u2", 65535)])
def test_whole_numbers_of_the_foreground_are_exact(tmp_path: Path, dtype: str, one: int) -> None:
    """Sums of samples tie as those of both classes do."""
    p = np.random.default_rng(1).integers(0, one + 1, (N, 4, 1, 16, 16))
    p[:, 1::2] = one - p[:, ::2]  # the sum of all four is half of the largest
    p[1:, 0] = np.where(p[1:, 0] < one, p[1:, 0] + 1, 0)
    p = p.astype(dtype)
    scale = {"attributes": {"scale": 1 / one}}
    both = np.concatenate([one - p, p], 2).astype(dtype)
    paths = [zarr_group(tmp_path / k, {"probs": (v, scale)}) for k, v in (("a", p), ("b", both))]
    all_same(*map(read_maps, paths))
    assert not read_maps(paths[0])[0]["prediction"][0].any()  # a tie: the lowest id


@pytest.mark.parametrize("scale", [1 / 256, 1 / 200.5, 0.004])
def test_scales_of_the_foreground_without_a_whole_one(tmp_path: Path, scale: float) -> None:
    q = np.random.default_rng(1).integers(0, 200, (N, T, 1, H, W)).astype("u1")
    path = zarr_group(tmp_path / "s", {"probs": (q, {"attributes": {"scale": scale}})})
    close(read_maps(path), np.concatenate([1 - q * scale, q * scale], 2))


def test_quantized_logits_are_scaled(tmp_path: Path) -> None:
    z = np.random.default_rng(0).integers(0, 256, (N, T, C, H, W)).astype("u1")
    options = {"attributes": {"scale": 1 / 32}}
    path = zarr_group(tmp_path / "s", {"logits": (z, options)})
    close(read_maps(path), soft(z / 32, 2))


# Ensembles


@given(st.data())
def test_an_ensemble_is_one_stack(data: st.DataObject) -> None:
    dtypes = data.draw(st.lists(st.sampled_from(["f2", "f4", "f8"]), min_size=1, max_size=3))
    shape = (2, 2, 3, 5, 4)
    members = [softmax(i, *shape, dtype=d) for i, d in enumerate(dtypes)]
    joint = np.concatenate([m.astype(np.result_type(*dtypes)) for m in members], axis=1)
    chunked = [Chunked(m, [data.draw(st.integers(1, n)) for n in shape]) for m in members]
    all_same(read_stack(*chunked), read_stack(Chunked(joint), sum_tolerance=2e-3))
    assert all(member.every_chunk_once() for member in chunked)


def test_an_ensemble_of_files(tmp_path: Path) -> None:
    members = [softmax(i, N, 2, C, H, W, dtype="f2") for i in range(2)]
    np.save(tmp_path / "b.npy", members[1])
    paths = [store(tmp_path, members[0], "f2", (1, 1, 2, 3, 4)), tmp_path / "b.npy"]
    all_same(read_maps(paths), read_maps(np.concatenate(members, 1)))


@pytest.mark.parametrize(
    ("first", "second"), [("u1", "u2"), ("u2", "f4"), ("f2", "u1"), ("u1", "f8")]
)
def test_members_of_different_scales(tmp_path: Path, first: str, second: str) -> None:
    p = softmax(0, N, 4, C, H, W, dtype="f8")
    paths = [
        store(tmp_path, p[:, :1], first, name="a"),
        store(tmp_path, p[:, 1:], second, name="b"),
    ]
    close(read_maps(paths), np.concatenate([meant(p[:, :1], first), meant(p[:, 1:], second)], 1))


def test_one_dtype_with_two_scales(tmp_path: Path) -> None:
    p = softmax(0, N, 2, C, H, W, dtype="f8")
    paths = []
    for i, levels in enumerate((255, 200)):
        data = np.round(p[:, i : i + 1] * levels).astype("u1")
        options = {"attributes": {"scale": 1 / levels}}
        paths.append(zarr_group(tmp_path / str(i), {"probs": (data, options)}))
    expected = [np.round(p[:, i : i + 1] * n) / n for i, n in enumerate((255, 200))]
    close(read_maps(paths), np.concatenate(expected, 1))


@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("size", [1, 4])
def test_items_of_one_dtype_with_scales_of_their_own(tmp_path: Path, kind: str, size: int) -> None:
    """Small items are decoded together, but only those of one scale."""
    levels = (255, 255, 200, 100)
    p = softmax(0, len(levels), T, C, size, size, dtype="f8")
    values = p if kind == "probs" else p[:, :, ::-1] ** 2  # which do not sum to 1
    data = [np.round(own * n).astype("u1") for own, n in zip(values, levels, strict=True)]
    expected = np.stack([own / n for own, n in zip(data, levels, strict=True)])
    path = tmp_path / "s"
    zarr_group(path, {})
    for k, (own, n) in enumerate(zip(data, levels, strict=True)):
        zarr_group(path / f"items/{k}", {kind: (own, {"attributes": {"scale": 1 / n}})})
    close(read_maps(path), expected if kind == "probs" else soft(expected, 2))


def test_labels_of_two_dtypes(tmp_path: Path) -> None:
    """Labels of small items are read together; int64 and uint64 have no common integers."""
    p = softmax(0, 2, T, C, 2, 3, dtype="f4")
    truth = [labels(k, 2, 3, classes=C).astype(dtype) for k, dtype in enumerate(("i8", "u8"))]
    path = tmp_path / "s"
    zarr_group(path, {})
    for k, (probs, ids) in enumerate(zip(p, truth, strict=True)):
        zarr_group(path / f"items/{k}", {"probs": probs, "labels": ids})
    for maps, own in zip(read_maps(path, wanted=["label"]), truth, strict=True):
        np.testing.assert_array_equal(maps["label"], own)


def test_members_that_do_not_fit(tmp_path: Path) -> None:
    p = softmax(0, 2, 2, 3, 4, 4, dtype="f2")
    first = store(tmp_path, p, "f2", name="a")
    for i, other in enumerate((p[:1], p[:, :, :2], p[..., :3])):
        with pytest.raises(StoreError, match="members of one ensemble"):
            read_maps([first, store(tmp_path, other, "f2", name=f"b{i}")])
    with pytest.raises(StoreError, match="must have the same kind"):
        read_maps([first, zarr_group(tmp_path / "z", {"logits": p})])


# What is asked for


def test_only_what_is_wanted_is_given(tmp_path: Path) -> None:
    p = softmax(0, 1, 2, C, H, W)
    for name in ALL_MAPS:
        assert set(read_maps(p, wanted=[name])[0]) == {name, "prediction"}
    whole = read_maps(p)[0]
    for name in ALL_MAPS:
        assert read_maps(p, wanted=[name])[0][name].tobytes() == whole[name].tobytes()


def test_maps_that_are_stored_beside_samples(tmp_path: Path) -> None:
    p = softmax(0, N, 2, C, H, W)
    mine = np.random.default_rng(0).normal(size=(N, H, W)).astype("f8")
    mine[0, 0, 0] = -0.0
    path = zarr_group(tmp_path / "s", {"probs": p, "mine": mine})
    found = read_maps(path, wanted=["mine", "entropy"])
    np.testing.assert_array_equal([m["mine"] for m in found], mine.astype("f4"))
    assert not np.signbit(found[0]["mine"][0, 0])
    with pytest.raises(StoreError, match=r"no map 'other'. It holds mine; samples give .*entropy"):
        read_maps(path, wanted=["other"])


@pytest.mark.parametrize("given", ["none", "entropy"])
def test_confidence_and_entropy_follow_from_stored_mean_probabilities(
    tmp_path: Path, given: str
) -> None:
    """Without labels, too; the same bits as from a stack of one sample."""
    p = softmax(0, 2, 1, C, 45, 50)
    arrays = {"mean_probs": p[:, 0], "predictions": p[:, 0].argmax(1).astype("u1")}
    own = {"entropy": np.full((2, 45, 50), 0.5, "f4")} if given == "entropy" else {}
    path = zarr_group(tmp_path / "m", arrays | own)
    whole = read_maps(p, wanted=["confidence", "entropy"])
    for wanted in (["confidence", "entropy"], ["confidence"], ["entropy"]):
        for i, found in enumerate(read_maps(path, wanted=wanted)):
            assert found.keys() == {*wanted, "prediction"}
            for name in wanted:
                expected = own[name][i] if name in own else whole[i][name]
                assert found[name].tobytes() == expected.tobytes()
                if name not in own:
                    np.testing.assert_allclose(found[name], naive.maps(p[i])[name], atol=3e-7)


@pytest.mark.parametrize("given", ["all", "brier"])
def test_maps_of_labels_follow_from_stored_mean_probabilities(tmp_path: Path, given: str) -> None:
    """Of the last block, which is not full, too; each of them alone, or beside a stored one."""
    p, truth = softmax(0, 2, 1, C, 45, 50), labels(1, 2, 45, 50, classes=C)
    mean = p[:, 0]
    arrays = {"mean_probs": mean, "predictions": mean.argmax(1).astype("u1")}
    stored_brier = np.full((2, 45, 50), 0.5, "f4")
    path = zarr_group(tmp_path / "m", arrays | ({"brier": stored_brier} if given != "all" else {}))
    for wanted in (["label_probability", "label_rank", "brier"], ["label_probability"]):
        for i, found in enumerate(read_maps(path, truth, wanted)):
            assert found.keys() == {*wanted, "prediction"}
            expected, known = naive.maps(p[i], truth[i]), truth[i] != 255
            for name in wanted:
                own = stored_brier[i] if (name, given) == ("brier", "brier") else expected[name]
                np.testing.assert_allclose(found[name][known], own[known], rtol=0, atol=3e-7)
                assert name == given or not found[name][~known].any()


def test_predicted_ids_of_bool_are_0_and_1(tmp_path: Path) -> None:
    ids = labels(0, N, H, W, classes=2) == 1
    values = {"predictions": ids, "u": np.zeros(ids.shape, "f4")}
    found = read_maps(zarr_group(tmp_path / "s", values, class_names=["a", "b"]), wanted=["u"])
    np.testing.assert_array_equal([maps["prediction"] for maps in found], ids)


def test_what_depends_on_labels_needs_them() -> None:
    with pytest.raises(UsageError, match="labels"):
        read_maps(softmax(0, 1, 2, C, H, W), wanted=["label_rank"])


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_kernels_get_read_only_tiles(dtype: str) -> None:
    """So that they are compiled once, for arrays in memory and for memory-mapped files."""
    values = np.zeros((1, 2, 3, 4), dtype)
    assert not kernel_view(values).flags.writeable
    assert values.flags.writeable
