"""A round of one shard: count the next pass of all evaluations over its items, and stop.

The first pass needs nothing but the items. Each later pass depends on the earlier counts of all
shards, which a file of `uqeval merge --fit` contains. The states of all passes stay in one file,
which every round replaces.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval import maps, version
from uqeval.arrays import State
from uqeval.disk.files import content_of
from uqeval.errors import DataError, StoreError, UsageError, cut
from uqeval.keys import Key, family_of
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._driver import LastRequest, Running, replayed
from uqeval.metrics._evaluation import Evaluation, Passes, Section, TallyResult
from uqeval.records.inputs import WHY_NONE
from uqeval.statistics.merged_records import EQUAL_FACTS
from uqeval.statistics.run_differences import difference, equal_facts
from uqeval.stores.states.entries import digest_of, tally_key
from uqeval.stores.states.fitted import FittedFile, PackedTotal
from uqeval.stores.states.saved import SavedStates

if TYPE_CHECKING:
    from uqeval.engine.scheduler import Scheduler
    from uqeval.inputs import Inputs
    from uqeval.stores.states.writer import StatesWriter
    from uqeval.tallies._contract import Tally

_OF_VIDEO = ("models", "against", "named")


def settings_of_evaluations(evaluations: Mapping[str, Evaluation[Any]]) -> dict[str, Any]:
    """Return the settings of each result by key."""
    return {
        key: dataclasses.asdict(evaluation.settings)
        for key, evaluation in evaluations.items() if not Key.parse(key).part
    }  # fmt: skip


def run_of_inputs(inputs: Inputs, info: DatasetInfo, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a shard from its inputs and the settings of each result."""
    video = None
    if info.video is not None:
        video = {name: getattr(info.video, name) for name in _OF_VIDEO}
    facts = {name: getattr(info, name) for name in (*EQUAL_FACTS, "fit_names")}
    inputs_record = {**inputs.record, "options": inputs.options}
    versions = {"uqeval_version": version.VERSION, "maps_version": maps.VERSION}
    return _run(versions, inputs.fingerprint, facts | {"video": video}, inputs_record, settings)


def run_of_states(index: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of the run from the states of one of its shards."""
    facts, video = index["facts"], index["facts"].get("video")
    chosen = equal_facts(index)
    chosen["fit_names"] = facts.get("fit_names", {})
    chosen["video"] = None if video is None else {name: video.get(name) for name in _OF_VIDEO}
    versions = {name: index.get(name) for name in ("uqeval_version", "maps_version")}
    return _run(versions, index["fingerprint"], chosen, index["inputs"], settings)


def _run(
    versions: Mapping[str, Any],
    fingerprint: str,
    facts: Mapping[str, Any],
    inputs: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the record as plain JSON values, equal from inputs and from states."""
    options = {name: value for name, value in inputs["options"].items() if name != "part"}
    record = {
        **versions,
        "fingerprint": fingerprint,
        "facts": facts,
        "inputs": {"ignore_index": inputs.get("ignore_index"), "options": options},
        "settings": settings,
    }
    return json.loads(json.dumps(record, default=str))


def difference_of_runs(fitted: Mapping[str, Any], own: Mapping[str, Any]) -> str | None:
    """Return the first difference of two runs with both values; None if they are the same."""
    if fitted.get("fingerprint") != own["fingerprint"]:
        return "the content of the stores"
    return difference(fitted, own)


@dataclass(frozen=True)
class _OwnResult(TallyResult):
    """The counts of a tally in one shard."""

    def of_items(self, tally: Tally, items: Sequence[int]) -> State:
        raise DataError("the items of other shards are needed")


@dataclass(frozen=True)
class _SharedResult(TallyResult):
    """The total of a tally over all shards, without states of single items."""

    packed: PackedTotal | None = None

    def of_items(self, tally: Tally, items: Sequence[int]) -> State:
        assert self.packed is not None
        return tally.load(self.packed.state(tally.most_bytes, items))


@dataclass
class ShardRound:
    """A round of shard `number` of `of`, after the rounds of the file `fitted` (None: the first
    round).

    `settings`: of each result, by key. `earlier`: the states of the rounds before.
    """

    number: int
    of: int
    settings: Mapping[str, Any]
    fitted: FittedFile | None = None
    earlier: SavedStates | None = None
    #: The file of the shard's states, for the commands of the next pass.
    states: str | Path | None = None
    #: Keys of results that need the counts of all shards to continue.
    unfinished: list[str] = field(default_factory=list)

    @classmethod
    def of_inputs(
        cls,
        inputs: Inputs,
        info: DatasetInfo,
        settings: Mapping[str, Any],
        states: str | Path | None,
    ) -> ShardRound:
        """Return the round of inputs that are a shard.

        `settings`: of each result, by key. `states`: the path of the shard's states. Raises
        `UsageError` and `StoreError` for a file of fits that does not match this round.
        """
        shard = inputs.record["part"]
        if not inputs.fingerprint:
            raise UsageError(
                f"--part: {cut(inputs.source.where)} has no fingerprint, because {WHY_NONE}. So "
                "it would be unknown whether all shards are of the same data. Copy the stores to a "
                "disk or to another server."
            )
        path = None if inputs.recipe is None else inputs.recipe.options.fitted
        if path is None:
            return cls(shard["number"], shard["of"], settings, states=states)
        fitted = FittedFile.load(path)
        this_run = run_of_inputs(inputs, info, settings)
        with content_of(path):
            difference = difference_of_runs(fitted.run, this_run)
        if difference is not None:
            raise UsageError(
                f"{cut(path)} is of another run: it and this command differ in {difference}. Give "
                "the command of the first round and --fitted, or make the file again from the "
                "states of this run."
            )
        if len(fitted.shards) != shard["of"]:
            raise UsageError(
                f"{cut(path)} is of {len(fitted.shards)} shards, --part names one of "
                f"{shard['of']}. Give the same --part as in the first round."
            )
        if not fitted.unfinished:
            raise UsageError(
                f"{cut(path)}: all passes are counted; no shard has work left. Join "
                "the states of all shards with uqeval merge."
            )
        earlier = _earlier(fitted, shard, states, info.names)
        return cls(shard["number"], shard["of"], settings, fitted, earlier, states)

    @property
    def passes(self) -> int:
        """Return the number of passes that are counted after this round."""
        return 1 if self.fitted is None else self.fitted.passes + 1

    def identity(self) -> dict[str, Any]:
        """Return the settings that identify this round, for --resume."""
        return {} if self.fitted is None else {"fitted": self.fitted.digest}

    def index(self, last_digits: Collection[str]) -> dict[str, Any]:
        """Return the record of this round for the states.

        `last_digits`: the digests of exp and log where it was counted.
        """
        digest = None if self.fitted is None else self.fitted.digest
        before = [] if self.earlier is None else self.earlier.index.get("last_digits", [])
        return {
            "rounds": {"passes": self.passes, "fitted": digest},
            "last_digits": sorted({*last_digits, *before}),
        }

    def count(
        self,
        scheduler: Scheduler,
        passes: Callable[[bool], Mapping[str, Passes]],
        states: StatesWriter | None,
    ) -> dict[str, Any]:
        """Count the next pass of generators by key; set `unfinished`.

        `passes` makes the generators, with sections as their results or without. Returns the
        results of generators that end in the first pass. Raises `UqevalError`.
        """
        if self.fitted is None:
            return self._count_first(scheduler, passes(True), states)
        assert states is not None and self.earlier is not None
        _carry(self.earlier, self.fitted.totals.keys(), states)
        with content_of(self.fitted.path):
            requests = self._requests(passes(False))
        if not requests:
            raise StoreError(
                f"{self.fitted.path} says that {', '.join(self.fitted.unfinished)} need another "
                "pass, but its totals already complete them. Make it again with `uqeval merge "
                "--fit`."
            )
        self.unfinished = list(requests)
        scheduler.run_next(requests, lambda keys, counted: None)  # the states have them
        return {}

    def _requests(self, passes: Mapping[str, Passes]) -> dict[str, tuple[Tally, ...]]:
        """Return the tallies that each generator requests after the passes of all shards.

        Totals are in memory for one generator after the other, with those that it shares with the
        one before, such as those of the whole image.
        """
        requests: dict[str, tuple[Tally, ...]] = {}
        before: dict[Tally, TallyResult] = {}
        for key, generator in passes.items():
            totals: dict[Tally, TallyResult] = {}
            running = replayed({key: generator}, partial(self._noted, totals, before))
            requests |= running.requests
            running.close()
            before = totals
        return requests

    def _noted(
        self, totals: dict[Tally, TallyResult], before: Mapping[Tally, TallyResult], tally: Tally
    ) -> TallyResult | None:
        """Return a total, and add it to `totals`; read it only if none of the two has it."""
        total = totals.get(tally) or before.get(tally) or self._shared(tally)
        if total is not None:
            totals[tally] = total
        return total

    def _count_first(
        self, scheduler: Scheduler, passes: Mapping[str, Passes], states: StatesWriter | None
    ) -> dict[str, Any]:
        running = Running(passes)
        several = [
            key
            for key, results_of_shard in running.requests.items()
            if type(results_of_shard) is not LastRequest
        ]
        if states is None and several:
            raise UsageError(
                f"--part counts the first pass of {_of_whole_images(several)} and saves it for "
                "`uqeval merge --fit`; give -o FILE."
            )

        def receive(keys: Sequence[str], counted: Mapping[Tally, TallyResult]) -> None:
            results_of_shard = {
                tally: _OwnResult(result.total, result.items) for tally, result in counted.items()
            }
            for key in keys:
                # A DataError: this shard has too few valid pixels; others may have more.
                with suppress(DataError):
                    running.send(results_of_shard, [key])
            running.close(keys)

        scheduler.run_next(running.requests, receive)
        self.unfinished = [key for key in passes if key not in running.results]
        return running.results

    def _shared(self, tally: Tally) -> TallyResult | None:
        """Return the total of a tally over all shards; None if it is not counted yet."""
        assert self.fitted is not None
        packed = self.fitted.totals.get(digest_of(tally_key(tally.parameters())))
        if packed is None:
            return None
        try:
            total = tally.load(packed.state(tally.most_bytes))
        except ValueError as error:
            raise StoreError(
                f"{self.fitted.path}: the total of {tally.id} is damaged: {cut(error)}. Make "
                "it again with `uqeval merge --fit`."
            ) from None
        return _SharedResult(total, (), packed)

    def complete_sections(
        self, sections: Mapping[str, Section], keys: Collection[str]
    ) -> dict[str, Section]:
        """Return the sections of results with all their parts; record the other `keys`."""
        missing = [key for key in keys if key not in sections]
        if self.fitted is None:
            self.unfinished = missing
        heads = {Key.parse(key).whole for key in missing}
        return {
            key: section for key, section in sections.items() if Key.parse(key).whole not in heads
        }

    def completed(self, record: Mapping[str, Any], has_cut: bool) -> dict[str, Any]:
        """Return the record of this round's sections with the settings of all results, and with
        the results of the first round.

        `has_cut`: whether intervals or slices are requested, which only `merge` computes.
        """
        advice = self._advice(has_cut) if self.unfinished else []
        if self.earlier is not None:
            index = self.earlier.index
            from_index = {name: index[name] for name in ("results", "numerics", "settings")}
            return {**record, **from_index, "items": index["records"], "warnings": advice}
        of_all = {key: record["settings"].get(key) or own for key, own in self.settings.items()}
        return {**record, "settings": of_all, "warnings": [*record["warnings"], *advice]}

    def _advice(self, has_cut: bool) -> list[str]:
        from uqeval.records.shards import ShardCommands

        passes = "pass 1 is" if self.passes == 1 else f"{self.passes} passes are"
        commands = ShardCommands.of(self.states, self.number)
        advice = [
            f"{_of_whole_images(self.unfinished)}: {passes} counted, more may follow. After all "
            f"{self.of} shards: {commands.fit}, and then the command of each shard again, with "
            f"--fitted {commands.fitted}.{in_one_pass(self.unfinished)}"
        ]
        if has_cut:
            advice.append(
                "intervals and slices need all items: after the last pass, `uqeval merge SHARDS "
                "--ci LEVEL --slices CSV` computes them."
            )
        return advice


def _of_whole_images(keys: Collection[str]) -> str:
    """Return keys of results as text, without those of regions, which have the same passes."""
    return ", ".join(dict.fromkeys(str(Key.parse(key).of(None)) for key in keys))


def in_one_pass(keys: Collection[str]) -> str:
    """Return a sentence with the options with which the families of some results need one pass;
    empty if one of them has none."""
    from uqeval.metrics import FAMILIES_IN_REPORTS

    families = [FAMILIES_IN_REPORTS[name] for name in dict.fromkeys(map(family_of, keys))]
    if not all(family.one_pass for family in families):
        return ""
    options = " and ".join(f"{family.one_pass} ({family.name})" for family in families)
    return f" Shards that are counted with {options} need one pass only, and no --fit."


def _earlier(
    fitted: FittedFile, shard: Mapping[str, Any], path: str | Path | None, names: Sequence[str]
) -> SavedStates:
    """Return the states of the earlier rounds. Raises `UqevalError` if they are missing."""
    number = shard["number"]
    if path is None or not Path(path).is_file():
        missing = "without -o there are none" if path is None else f"{cut(path)} does not exist"
        raise UsageError(
            f"--fitted continues from the states of the previous round, but {missing}. Give the "
            f"same -o as in the first round of shard {number}."
        )
    saved = SavedStates.of_run(path)
    rounds, part = saved.index.get("rounds", {}), saved.index["inputs"].get("part", {})
    follows = saved.digest == fitted.shards[number - 1]
    repeats = rounds.get("fitted") == fitted.digest
    if part.get("number") != number or list(saved.index["items"]) != list(names):
        raise UsageError(
            f"{cut(path)} holds the states of other items than shard {number} of {shard['of']}. "
            "Give the same -o and --part as in the first round."
        )
    if not (follows or repeats):
        raise UsageError(
            f"{cut(path)} was counted in another round: {cut(fitted.path)} was not made from it. "
            "Make the file again with uqeval merge --fit, from the states of all shards."
        )
    return saved


def _carry(saved: SavedStates, names: Collection[str], states: StatesWriter) -> None:
    """Copy the states of tallies with these `names` (`digest_of` a key) to a file of the same
    items. Raises `StoreError` where they are damaged.
    """
    for parameters in saved.parameters():
        key, first = tally_key(parameters), 0
        for block in saved.blocks(parameters) if digest_of(key) in names else ():
            states.add(key, first, block)
            first += block.items
    for name in saved.totals():
        if name in names:
            states.add_packed_total(name, saved.total_named(name))
