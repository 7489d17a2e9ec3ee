"""The JSON Schema of `uqeval.yaml`, for editors."""

from __future__ import annotations

from typing import Any

from uqeval.config.load import FILE
from uqeval.config.model import Config, options_model
from uqeval.config.options import commands


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of `uqeval.yaml`, for editors."""
    schema = Config.model_json_schema()
    null = {"type": "null"}
    options = {c: {"anyOf": [options_model(c).model_json_schema(), null]} for c in commands()}
    of_a_store = {"type": "object", "properties": options, "additionalProperties": False}
    evaluate = schema["properties"]["evaluate"]
    evaluate["patternProperties"] = {
        pattern: {"anyOf": [of_a_store, null]} for pattern in evaluate["patternProperties"]
    }
    # Short forms: a path in place of a table, a column in place of a list of one column.
    slices, by_options = (
        schema["properties"]["slices"],
        schema["$defs"]["Slices"]["properties"]["by"],
    )
    slices["anyOf"] = [{"type": "string", "minLength": 1}, *slices["anyOf"]]
    short, listed = (
        by_options["items"]["anyOf"][0],
        {k: by_options.pop(k) for k in ("type", "items", "minItems")},
    )
    by_options.pop("default")
    by_options["anyOf"] = [short, listed]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema | {"title": FILE}
