"""The laws that every tally must obey, as functions of one tally, and each tally's slow oracle.

`EXAMPLES` is the table of tallies. `expected` computes a state by `naive` and plain loops. The laws
test that a tally merges, the oracle that it counts correctly.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import laws_annotators
import laws_calibration
import laws_conformal
import laws_divergence
import laws_ranked
import laws_recalibrated
import laws_regression
import laws_temporal
import laws_tracks
import naive
import numba
import numpy as np
import pytest
from scenes import item_maps
from uncertainties import ANYTHING, CONFIDENCE, ENTROPY

from uqeval import tallies
from uqeval.engine import counting
from uqeval.engine.strips import Strip
from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import CountedItems
from uqeval.tallies._values import RawMap, Uncertainty
from uqeval.tallies.error_sums import ErrorSums
from uqeval.tallies.item_errors import ItemErrors
from uqeval.tallies.patches import ItemPatchCounts, PatchCounts, Patches
from uqeval.tallies.ranks import Moments, Ranks
from uqeval.tallies.segmentation import AccuracyByUncertainty, ClassCounts
from uqeval.tallies.temporal import TrackCounts

State = dict[str, Any]
Maps = dict[str, Any]

BITS = Uncertainty("entropy", 2.0)
PATCHES = Patches(ENTROPY, 4, 2, 2)
SLIDING = Patches(ANYTHING, 4, 3, 2, "pad", "inaccurate", 2)

EXAMPLES: tuple[Tally, ...] = (
    ClassCounts(4),
    ClassCounts(300),
    Moments(ENTROPY, 4),
    Moments(CONFIDENCE, 4),
    Moments(Uncertainty("anything"), 300),
    AccuracyByUncertainty(ENTROPY, 4, (0.125, 0.25, 0.5)),
    AccuracyByUncertainty(BITS, 4, ()),
    Ranks(ENTROPY, 4),
    Ranks(ANYTHING, 4, bins=((0, 392192), (0, 131071 * 2))),
    Ranks(PATCHES, 4),
    Ranks(SLIDING, 4, by_category=True),
    Ranks(PATCHES, 4, by_category=True, bins=((0, 387072), (4, 387072), (4, 389120))),
    PatchCounts(PATCHES, (0.25,), ((0.0, 0.625),)),
    PatchCounts(SLIDING, (0.1,), ((-1.0, 1.0),), 0.75, ">=", ">="),
    PatchCounts(
        PATCHES,
        (0.1, 0.2, 0.25, 0.3, 0.4),
        ((0.0, 0.5), (0.0, 0.6), (0.1, 0.2), (0.0, 0.0), (0.0, 0.625)),
        0.5,
        ">=",
    ),
    PatchCounts(Patches(CONFIDENCE, 40, 2, 1), (0.25,), ((0.0, 0.5),)),
    ItemPatchCounts(PATCHES, "mean"),
    ItemPatchCounts(SLIDING, "percentile", 30.0, 0.25, ">=", ">"),
    ItemPatchCounts(PATCHES, "range", 0.5),
    ItemPatchCounts(PATCHES, "max-surplus"),
    ItemPatchCounts(PATCHES, "value", 0.3),
    *laws_annotators.EXAMPLES,
    *laws_calibration.EXAMPLES,
    *laws_conformal.EXAMPLES,
    *laws_conformal.OF_NUMBERS,
    *laws_divergence.EXAMPLES,
    *laws_ranked.EXAMPLES,
    *laws_recalibrated.EXAMPLES,
    *laws_regression.EXAMPLES,
    *laws_temporal.EXAMPLES,
    *laws_tracks.EXAMPLES,
)

SHAPES = [(7, 9), (1, 12), (12, 1), (1, 1), (8, 8)]


def classes_of(tally: Any) -> int:
    """How many classes a tally is for."""
    owner = getattr(tally, "patches", tally)
    return int(getattr(owner, "classes", 4))  # any number, if the tally has none


def all_tallies() -> set[type[Tally]]:
    """All tallies of all modules: those with an id."""
    modules = [import_module(m.name) for m in walk_packages(tallies.__path__, "uqeval.tallies.")]
    classes = {c for module in modules for c in vars(module).values() if isinstance(c, type)}
    return {c for c in classes if issubclass(c, Tally) and hasattr(c, "id")}


def items_for(tally: Tally) -> list[Maps]:
    """Items of several sizes; one is void, one holds a single class. No test may change them."""
    if type(tally) in laws_regression.ORACLES | laws_conformal.ORACLES_OF_NUMBERS:
        return number_items()
    if isinstance(tally, TrackCounts):
        return [laws_tracks.pair_maps(seed, tally.classes) for seed in range(5)]
    if type(tally) in laws_annotators.ORACLES:
        return annotated_items(classes_of(tally))
    return class_items(classes_of(tally), type(tally) in laws_temporal.ORACLES)


@cache
def annotated_items(classes: int) -> list[Maps]:
    """Items with labels of several annotators."""
    return laws_annotators.items(classes, SHAPES)


@cache
def number_items() -> list[Maps]:
    """Items of predicted numbers."""
    numbers = [laws_regression.number_maps(seed, *shape) for seed, shape in enumerate(SHAPES)]
    numbers[3] = laws_regression.number_maps(3, 1, 1, void=1.0)
    return numbers


@cache
def class_items(classes: int, temporal: bool) -> list[Maps]:
    """Items of predicted classes, or pairs of frames of such."""
    if temporal:
        pairs = [laws_temporal.pair_maps(i, *shape, classes) for i, shape in enumerate(SHAPES)]
        for name in ("label", "label_before"):
            pairs[3][name][...] = void_of(classes)
        return pairs
    items = [item_maps(seed, *shape, classes) for seed, shape in enumerate(SHAPES)]
    items[3]["label"][...] = void_of(classes)
    items[4]["label"][...] = 1
    return items


@lru_cache(1)
def states_for(tally: Tally) -> list[State]:
    """The state of each item, counted once for all laws. No law may change them."""
    return [tally.state_of(maps) for maps in items_for(tally)]


def folded(tally: Tally, order: Sequence[int] = range(len(SHAPES))) -> State:
    """The states of some items merged in order."""
    total = tally.empty()
    for i in order:
        tally.merge(total, states_for(tally)[i])
    return total


def copied(state: State) -> State:
    return {name: values.copy() for name, values in state.items()}


def fold(tally: Tally, items: Sequence[Maps]) -> State:
    """The item fold: each item's state merged in order."""
    total = tally.empty()
    for maps in items:
        tally.merge(total, tally.state_of(maps))
    return total


@cache
def other_bytes(tally: Tally, of_items: bool) -> bytes:
    """Saved states of another tally."""
    return tally.pack(fold(tally, items_for(tally)[:2]) if of_items else tally.empty())


def _bits(values: Any) -> Any:
    """Return the values' bits as whole numbers, without a copy."""
    return values.view(f"u{values.itemsize}")


def agree(tally: Tally, a: State, b: State, rel: float = 0.0) -> None:
    """Asserts equal states: integers exactly, sums of floats within `rel`."""
    assert list(a) == list(b) == list(tally.fields)
    for name, field in tally.fields.items():
        assert a[name].dtype == b[name].dtype == np.dtype(field.dtype)
        assert a[name].shape == b[name].shape == field.shape
        if rel and field.dtype.startswith("float") and field.merge == "sum":
            np.testing.assert_allclose(a[name], b[name], rtol=rel, atol=rel, err_msg=name)
        elif not np.array_equal(_bits(a[name]), _bits(b[name])):  # a tenth of the time of the next
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


# Laws -----------------------------------------------------------------------------------------


def empty_is_the_identity(tally: Tally) -> None:
    """Merging with the empty state changes nothing, on either side."""
    for state in states_for(tally):
        left, right = tally.empty(), copied(state)
        tally.merge(left, state)
        tally.merge(right, tally.empty())
        agree(tally, left, state)
        agree(tally, right, state)


def grouping_and_order_do_not_matter(tally: Tally) -> None:
    """Integers are the same under any grouping and order, sums of floats within 1e-12."""
    whole = folded(tally)
    for order in ([4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        agree(tally, folded(tally, order), whole, 1e-12)
    for cut in (1, 3):
        grouped = folded(tally, range(cut))
        tally.merge(grouped, folded(tally, range(cut, len(SHAPES))))
        agree(tally, grouped, whole, 1e-12)


def the_fold_of_saved_states_is_the_fold(tally: Tally) -> None:
    """Folding states that were saved and loaded gives the same bits."""
    total = tally.empty()
    for state in states_for(tally):
        tally.merge(total, tally.unpack(tally.pack(state)))
    agree(tally, total, folded(tally))


def merging_leaves_the_other_alone(tally: Tally) -> None:
    """`merge` changes its first state only, `update` no map."""
    maps = items_for(tally)[0]
    before = {name: values.copy() for name, values in maps.items()}
    if numba.config.DISABLE_JIT:  # compiled, each kernel would be compiled again for such arrays
        for values in maps.values():
            values.flags.writeable = False
    state = tally.state_of(maps)
    for name, values in maps.items():
        np.testing.assert_array_equal(values, before[name])
    other = copied(state)
    tally.merge(tally.empty(), other)
    agree(tally, other, state)


def saved_states_come_back(tally: Tally) -> None:
    """`unpack` undoes `pack`; equal states give equal bytes."""
    full = tally.empty()
    for values in full.values():
        values[...] = (1 + np.arange(values.size) % 97).reshape(values.shape) * 1_000_003
    for state in (tally.empty(), folded(tally), full):
        data = tally.pack(state)
        assert tally.pack(copied(state)) == data
        found = tally.unpack(data)
        agree(tally, found, state)
        assert all(values.flags.writeable for values in found.values())


def states_pass_their_own_check(tally: Tally) -> None:
    """Counted states pass the check, for no items, one and several, and give their pixels."""
    if isinstance(tally, TrackCounts):  # its maps here are any numbers
        return
    for maps, state in zip(items_for(tally), states_for(tally), strict=True):
        tally.check(state)
        size = next(iter(maps.values())).size
        counted, evaluated = tally.pixels(state), tally.evaluated(state)
        assert counted is None or (counted == size if tally.counts_void else counted <= size)
        assert evaluated is None or 0 <= evaluated <= size
    tally.check(folded(tally))
    tally.check(tally.empty())


def forged_states_are_refused(tally: Tally) -> None:
    """A negative count, one beyond all sums, and what is not a number."""
    wrong = {"i": (-(10**9), 2**62), "u": (), "f": (np.nan,)}
    for name, field in tally.fields.items():
        for value in wrong[np.dtype(field.dtype).kind] if field.merge == "sum" else ():
            state = folded(tally)
            state[name].flat[0] = value
            with pytest.raises(ValueError, match=rf"{tally.id}\.{name}"):
                tally.load(tally.pack(state))


def states_loaded_together_are_the_states(tally: Tally) -> None:
    """`load_items` gives the states, their pixels and their flaws as `load` does one by one."""
    if isinstance(tally, TrackCounts):  # its maps here are any numbers
        return
    is_small = sum(values.size for values in states_for(tally)[0].values()) < 10**5
    states = [*states_for(tally)[: 5 if is_small else 1], tally.empty()]
    loaded = tally.load_items([tally.pack(state) for state in states])
    assert tally.packing.pack_items(loaded.counted) == [tally.pack(state) for state in states]
    for i, state in enumerate(states):
        found = tally.empty()
        tally.fold(found, loaded.counted.thin(i))
        agree(tally, found, state)
        for count, counts in ((tally.pixels, loaded.pixels), (tally.evaluated, loaded.evaluated)):
            one = count(state)
            assert (one is None) == (counts is None)
            assert counts is None or counts[i] == one
    for name in tally.fields if is_small else ():
        forged = copied(states[0])
        forged[name].flat[-1] += 1 if np.issubdtype(forged[name].dtype, np.integer) else 1e9
        try:
            tally.load(tally.pack(forged))
        except ValueError as error:
            packed = [tally.pack(state) for state in (states[1], forged, states[2])]
            with pytest.raises(ValueError, match=re.escape(str(error))):
                tally.load_items(packed)
            with pytest.raises(ValueError):
                tally.load_items([*packed, packed[0][:-1]])


def cleared_states_are_empty(tally: Tally) -> None:
    """`clear` undoes `update` without changing the result of `thin`; or it does nothing."""
    for before in states_for(tally):
        state = copied(before)
        thin = tally.thin(state)
        agree(tally, state, tally.empty() if tally.clear(state, thin) else before)
        again = tally.empty()
        tally.fold(again, thin)
        agree(tally, again, before)


def what_needs_no_state_is_the_state(tally: Tally) -> None:
    """`count_item` folds to the same bits as the state of an item, if it gives anything."""
    for maps, counted in zip(items_for(tally), states_for(tally), strict=True):
        item_counts = tally.count_item(maps)
        if item_counts is not None:
            state = tally.empty()
            tally.fold_items(state, item_counts)
            agree(tally, state, counted)


def totals_are_the_fold_of_the_items(tally: Tally) -> None:
    """A `Total` has the bits of the fold of the items, sparse or not, of one worker or of two."""
    items, states = items_for(tally), [tally.thin(state) for state in states_for(tally)]
    folded = tally.empty()
    for thin in states:
        tally.fold(folded, thin)
    for numbers_per_entry in (1, counting._NUMBERS_PER_ENTRY, 1 << 40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(counting, "_NUMBERS_PER_ENTRY", numbers_per_entry)
            patch.setattr(counting, "_LEAST_NUMBERS", 4097)  # smaller fields have no sparse form
            total, first, second = (counting.Total(tally) for _ in range(3))
            total.fold_items(CountedItems.of(states))
            agree(tally, total.state(), folded)
            assert tally.pack(total.state()) == tally.pack(folded)
            if tally.any_order:
                for number, maps in enumerate(items):
                    (first, second)[number % 2].update(maps)
                first.merge(second)
                agree(tally, first.state(), folded)


def items_counted_together_are_the_items(tally: Tally) -> None:
    """`count_items` gives the states of the items one by one, to the bit, if it gives anything; so
    does the fold of all of them."""
    items = [*items_for(tally), *items_for(tally)[::-1]]
    if any("label" not in maps for maps in items):
        return
    strip = Strip.of(items)
    counted = tally.count_items(strip, strip.first)
    if tally.pixelwise:
        together, one_by_one = tally.empty(), tally.empty()
        tally.update(together, strip)
        for maps in items:
            tally.update(one_by_one, maps)
        agree(tally, together, one_by_one)
    if counted is None:
        return
    states = [tally.pack(tally.state_of(maps)) for maps in items]
    assert tally.packing.pack_items(counted) == states
    total, folded = tally.empty(), tally.empty()
    tally.fold_items(total, counted)
    for state in states:
        tally.fold(folded, tally.thin(tally.unpack(state)))
    agree(tally, total, folded)


def strange_bytes_are_refused(tally: Tally) -> None:
    """Bytes that are cut short, too long, of another tally, or nothing at all."""
    data = tally.pack(folded(tally))
    wrong = [b"", b"nonsense", data[: len(data) // 2], data[:-1], data[:-5]]
    others = [other for other in EXAMPLES if (other.id, other.fields) != (tally.id, tally.fields)]
    wrong += [other_bytes(other, False) for other in others]
    wrong += [other_bytes(other, True) for other in others[:3]]
    for nonsense in wrong:
        with pytest.raises(ValueError):
            tally.unpack(nonsense)


def void_items_count_nothing(tally: Tally) -> None:
    """An item of void labels is the empty state, but for the count of void pixels itself."""
    if "label" not in tally.inputs:
        return  # it does not read labels
    maps, state = items_for(tally)[3], states_for(tally)[3]
    expected_ = tally.empty()
    if isinstance(tally, ClassCounts):
        expected_["void"] += maps["label"].size
    if isinstance(tally, ErrorSums | ItemErrors):
        expected_["invalid"] += maps["label"].size
    if isinstance(tally, PatchCounts | ItemPatchCounts | Ranks) and "inaccurate" in str(tally):
        return  # void pixels count as wrong ones
    agree(tally, state, expected_)


def declared_inputs_suffice(tally: Tally) -> None:
    """`update` reads no map that it does not declare."""
    maps = items_for(tally)[0]
    found = tally.state_of({name: maps[name] for name in tally.inputs})
    agree(tally, found, states_for(tally)[0])


def parameters_name_the_tally(tally: Tally) -> None:
    """Parameters are what JSON can hold, and differ between different tallies."""
    import json

    text = json.dumps(tally.parameters(), allow_nan=False)
    assert tally.parameters()["id"] == tally.id
    same = [t for t in EXAMPLES if t.id == tally.id and json.dumps(t.parameters()) == text]
    assert same == [tally]
    assert hash(tally) == hash(dataclasses.replace(tally))


def it_counts_what_the_oracle_counts(tally: Tally) -> None:
    """Each field of the fold equals that of the oracle."""
    items = items_for(tally)
    found = folded(tally)
    for name, values in ORACLES[type(tally)](tally, items).items():
        if tally.fields[name].dtype == "float64":
            np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-13, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], values, err_msg=name)


LAWS = (
    empty_is_the_identity,
    grouping_and_order_do_not_matter,
    the_fold_of_saved_states_is_the_fold,
    merging_leaves_the_other_alone,
    saved_states_come_back,
    states_pass_their_own_check,
    forged_states_are_refused,
    states_loaded_together_are_the_states,
    cleared_states_are_empty,
    what_needs_no_state_is_the_state,
    totals_are_the_fold_of_the_items,
    items_counted_together_are_the_items,
    strange_bytes_are_refused,
    void_items_count_nothing,
    declared_inputs_suffice,
    parameters_name_the_tally,
    it_counts_what_the_oracle_counts,
)


# Oracles --------------------------------------------------------------------------------------


def uncertainty_of(u: Uncertainty | RawMap, maps: Maps) -> Any:
    """The float32 uncertainties of an item."""
    if isinstance(u, RawMap):
        return maps[u.name]
    values = naive.uncertainty(maps, u.name)
    if u.name == "entropy" and u.log_base != math.e:
        return (values.astype(np.float64) / math.log(u.log_base)).astype(np.float32)
    return values


def patches_of(patches: Patches, items: Sequence[Maps]) -> list[naive.Patch]:
    """The oracle's patches of all items."""
    right = [
        m["prediction"] == m["label"] if patches.top_k == 1 else m["label_rank"] < patches.top_k
        for m in items
    ]
    return naive.patches(
        right,
        [uncertainty_of(patches.uncertainty, m) for m in items],
        [m["label"] for m in items],
        patches.window,
        patches.stride,
        void_of(patches.classes),
        patches.border,  # type: ignore[arg-type]
        patches.void,  # type: ignore[arg-type]
    )


def _pixels(u: Uncertainty, classes: int, items: Sequence[Maps]) -> list[tuple[int, int, Any]]:
    return [
        (int(y), int(p), v)
        for m in items
        for y, p, v in zip(
            m["label"].ravel(), m["prediction"].ravel(), uncertainty_of(u, m).ravel(), strict=True
        )
        if y != void_of(classes)
    ]


def _class_counts(tally: Any, items: Sequence[Maps]) -> State:
    labels, predictions = ([m[k] for m in items] for k in ("label", "prediction"))
    matrix = np.array(naive.confusion(labels, predictions, tally.classes, void_of(tally.classes)))
    void = sum(int((y == void_of(tally.classes)).sum()) for y in labels)
    return {
        "labelled": matrix.sum(1),
        "predicted": matrix.sum(0),
        "correct": matrix.diagonal(),
        "void": [void],
    }


def _moments(tally: Any, items: Sequence[Maps]) -> State:
    found = _pixels(tally.uncertainty, tally.classes, items)
    of = [[float(v) for y, _, v in found if y == c] for c in range(tally.classes)]
    return {
        "count": [len(v) for v in of],
        "total": [math.fsum(v) for v in of],
        "least": [min(v, default=math.inf) for v in of],
        "most": [max(v, default=-math.inf) for v in of],
    }


def _accuracy(tally: Any, items: Sequence[Maps]) -> State:
    pixels = np.zeros((tally.classes, len(tally.edges) + 1), int)
    correct = pixels.copy()
    for y, p, v in _pixels(tally.uncertainty, tally.classes, items):
        interval = sum(bool(np.float32(edge) < v) for edge in tally.edges)
        pixels[p, interval] += 1
        correct[p, interval] += p == y
    return {"pixels": pixels, "correct": correct}


def _ranks(tally: Any, items: Sequence[Maps]) -> State:
    if isinstance(tally.of, Patches):
        found = [(p["category"], p["mean"]) for p in patches_of(tally.of, items)]
    else:
        found = [(y, v) for y, _, v in _pixels(tally.of, tally.classes, items)]
    state = tally.empty()
    for category, value in found:
        g = 0
        if tally.by_category:
            g = tally.classes if category == "mixed" else category
        magnitude = int(np.abs(np.float32(value)).view(np.uint32))
        key = 2**31 - 1 - magnitude if np.signbit(value) else 2**31 + magnitude
        if not tally.bins:
            state["coarse"][g, key // 2**13] += 1
        elif (g, key // 2**13) in tally.bins:
            state["fine"][tally.bins.index((g, key // 2**13)), key % 2**13] += 1
    return state


def _four(n: Any) -> list[list[int]]:
    return [[n["n_ic"], n["n_iu"]], [n["n_ac"], n["n_au"]]]


def _patch_counts(tally: Any, items: Sequence[Maps]) -> State:
    found = patches_of(tally.patches, items)
    ops = (tally.accuracy_op, tally.uncertainty_op)
    names = [*range(tally.patches.classes), "mixed"]
    limits = list(tally.threshold) * (len(names) if len(tally.threshold) == 1 else 1)
    ends = list(tally.curve) * (len(names) if len(tally.curve) == 1 else 1)
    state = tally.empty()
    steps = [i / 100 for i in range(101)]
    for c, name in enumerate(names):
        mine = [p for p in found if p["category"] == name]
        n = naive.counts(mine, tally.accuracy_threshold, limits[c], *ops)
        state["counts"][c] = _four(n)
        state["ties"] += list(n["ties"].values())
        below = np.zeros((2, 1), int)
        for k, t in enumerate(steps):
            limit = naive.range_threshold(t, ends[c])
            certain = _four(naive.counts(mine, tally.accuracy_threshold, limit, *ops))
            now = np.array(certain)[:, :1]
            state["by_threshold"][c, :, k] = (now - below)[:, 0]
            below = now
        state["by_threshold"][c, :, 101] = np.sum(_four(n), axis=1) - below[:, 0]
        inaccurate = np.zeros(2, int)
        for k, a in enumerate(steps):
            now = np.array(_four(naive.counts(mine, a, limits[c], *ops))[0])
            state["by_accuracy"][k] += now - inaccurate
            inaccurate = now
        state["by_accuracy"][101] += np.sum(_four(n), axis=0) - inaccurate
    return state


def _item_patch_counts(tally: Any, items: Sequence[Maps]) -> State:
    total = tally.empty()
    rule = {"percentile": f"p{tally.value}", "range": f"range:{tally.value}"}.get(tally.rule)
    for maps in items:
        found = patches_of(tally.patches, [maps])
        u = uncertainty_of(tally.patches.uncertainty, maps)
        pixels = naive.pixel_uncertainties([u], [maps["label"]])
        if not len(pixels) or not found:
            continue
        ops = (tally.accuracy_op, tally.uncertainty_op)
        wanted = rule or (tally.value if tally.rule == "value" else tally.rule)
        try:
            limit = naive.threshold(wanted, found, pixels, tally.accuracy_threshold, *ops)
        except ValueError:  # the Surplus is undefined everywhere
            limit = float("nan")
        ends = (float(pixels.min()), float(pixels.max()))
        one = PatchCounts(tally.patches, (limit,), (ends,), tally.accuracy_threshold, *ops)
        for name, values in _patch_counts(one, [maps]).items():
            total[name] += values
        np.maximum(total["own"], [limit, *ends], out=total["own"])
    return total


ORACLES: dict[type[Tally], Callable[[Any, Sequence[Maps]], State]] = {
    AccuracyByUncertainty: _accuracy,
    ClassCounts: _class_counts,
    ItemPatchCounts: _item_patch_counts,
    Moments: _moments,
    PatchCounts: _patch_counts,
    Ranks: _ranks,
    **laws_annotators.ORACLES,
    **laws_calibration.ORACLES,
    **laws_conformal.ORACLES,
    **laws_conformal.ORACLES_OF_NUMBERS,
    **laws_divergence.ORACLES,
    **laws_ranked.ORACLES,
    **laws_recalibrated.ORACLES,
    **laws_regression.ORACLES,
    **laws_temporal.ORACLES,
    **laws_tracks.ORACLES,
}
