"""Fit on all shards of a run: add up their counts, for the next round of each shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.argument_types import checks_types
from uqeval.arrays import State
from uqeval.disk.files import content_of
from uqeval.errors import UsageError, cut
from uqeval.metrics._driver import drive, replayed
from uqeval.metrics._evaluation import Passes, TallyResult
from uqeval.statistics.merged_states import MergedStates
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import digest_of, tally_key
from uqeval.stores.states.fitted import FittedFile, PackedTotal, name_of_items
from uqeval.usecases.rounds.shard import run_of_states, settings_of_evaluations

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally


@dataclass(frozen=True)
class _NotedResult(TallyResult):
    """The total of a tally; records the states of single items that a fit requests, which are read
    on demand."""

    states: MergedStates
    noted: dict[str, bytes] = field(default_factory=dict)

    def of_items(self, tally: Tally, items: Sequence[int]) -> State:
        from uqeval.statistics.checked_states import checked_states

        requested, total = set(items), tally.empty()
        for item, (_, state) in enumerate(checked_states(self.states, tally)):
            if item in requested:
                tally.merge(total, state)
        self.noted[name_of_items(items)] = _packed(tally, total)
        return total


@checks_types()
def fit_shards(reports: str | Path | Sequence[str | Path], output: str | Path) -> FittedFile:
    """Add up the counts of all shards of a run, and write them to `output` for their next round.

    `reports`: as for `merge`. `unfinished` of the result has the keys of results that need another
    pass; if it is empty, `merge` joins the shards. Raises `UsageError` unless the states are of all
    shards of one run in the same round; `StoreError` for files without states.
    """
    from uqeval.disk.outputs import check_output, write
    from uqeval.usecases.merge import refuse_missing, states_of

    paths = [reports] if isinstance(reports, str | Path) else list(reports)
    files = states_of(paths)
    report_files = [path for path in map(Path, paths) if path.is_file()]
    inputs = [*report_files, *(file.path for file in files)]
    check_output(output, "output=", "fitted", inputs)
    with content_of(" + ".join(str(file.path) for file in files)):
        states = MergedStates(files)
        if states.passes is None:
            raise UsageError(
                f"{cut(states.path)}: --fit is for the shards of a run (--part K/N). Join these "
                "without it: uqeval merge"
            )
        refuse_missing(states)
        fitted = _fitted(states, output)
    text = fitted.text()
    write(output, text)
    return replace(FittedFile.load(output), warnings=tuple(states.mixture))


def _fitted(states: MergedStates, output: str | Path) -> FittedFile:
    from uqeval.usecases.merged_results import is_sweep

    counted = _Counted(states)
    fit = _fit_sweep if is_sweep(states) else _fit_evaluations
    unfinished, settings = fit(states, counted)
    assert states.passes is not None
    return FittedFile(
        Path(output), states.passes, tuple(unfinished),
        tuple(str(file.digest) for file in states.files),
        run_of_states(states.files[0].index, settings),
        counted.totals() if unfinished else {},
    )  # fmt: skip


def _fit_evaluations(
    states: MergedStates, counted: _Counted
) -> tuple[list[str], Mapping[str, Any]]:
    """Return the keys of results that need another pass, and the settings of all."""
    from uqeval.usecases.merged_results import unfitted_evaluations

    evaluations = {key: evaluation for key, (_, evaluation) in unfitted_evaluations(states).items()}
    passes = {key: drive({key: own}, sectioned=False) for key, own in evaluations.items()}
    return counted.waiting(passes), settings_of_evaluations(evaluations)


def _fit_sweep(states: MergedStates, counted: _Counted) -> tuple[list[str], Mapping[str, Any]]:
    """Return the names of families that need another pass, and the settings of the sweep."""
    from uqeval.statistics.variants import info_of
    from uqeval.usecases.sweep.plan import SweepPlan, families_of_passes

    plan = SweepPlan.of_index(states.index, info_of(states.index), states.path)
    waiting = counted.waiting(plan.passes(sectioned=False))
    return families_of_passes(waiting), plan.settings()


class _Counted:
    """The counts of all shards; each tally is added up only once."""

    def __init__(self, states: MergedStates) -> None:
        self._states = states
        self._results: dict[Tally, _NotedResult | None] = {}

    def result(self, tally: Tally) -> TallyResult | None:
        from uqeval.statistics.saved_counts import saved_result

        if tally not in self._results:
            saved = saved_result(self._states, tally)
            self._results[tally] = (
                None if saved is None else _NotedResult(saved.total, (), self._states)
            )
        return self._results[tally]

    def waiting(self, passes: Mapping[str, Passes]) -> list[str]:
        """Run generators on these counts; return the keys of those that need another pass."""
        running = replayed(passes, self.result)
        running.close()
        return list(running.requests)

    def totals(self) -> dict[str, PackedTotal]:
        """Return the totals by name of the tally."""
        return {
            digest_of(tally_key(tally.parameters())): PackedTotal(
                _packed(tally, result.total), result.noted
            )
            for tally, result in self._results.items() if result is not None
        }  # fmt: skip


def _packed(tally: Tally, state: State) -> bytes:
    return PackedItems.of([tally.pack(state)]).data
