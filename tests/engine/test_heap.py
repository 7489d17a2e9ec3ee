"""Memory that is kept: the call does no harm, wherever it is made."""

from __future__ import annotations

import ctypes

import pytest

from uqeval.engine.heap import keep_freed_memory


def test_what_the_system_does_not_know_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Library:
        def __getattr__(self, name: str) -> None:
            asked.append(name)
            raise AttributeError(name)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library())
    keep_freed_memory()
    assert asked == ["mallopt"]


def test_thresholds_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    class Library:
        mallopt = staticmethod(lambda what, value: calls.append((what, value)))

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library)
    keep_freed_memory()
    assert [what for what, _ in calls] == [-8, -3, -1]
