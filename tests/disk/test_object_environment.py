"""Values of environment variables on which the client of object stores panics."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import TIMEOUT, environment, refused, run_uqeval
from object_server import SECRET, ObjectServer

from uqeval.disk.object_access import Connection
from uqeval.disk.object_environment import flaw_of_environment, proxies_of_environment
from uqeval.disk.objects import ObjectFile
from uqeval.errors import OutputError, StoreError

pytest.importorskip("obstore")
#: No server answers there.
CREDENTIALS = ObjectServer.credentials("http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("name", "value", "flaw"),
    [
        ("AWS_SESSION_TOKEN", f"{SECRET}\n", "has a line end at its end"),
        ("AWS_SECRET_ACCESS_KEY", f"{SECRET}\r\n", "has a line end at its end"),
        ("AWS_ACCESS_KEY_ID", f"{SECRET}\nx", "has a line end. Set it without"),
        ("AWS_REGION", f"{SECRET}\x7f", "has a control character at its end"),
        ("AZURE_STORAGE_ACCOUNT_NAME", f"{SECRET}\n", "has a line end"),
        ("AZURE_STORAGE_TOKEN", f"{SECRET}\n", "has a line end"),
        ("AWS_ENDPOINT", f"http://me:{SECRET}@127.0.0.1:99999", "has a port that is not a number"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:abc", "has a port that is not a number"),
        ("AWS_ENDPOINT_URL_S3", f"{SECRET}:9000", "does not start with https:// or http://"),
        ("AWS_ENDPOINT", "https:///x", "names no host"),
        ("AWS_ENDPOINT", "", "is empty"),
        ("AWS_ENDPOINT", "http://[::1", "is not a valid URL"),
        ("AWS_ENDPOINT", "http://host:1/a b", "has a character that no URL has"),
        ("AWS_ENDPOINT", "http://host:9000 ", "has a character that no URL has"),
        ("AWS_ENDPOINT", "http://ü.org", "has a character that no URL has"),
        ("GOOGLE_BASE_URL", "http://127.0.0.1:99999", "has a port that is not a number"),
        ("AWS_PROXY_URL", f"http://me:{SECRET}@host:99999", "has a port that is not a number"),
        ("AZURE_PROXY_URL", "no url", "has a character that no URL has"),
        ("GOOGLE_PROXY_URL", "http://", "names no host"),
    ],
)
def test_the_variable_is_named(
    name: str, value: str, flaw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    text = flaw_of_environment(name.partition("_")[0])
    assert text is not None and f"variable {name} {flaw}" in text and SECRET not in text
    assert flaw_of_environment("") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_SESSION_TOKEN", "a\tb é"), ("AWS_ENDPOINT", "http://[::1]:9000/"),
        ("AWS_ENDPOINT_URL", "https://user:pass@host/path"), ("AZURE_CREDENTIALS", "{\n}\n"),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", "{\n}\n"), ("AWSX_TOKEN", "a\n"), ("GOOGLE_ENDPOINT", ""),
        ("AWS_LAMBDA_TOKEN", "{\n}"), ("GOOGLE_CLIENT_SECRET", "{\n}"),
        ("AZURE_DEVOPS_TOKEN", "a\n"), ("AWS_PROXY_URL", "host:3128"), ("AWS_PROXY_URL", ""),
        ("AWS_PROXY_URL", "http://host:3128 "), ("GOOGLE_PROXY_URL", "socks5://host:1080"),
    ],
)  # fmt: skip
def test_values_that_are_valid_or_not_used(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for own, text in (CREDENTIALS | {name: value}).items():
        monkeypatch.setenv(own, text)
    assert [flaw_of_environment(prefix) for prefix in ("AWS", "GOOGLE", "AZURE")] == [None] * 3


def test_an_empty_address_beside_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as `AWS_ENDPOINT=${X:-}` in a file of Compose."""
    monkeypatch.setenv("AWS_ENDPOINT", "")
    assert "is empty" in str(flaw_of_environment("AWS"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://host:9000")
    assert flaw_of_environment("AWS") is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("calibration", "s3://bucket/p.zarr"), ("gate", "s3://bucket/r.json", "rules.yaml"),
        ("calibration", "none.zarr", "-o", "s3://bucket/r.json"),
    ],
)  # fmt: skip
def test_commands_refuse_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A gate must not end with 1, which means that a rule fails."""
    (tmp_path / "rules.yaml").write_text("pavpu.pavpu: {min: 0.1}\n")
    outcome = run_uqeval(*arguments, cwd=tmp_path, env=CREDENTIALS | {"AWS_SESSION_TOKEN": "t\n"})
    message = refused(outcome, "s3://bucket/", "AWS_SESSION_TOKEN has a line end at its end")
    assert message.startswith("uqeval: ") and "panicked" not in message


@pytest.mark.parametrize("name", ["AWS_PROXY_URL", "HTTPS_PROXY", "all_proxy"])
def test_a_proxy_that_does_not_answer_is_named(name: str, tmp_path: Path) -> None:
    env = {own: text for own, text in CREDENTIALS.items() if "ENDPOINT" not in own}
    env |= dict.fromkeys(proxies_of_environment("AWS"), "")
    env[name] = f"http://me:{SECRET}@127.0.0.1:1"
    outcome = run_uqeval("inspect", "s3://bucket/p.zarr", cwd=tmp_path, env=env)
    message = refused(outcome, f"Check the network, AWS_ENDPOINT and the proxy in {name}.")
    assert SECRET not in message


class PanicException(BaseException):
    """As that of obstore, which cannot be imported."""


def test_a_panic_is_an_error_of_the_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For settings that are not checked, such as those in files. Interrupts are not caught."""
    for name, text in CREDENTIALS.items():
        monkeypatch.setenv(name, text)
    connection = Connection("s3://bucket/a", "s3://bucket/a")

    def panic(*arguments: object, **options: object) -> None:
        raise PanicException(SECRET)

    message = refused(
        lambda: connection.ask("s3://bucket/a", " cannot be read", panic),
        "s3://bucket/a cannot be read", "panicked", "AWS_… variables", error=StoreError,
    )  # fmt: skip
    assert SECRET not in message
    file = ObjectFile("s3://bucket/r.json", OutputError)
    monkeypatch.setattr(file._obstore, "put", panic)
    (tmp_path / "r.json").write_text("{}")
    refused(lambda: file.replace(tmp_path / "r.json", None), "panicked", error=OutputError)
    monkeypatch.setattr(file._obstore.store, "from_url", panic)
    refused(lambda: Connection("gs://b/a", "gs://b/a"), "cannot be opened", error=StoreError)

    def interrupt(store: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        connection.ask("s3://bucket/a", "be read", interrupt)


def test_a_real_panic_has_this_name(tmp_path: Path) -> None:
    """A service account is read by the client alone."""
    account = ObjectServer.google(_Unreachable(), tmp_path)  # type: ignore[arg-type]
    code = "from uqeval.disk.objects import ObjectFile\nObjectFile('gs://b/r.json').version()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(**account), capture_output=True, text=True,
        check=False, timeout=TIMEOUT,
    )  # fmt: skip
    assert "uqeval.errors.StoreError: gs://b/r.json cannot be found: the client" in done.stderr


class _Unreachable:
    url = "http://127.0.0.1:99999"
