"""Check the environment variables of object stores, whose client panics on some values."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

#: The variables with one line that the client reads. Others, such as those with JSON, may have
#: several.
_ONE_LINE = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|TOKEN|(DEFAULT_)?REGION"
    r"|ENDPOINT(_URL(_S3)?)?|ROLE_ARN|ROLE_SESSION_NAME|WEB_IDENTITY_TOKEN_FILE"
    r"|CONTAINER_CREDENTIALS_(RELATIVE|FULL)_URI|CONTAINER_AUTHORIZATION_TOKEN_FILE|PROXY_URL)"
    r"|AZURE_((STORAGE_)?(ACCOUNT_NAME|ACCOUNT_KEY|ACCESS_KEY|SAS_KEY|SAS_TOKEN|TOKEN|CLIENT_ID"
    r"|CLIENT_SECRET|TENANT_ID|AUTHORITY_ID|ENDPOINT)|AUTHORITY_HOST|FEDERATED_TOKEN_FILE"
    r"|(MSI|IDENTITY)_ENDPOINT|PROXY_URL)"
    r"|GOOGLE_(SERVICE_ACCOUNT(_PATH)?|APPLICATION_CREDENTIALS|BASE_URL|PROXY_URL)"
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
        if not prefix or name.partition("_")[0] != prefix:
            continue
        if (match := _CONTROL.search(value)) and _ONE_LINE.fullmatch(name):
            is_line_end = match[0] in "\r\n"
            what = "a line end" if is_line_end else "a control character"
            end = "" if _CONTROL.sub("", value[match.start() :]).strip() else " at its end"
            how = f": export {name}=\"$(tr -d '\\r\\n' < FILE)\"" if is_line_end else ""
            return f"the environment variable {name} has {what}{end}. Set it without{how}."
        if name == f"{prefix}_PROXY_URL" and (flaw := _flaw_of_proxy(value)):
            return (
                f"the environment variable {name} {flaw}; expected the address of a proxy, such as "
                "http://host:3128. Correct it, or unset it."
            )
        has_other = any(os.environ.get(f"{name}_URL{end}") for end in ("", "_S3"))
        is_used = name in _ADDRESSES and bool(value or not has_other)
        if is_used and (flaw := _flaw_of_address(value)):
            return (
                f"the environment variable {name} {flaw}; expected an address such as "
                "https://host:9000. Correct it, or unset it for the provider's own address."
            )
    return None


def proxies_of_environment(prefix: str) -> list[str]:
    """Return the variables of the environment that name a proxy, for a prefix such as AWS."""
    plain = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    return [name for name in (f"{prefix}_PROXY_URL", *plain) if os.environ.get(name)]


def _flaw_of_proxy(value: str) -> str | None:
    """Return what is wrong with the address of a proxy, which may lack its scheme; None if nothing
    is, as for an empty one, which is not used."""
    value = value.strip()
    scheme, _, place = value.rpartition("://")
    is_other = scheme not in ("", "http", "https")  # the client reports these when it connects
    return None if not value or is_other else _flaw_of_address(f"http://{place}")


def _flaw_of_address(value: str) -> str | None:
    """Return what is wrong with the address of a server; None if nothing is."""
    if not value:
        return "is empty"
    if not value.isascii() or " " in value:
        return "has a character that no URL has: a space, or one that is not ASCII"
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
    return None if has_host else "names no host"
