"""Access to object stores: connections, settings from the environment, and error messages."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

from uqeval.disk.object_environment import flaw_of_environment, proxies_of_environment
from uqeval.errors import StoreError, UqevalError, UsageError, cut, printable

Answer = TypeVar("Answer")

#: The prefix of each scheme's environment variables.
_PREFIXES = {
    "s3": "AWS", "s3a": "AWS", "gs": "GOOGLE", "az": "AZURE", "adl": "AZURE", "azure": "AZURE",
    "abfs": "AZURE", "abfss": "AZURE",
}  # fmt: skip
#: Advice about credentials and anonymous access, by prefix.
_CREDENTIALS = {
    "AWS": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN if they are "
    "temporary), or AWS_SKIP_SIGNATURE=true for a public bucket.",
    "GOOGLE": "Set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, or "
    "GOOGLE_SKIP_SIGNATURE=true for a public bucket.",
    "AZURE": "Set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or "
    "AZURE_SKIP_SIGNATURE=true for a public container.",
    "": "Check the URL; a store behind a password cannot be read.",
}
_OF_ZARR_2 = (
    " A Zarr 2 store cannot be read either if the server answers 403, not 404, for missing objects."
)
_PLAIN = (
    "Turn compression off at the server (nginx: `gzip off;`), upload the files without a "
    "Content-Encoding, or copy the store to a disk."
)
_CHECK = "Check the URL, the network and the credentials in the environment."

#: Time limits of connecting, of a pause within an answer, and of a whole answer. `AWS_TIMEOUT`,
#: `GOOGLE_READ_TIMEOUT` and so on in the environment set others.
_LIMITS = {"connect_timeout": "4s", "read_timeout": "20s", "timeout": "300s"}
_FROM_ENVIRONMENT = (*_LIMITS, "allow_http", "allow_invalid_certificates", "proxy_url")

#: Codings of content that compress it. Objects may have others, such as aws-chunked.
_COMPRESSED = frozenset(("gzip", "x-gzip", "compress", "x-compress", "deflate", "br", "zstd"))

#: Retries of the first request: a wrong address should be reported in seconds.
FIRST: dict[str, Any] = {"max_retries": 6, "retry_timeout": timedelta(seconds=8)}
#: Retries of a request that the server may not support: some answer 501, which is retried.
BRIEF: dict[str, Any] = {"max_retries": 3, "retry_timeout": timedelta(seconds=4)}
#: Retries of later requests: the server has answered before, so waiting is better than losing a
#: run.
LATER: dict[str, Any] = {
    "max_retries": 40,
    "retry_timeout": timedelta(seconds=90),
    "backoff": {"max_backoff": timedelta(seconds=5)},
}


class Connection:
    """A connection to the objects below `url`, through obstore; credentials come from the
    environment.

    Raises `kind` if the server cannot be used or its answer is an error. Messages about the
    connection itself show the URL `shown`.
    """

    def __init__(self, url: str, shown: str, kind: type[UqevalError] = StoreError) -> None:
        self._kind = kind
        #: Whether the server has answered, and whether with an object or a list.
        self._answered = self._has_read = False
        try:
            import obstore
            import obstore.store
        except ImportError as error:
            raise kind(f"{cut(shown)}: a URL needs obstore: pip install obstore.") from error
        if flaw := flaw_of_environment(prefix_of(url)):
            raise kind(f"{cut(shown)}: {flaw}")
        self.obstore: Any = obstore
        connect: Callable[..., Any] = partial(
            obstore.store.from_url, normal_url(url), client_options=client_options(url)
        )
        try:
            self._first, self.brief, self.later = (
                without_panic(partial(connect, retry_config=retries))
                for retries in (FIRST, BRIEF, LATER)
            )
        except Exception as error:  # see `ask`
            raise self.failure(shown, " cannot be opened", error) from error

    def ask(self, url: str, problem: str, ask: Callable[[Any], Answer]) -> Answer:
        """Return the answer to a request about an object or folder.

        Raises `FileNotFoundError`. The first request has a shorter time limit than later ones.
        """
        store, retries = (self.later, LATER) if self._answered else (self._first, FIRST)
        try:
            answer = _repeated(lambda: ask(store), retries)
        except UqevalError:
            raise
        except FileNotFoundError as error:
            if _is_no_bucket(error):
                raise self.failure(url, problem, error) from error
            self._answered = True
            raise
        # Any `Exception`, because the errors of obstore have no common base class across versions.
        except Exception as error:
            if (status := _STATUS.search(_first_line(error))) and status[1].startswith("410"):
                self._answered = True
                raise FileNotFoundError(str(error)) from error
            raise self.failure(url, problem, error) from error
        self._answered = self._has_read = True
        return answer

    def content(self, url: str, key: str, response: Any) -> memoryview:
        """Return the bytes of an object in an answer. Raises if the server has compressed them:
        sizes and ranges are then not those of the stored bytes."""
        coding = str(response.attributes.get("Content-Encoding", ""))
        if not _COMPRESSED.isdisjoint(coding.lower().replace(",", " ").split()):
            raise self._kind(
                f"{cut(url)}: the answer for {cut(key)} is compressed (Content-Encoding: "
                f"{cut(coding)}); expected the bytes of the file. {_PLAIN}"
            )
        return memoryview(response.bytes())

    def failure(self, url: str, problem: str, error: Exception) -> UqevalError:
        """Return the error to raise where obstore raised `error` of a request for `url`.

        `problem`: what cannot be done, such as " cannot be read" or ": OBJECT cannot be read".
        """
        return self._kind(_message(url, problem, error, self._has_read))


def _repeated(ask: Callable[[], Answer], retries: Mapping[str, Any]) -> Answer:
    """Return the answer to a request that is repeated while the answer is cut short.

    obstore itself repeats one from where it was cut, but only if the server has ETags and range
    requests.
    """
    limit = retries.get("retry_timeout", timedelta(seconds=90))
    end = time.monotonic() + limit.total_seconds()
    for attempt in range(retries["max_retries"]):
        try:
            return without_panic(ask)
        except Exception as error:
            if not _is_cut_short(error) or time.monotonic() > end:
                raise
        time.sleep(min(0.1 * 2**attempt, 5.0))
    return without_panic(ask)


class _Panic(Exception):
    """A bug in the client of object stores, or a setting that it cannot use."""


def without_panic(ask: Callable[[], Answer]) -> Answer:
    """Return the answer to a request; raise an `Exception` if the client panics.

    Its `PanicException` is no `Exception`, so it would end the process. Its text is left out: it
    could repeat a secret of the environment.
    """
    try:
        return ask()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        what = "the client (obstore) panicked, as it does for invalid settings"
        raise _Panic(what) from error


def _is_cut_short(error: Exception) -> bool:
    """Return whether obstore raised `error` because an answer was cut short or stalled."""
    line = str(error).partition("\n")[0]
    # The server refused the rest of a whole object. A range that uqeval asks for is another error.
    is_rest = "Range request not supported" in line and line.startswith("Generic")
    return not isinstance(error, UqevalError) and ("body error" in line or is_rest)


#: The ports that a URL need not have.
_PORTS = {"http": ":80", "https": ":443"}


#: Other names for a scheme.
_SAME_SCHEME = {"s3a": "s3", "adl": "az", "azure": "az", "abfs": "az", "abfss": "az"}
#: Characters that a segment of a web address may have unescaped.
_UNESCAPED = "!$&'()*+,;=:@~"


def normal_url(url: str) -> str:
    """Return the one spelling of all URLs of the same place, which is a valid URL.

    Keys of an object store are taken literally: `%` is a percent sign. At a web server, `%70` is
    `p`, and the host's case, a default port, dots and repeated slashes do not matter.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if parts.scheme in _PORTS:
        host = parts.netloc.lower().removesuffix(_PORTS[parts.scheme])
        segments: list[str] = []
        for text in parts.path.split("/"):
            segment = unquote_to_bytes(text.encode(errors="surrogatepass"))
            if segment == b".." and segments:
                segments.pop()
            elif segment not in (b"", b".", b".."):
                segments.append(quote(segment, safe=_UNESCAPED))
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{'/'.join([host, *segments])}{query}"
    scheme, _, place = url.partition("://")
    scheme = scheme.lower()
    bucket, slash, key = place.rstrip("/").partition("/")
    key = quote(key, errors="surrogatepass")
    return f"{_SAME_SCHEME.get(scheme, scheme)}://{bucket}{slash}{key}"


def prefix_of(url: str) -> str:
    """Return the prefix of the environment variables for a URL; empty for a web server."""
    return _PREFIXES.get(url.partition("://")[0].lower(), "")


def client_options(url: str) -> dict[str, Any]:
    """Return the settings of the HTTP client: time limits, and those of the environment.

    obstore ignores the environment if it receives any settings.
    """
    prefix = prefix_of(url)
    names = {key: os.environ.get(f"{prefix}_{key.upper()}") for key in _FROM_ENVIRONMENT}
    options: dict[str, Any] = _LIMITS | {k: value for k, value in names.items() if prefix and value}
    if not prefix:  # else a server may compress its answers
        options["default_headers"] = {"Accept-Encoding": "identity"}
    for key in ("allow_http", "allow_invalid_certificates"):
        if key in options:
            options[key] = str(options[key]).strip().lower() in ("true", "1", "yes", "y", "on")
    endpoints = (url, *(os.environ.get(f"{prefix}_{name}", "") for name in _ENDPOINTS if prefix))
    if any(endpoint.lower().startswith("http://") for endpoint in endpoints):
        options.setdefault("allow_http", True)
    return options


_ENDPOINTS = ("ENDPOINT", "ENDPOINT_URL", "ENDPOINT_URL_S3", "STORAGE_ENDPOINT")


def check_url(url: str) -> None:
    """Raise `UsageError` for a URL with a password or a query, because reports contain their URLs,
    and `StoreError` for one that names no place at a web server or in an object store."""
    try:
        parts = urlsplit(url)
        secret = parts.password is not None
    except ValueError as error:
        raise StoreError(f"{cut(url)} is not a valid URL ({error}). Check it.") from error
    if prefix_of(url) != "AZURE":  # abfss://container@account…
        secret = secret or parts.username is not None
    if secret:
        raise UsageError(
            f"{cut(url)} contains credentials, which would appear in reports and logs. Leave "
            f"them out of the URL. {_CREDENTIALS[prefix_of(url)]}"
        )
    if parts.query or parts.fragment:
        raise UsageError(
            f"{cut(url.partition('?')[0].partition('#')[0])}: the URL has a query or a fragment "
            "(a signature?), so it names one object, not a store. Give the URL without it. "
            f"{_CREDENTIALS[prefix_of(url)]}"
        )
    if parts.scheme == "file":
        path = unquote(parts.path)
        raise StoreError(f"{cut(url)} is a file of this machine; give its path: {cut(path)}.")
    if parts.scheme not in (*_PREFIXES, *_PORTS):
        raise StoreError(
            f"{cut(url)}: uqeval does not read {cut(parts.scheme)}:// URLs; expected s3://, gs://, "
            "az://, https:// or http://."
        )
    # A client of HTTP leaves these out, and then reads another object.
    if re.search(r"[\0-\x1f\x7f]", url):
        raise StoreError(f"{cut(url)}: the URL has a control character; remove it.")
    if re.search("[\ud800-\udfff]", url):
        raise StoreError(f"{cut(url)}: the URL is not text in UTF-8, as all URLs are.")
    key_parts = parts.path.rstrip("/").split("/")[1:]
    if parts.scheme not in _PORTS and any(part in ("", ".", "..") for part in key_parts):
        raise StoreError(
            f"{cut(url)}: expected a URL such as s3://bucket/preds.zarr, without empty parts, '.' "
            "and '..'."
        )


#: Names for a bucket that does not exist, in the answers of servers.
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|specified bucket does not exist", re.I)
_STATUS = re.compile(r"status code: (\d{3}(?: [A-Z][A-Za-z-]*)*)")
_CODE = re.compile(r"<Code>(\w{1,80})</Code>")
_TRIES = re.compile(r" in ([\d.]+m?s), after (\d+) retries")


def _is_no_bucket(error: Exception) -> bool:
    """Return whether the server answered that the bucket does not exist."""
    return _NO_BUCKET.search(str(error)) is not None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _message(url: str, problem: str, error: Exception, has_read: bool) -> str:
    """Return the message about an `error` that obstore raised; `problem` as in `failure`.

    It has neither the server's whole answer, which may repeat keys, nor queries of URLs.
    `has_read`: whether the server gave another object.
    """
    text, line = str(error), _first_line(error)
    status = _STATUS.search(line)
    code = _CODE.search(text)
    answer = ", ".join(m[1] for m in (status, code) if m)
    prefix = prefix_of(url)
    if _is_no_bucket(error):
        what, advice = "there is no such bucket", "Check its name, and the endpoint."
    elif isinstance(error, FileNotFoundError):
        what, advice = "it does not exist", "Run again when no process writes to the store."
    elif "169.254.169.254" in line or "token request" in line or "MissingAccount" in text:
        what, advice = "the environment has no credentials", _CREDENTIALS[prefix]
    elif status and status[1][:3] in ("401", "403") and has_read and not prefix:
        what = f"the server refuses access ({answer}), but not to other objects of the store"
        advice = (
            "If this one does not exist, the server must answer 404, not 403: a public bucket of "
            "S3 does so if anyone may list it (s3:ListBucket). Or copy the store to a disk."
        )
    elif status and status[1][:3] in ("401", "403"):
        what = f"the server refuses access ({answer})"
        advice = _CREDENTIALS[prefix] + ("" if prefix else _OF_ZARR_2)
    elif status:
        what, advice = f"the server answers {answer}{_retries(line)}", "Try again later."
    elif _is_cut_short(error):
        what = f"the answer was cut short or stalled{_retries(line)}"
        advice = "Check the network and the server, and run again."
    elif "Content-Length Header missing" in line:
        what = "the answer has no Content-Length, as if the server compresses or generates it"
        advice = _PLAIN
    elif "Range request not supported" in line:
        what = "the server does not support range requests, which reading sharded arrays needs"
        advice = (
            "Use a server that supports them, such as nginx or an object store, or copy the store "
            "to a disk, or write it without shards."
        )
    elif isinstance(error, _Panic):
        what = line
        advice = (
            f"Check the {prefix}_… variables of the environment and the files that they name: line "
            "ends, ports, addresses."
            if prefix
            else _CHECK
        )
    elif "error sending request" in line:
        what = f"the server does not answer{_retries(line)}"
        endpoint = f"{prefix}_ENDPOINT" if prefix == "AWS" else "the host of the URL"
        proxies = " and ".join(proxies_of_environment(prefix))
        advice = (
            f"Check the network, {endpoint} and the proxy in {proxies}."
            if proxies
            else f"Check the network and {endpoint}."
        )
    else:
        what, advice = cut(printable(line).split("<", 1)[0]).rstrip(". "), _CHECK
    return f"{cut(url)}{problem}: {what}. {advice}"


def _retries(line: str) -> str:
    tries = _TRIES.search(line)
    return f" after {tries[2]} retries in {float(_seconds(tries[1])):.1f} s" if tries else ""


def _seconds(text: str) -> float:
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text[:-1])
