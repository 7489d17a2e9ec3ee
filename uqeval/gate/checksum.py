"""The checksum of a verdicts file, by which a reader notices edited content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

#: The key of a record that holds its checksum.
KEY = "checksum"


def checksum_of(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON record without its checksum; white space does not matter.

    It detects accidental edits, not forgery: a forger can also replace the checksum. A signature of
    the evidence prevents that.
    """
    content = {key: value for key, value in record.items() if key != KEY}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
