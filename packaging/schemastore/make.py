"""Write `uqeval.json`, the schema of `uqeval.yaml` for https://www.schemastore.org.

SchemaStore asks for draft 7, so that all editors can read it. `tests/test_adoption.py` compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from uqeval.config import json_schema

FILE = Path(__file__).with_name("uqeval.json")
_ID = "https://www.schemastore.org/uqeval.json"


def text() -> str:
    """Return the text of the file."""
    schema = _draft_7(json_schema())
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "$id": _ID}
    return json.dumps(head | {k: v for k, v in schema.items() if k not in head}, indent=2) + "\n"


def _draft_7(value: Any) -> Any:
    """Return a schema with the places of definitions that draft 7 has."""
    if isinstance(value, list):
        return [_draft_7(part) for part in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, part in value.items():
        if key == "$ref":
            changed[key] = part.replace("#/$defs/", "#/definitions/")
        else:
            changed["definitions" if key == "$defs" else key] = _draft_7(part)
    return changed


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
