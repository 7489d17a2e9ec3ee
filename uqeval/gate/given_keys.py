"""Keys of YAML files, each of which must have a value."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator


def _without_null(schema: dict[str, Any]) -> None:
    """Remove null from the types and defaults of a JSON Schema's properties."""
    for own in schema["properties"].values():
        types = [entry for entry in own.pop("anyOf", ()) if entry != {"type": "null"}]
        own |= types[0] if len(types) == 1 else {"anyOf": types} if types else {}
        if own.get("default", ...) is None:
            del own["default"]


class GivenKeys(BaseModel):
    """Keys of a mapping in a file. A key without a value is an error: a limit or an option that a
    template did not fill would be dropped silently."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_without_null)

    @field_validator("*", mode="before")
    @classmethod
    def _has_value(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("the key has no value; give one, or remove the key")
        return value
