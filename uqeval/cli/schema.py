"""`uqeval schema`: the JSON Schema of `uqeval.yaml`, for editors."""

from __future__ import annotations

import sys


def schema() -> None:
    """Print the JSON Schema of uqeval.yaml, for completion and checks in editors.

    Example: uqeval schema > uqeval.schema.json
    """
    import json

    from uqeval.config import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
