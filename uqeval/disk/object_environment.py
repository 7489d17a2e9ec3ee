"""Check the environment variables of object stores, whose client panics on some values."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

#: Variables, without their prefix, whose values the client sends or takes as an address. Others
#: may have several lines: some programs put JSON into GOOGLE_CREDENTIALS.
_ONE_LINE = re.compile(
    r".*(KEY_ID|ACCESS_KEY|STORAGE_ACCOUNT_KEY|ACCOUNT_NAME|SAS_KEY|TOKEN|REGION|ENDPOINT\w*|PROXY_URL|"
    r"BASE_URL|(CLIENT|TENANT)_ID|CLIENT_SECRET|ROLE_ARN|SESSION_NAME|APPLICATION_CREDENTIALS|"
    r"SERVICE_ACCOUNT(_PATH)?|TOKEN_FILE|URI)",
    re.IGNORECASE,
)
#: Control characters; a tab is valid in a header of HTTP.
_CONTROL = re.compile(r"[\0-\x08\x0a-\x1f\x7f]")


#: Variables that are addresses of servers.
_ADDRESSES = frozenset({
    "AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AZURE_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT", "GOOGLE_BASE_URL",
})  # fmt: skip


def flaw_of_environment(prefix: str) -> str | None:
    """Return what is wrong with a variable of the environment that starts with a prefix, such as
    AWS; None if nothing is.

    The text has the name of the variable, never its value, which may be a secret.
    """
    for name, value in sorted(os.environ.items()):
        start, _, own = name.partition("_")
        if not prefix or start != prefix:
            continue
        if (match := _CONTROL.search(value)) and _ONE_LINE.fullmatch(own):
            is_line_end = match[0] in "\r\n"
            what = "a line end" if is_line_end else "a control character"
            end = "" if _CONTROL.sub("", value[match.start() :]).strip() else " at its end"
            how = f": export {name}=\"$(tr -d '\\r\\n' < FILE)\"" if is_line_end else ""
            return f"the environment variable {name} has {what}{end}. Set it without{how}."
        if name in _ADDRESSES and (flaw := _flaw_of_address(value)):
            return (
                f"the environment variable {name} {flaw}; expected an address such as "
                "https://host:9000. Correct it, or unset it for the provider's own address."
            )
    return None


def _flaw_of_address(value: str) -> str | None:
    """Return what is wrong with the address of a server; None if nothing is."""
    if not value:
        return "is empty"
    try:
        parts = urlsplit(value)
        has_host = bool(parts.hostname)
    except ValueError:  # brackets
        return "is not a valid URL"
    try:
        _ = parts.port
    except ValueError:
        return "has a port that is not a number from 0 to 65535"
    if parts.scheme not in ("http", "https"):
        return "does not start with https:// or http://"
    if not has_host:
        return "names no host"
    if not value.isascii() or " " in value:
        return "has a character that no URL has: a space, or one that is not ASCII"
    return None
