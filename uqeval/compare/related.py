"""The models that have results in common: others, such as videos beside images, are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from shlex import quote

from uqeval.compare.models import Model, report_of
from uqeval.compare.other_settings import other_settings
from uqeval.errors import UsageError, listed, quoted
from uqeval.records.folder import Named


def related(
    models: Sequence[Model], stores: Sequence[str], baseline: str | None
) -> tuple[list[Model], list[str]]:
    """Return the models that have results of the same settings, and warnings about the others.

    They are compared directly or through further models with the `baseline` (None: the first one
    that has a result in common). Raises `UsageError` if it has none, with a note for each cause.
    """
    if len(models) < 2:
        return list(models), []
    pairs = {
        frozenset((first.name, second.name))
        for first, second in combinations(models, 2)
        if any(_has_common(first, second, store) for store in stores)
    }
    if not pairs:
        raise _nothing_in_common(models, stores)
    reference = baseline or next(m.name for m in models if any(m.name in pair for pair in pairs))
    group = _connected(reference, pairs)
    if len(group) == 1:
        raise UsageError(
            f"--against {quoted(reference)} has no result of the same settings as another model. "
            f"Leave it out, or name one of {listed(sorted(set().union(*pairs)))}."
        )
    warnings, named = [], set(group)
    for model in models:
        if model.name not in named:
            others = _connected(model.name, pairs)
            warnings.append(_left_out([own for own in models if own.name in others]))
            named |= others
    return [model for model in models if model.name in group], warnings


def _connected(name: str, pairs: Collection[frozenset[str]]) -> set[str]:
    """Return a model and all that it is compared with, directly or through further models."""
    group = {name}
    while more := {name for pair in pairs if pair & group for name in pair} - group:
        group |= more
    return group


def _left_out(models: Sequence[Model]) -> str:
    """Return the warning about models that are comparable with each other only, or about one."""
    results = listed(list(dict.fromkeys(key for model in models for key in _results(model))))
    reason = f"no result of the same settings as the other models ({results})"
    if len(models) == 1:
        return f"{models[0].name}: left out: it has {reason}"
    names = listed([model.name for model in models])
    return (
        f"{names}: left out: comparable with each other ({_command(models)}), but they have "
        f"{reason}"
    )


def _command(models: Sequence[Model]) -> str:
    """Return the command that compares models; those of several trainings come last."""
    words = ["uqeval compare"]
    for model in sorted(models, key=lambda model: len(model.trainings) > 1):
        words += ["--replicates"] if len(model.trainings) > 1 else []
        words += [quote(str(training.path)) for training in model.trainings]
    return " ".join(words)


def _has_common(first: Model, second: Model, store: str) -> bool:
    reports = [report_of(t, store) for model in (first, second) for t in model.trainings]
    one, other = (report_of(model.trainings[0], store) for model in (first, second))
    return any(
        all(key in named.report.results for named in reports)
        and other_settings(one, other, key) is None
        for key in one.report.results
    )


def _nothing_in_common(models: Sequence[Model], stores: Sequence[str]) -> UsageError:
    """Return the error, with the only difference of settings or with a note for each cause."""
    reports = [
        [report_of(t, store) for model in models for t in model.trainings] for store in stores
    ]
    settings = list(dict.fromkeys(text for own in reports for text in _settings(own)))
    if len(settings) == 1 and len(models) == 2:
        return UsageError(f"there is no score to compare: {settings[0]}.")
    error = UsageError(
        "there is no score to compare: no two models have a result of the same settings."
    )
    for model in models:
        error.add_note(f"{model.name} has {listed(list(_results(model)), 12)}.")
    for text in settings:
        error.add_note(f"{text}.")
    return error


def _results(model: Model) -> dict[str, None]:
    reports = (named.report for t in model.trainings for named in t.reports.values())
    return {key: None for report in reports for key in report.results}


def _settings(reports: Sequence[Named]) -> Iterator[str]:
    """Yield the settings that differ, with the results that need them."""
    keys: dict[str, list[str]] = {}
    for one, other in combinations(reports, 2):
        for key in one.report.results:
            if key in other.report.results and (text := other_settings(one, other, key)):
                keys.setdefault(text, []).append(key)
    for text, of_text in keys.items():
        yield f"{', '.join(of_text)}: {text}"
