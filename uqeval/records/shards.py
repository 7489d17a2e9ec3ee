"""The commands after a shard.

Shards of `uqeval run` are in `parts/K/STORE.states.zip`, and each store has fits of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from uqeval.disk.files import as_given


@dataclass(frozen=True)
class ShardCommands:
    """The commands after a shard.

    `fit` adds up the states of all shards, `fitted` is then the value of --fitted, and `merge`
    joins the shards after the last pass.
    """

    fit: str = "uqeval merge --fit SHARDS -o fitted.json"
    fitted: str = "fitted.json"
    merge: str = "uqeval merge SHARDS -o report.json"

    @classmethod
    def of(cls, path: str | Path | None, number: int | None) -> ShardCommands:
        """Return the commands after shard `number` with this report or states file."""
        if path is None or (folder := Path(path).parent).name != str(number):
            return cls()
        if "://" in as_given(str(path)):  # no shell lists a bucket
            return cls()
        name = Path(path).name.removesuffix(".json").removesuffix(".states.zip")
        above = "" if folder.parent == Path() else f"{quote(str(folder.parent))}/"
        states = f"{above}*/{quote(f'{name}.states.zip')}"
        fits, report = (quote(f"{folder}/{name}.json") for folder in ("fitted", "report"))
        return cls(
            f"mkdir -p fitted; uqeval merge --fit {states} -o {fits} (and so for each store)",
            "fitted/",
            f"mkdir -p report; uqeval merge {states} -o {report}",
        )
