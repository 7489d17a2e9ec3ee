"""Keys of a report's results: `family[variant]@region`, and `key/part` for a part of the results.

Only this module takes keys apart: a variant or a region may hold any text, also paths.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

_KEY = re.compile(
    r"(?P<family>[^\[@/]*)(?:\[(?P<variant>.*?)\](?=$|[@/]))?"
    r"(?:@(?P<region>[^/]*))?(?:/(?P<part>.*))?",
    re.DOTALL,
)

#: Commands whose results have another key in reports, by this key.
COMMANDS_BY_KEY = {"temporal": "tc"}


@dataclass(frozen=True)
class Key:
    """Parts of a key: `pavpu`, `pavpu[window=7]`, `calibration@boundary:8`, `…/temperature`."""

    family: str
    variant: str | None = None
    region: str | None = None
    part: str = ""

    @classmethod
    @lru_cache(4096)
    def parse(cls, text: str) -> Key:
        """Read a key; a text of another form becomes the family."""
        match = _KEY.fullmatch(text)
        if match is None:
            return cls(text)
        return cls(match["family"], match["variant"], match["region"], match["part"] or "")

    def of(self, region: str | None) -> Key:
        """Return the same key of a region, or of the whole image."""
        return replace(self, region=region)

    @property
    def whole(self) -> str:
        """Return the key without its part."""
        variant = "" if self.variant is None else f"[{self.variant}]"
        return self.family + variant + ("" if self.region is None else f"@{self.region}")

    def __str__(self) -> str:
        return self.whole + (f"/{self.part}" if self.part else "")


def family_of(key: str) -> str:
    """Return the family of a key: `pavpu` of `pavpu[window=7]`."""
    return Key.parse(key).family
