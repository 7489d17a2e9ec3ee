"""A finding: a sentence about a report or a comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One sentence, its heading, and the family of the page that has the score; empty for none."""

    title: str
    text: str
    family: str = ""
