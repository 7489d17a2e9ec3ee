"""Spellings of URLs."""

from __future__ import annotations

import pytest
from command import refused

from uqeval.disk.files import place_of
from uqeval.disk.object_access import check_url, normal_url
from uqeval.errors import StoreError


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("http://host/a", "HTTP://Host:80/a/"), ("https://host/a/b", "https://host:443//a//b//"),
        ("s3://bucket/a", "S3://bucket/a//"), ("gs://bucket", "gs://bucket/"),
        ("http://[::1]:8080/a", "http://[::1]:8080//a"), ("http://host/p", "http://host/x/../%70/."),
        ("http://host/a%2Fb/%C3%A9", "http://host/a%2fb/é"), ("http://host/a=b,c", "http://host/a%3Db%2Cc"),
        ("s3://bucket/a", "s3a://bucket/a"), ("az://c/a", "azure://c/a"), ("az://c/a", "ABFS://c/a/"),
        ("az://c@me.dfs.core.windows.net/a", "abfss://c@me.dfs.core.windows.net/a"),
    ],
)  # fmt: skip
def test_spellings_of_one_place(url: str, other: str) -> None:
    assert normal_url(url) == place_of(url) == place_of(other) == url


@pytest.mark.parametrize(
    ("url", "other"),
    [("http://host/a", "http://host/A"), ("s3://b/\udce9", "s3://b/é"),
     ("http://b/\udce9", "http://b/é"), ("http://host:8080/a", "http://host/a"),
     ("s3://b/a", "gs://b/a"), ("s3://b/a", "s3://b//a"), ("http://host/a?x=1", "http://host/a"),
     ("s3://b/p", "s3://b/%70"), ("http://host/a%2Fb", "http://host/a/b")],
)  # fmt: skip
def test_other_places(url: str, other: str) -> None:
    assert place_of(url) != place_of(other)


def test_paths_follow_the_disk() -> None:
    assert place_of("a/../b/") == place_of("b") != place_of("a")


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("file:///data/a%20b.zarr", "is a file of this machine; give its path: /data/a b.zarr"),
        ("memory://a", "does not read memory:// URLs; expected s3://"),
        ("s3://bucket/a\nb", "has a control character"),
        ("http://host/a\tb", "has a control character"),
        ("s3://bucket/caf\udce9", "is not text in UTF-8"),
        ("http://host/caf\udce9", "is not text in UTF-8"),
        ("s3://bucket/./p.zarr", "without empty parts, '.' and '..'"),
        ("s3://bucket/a//p.zarr", "without empty parts, '.' and '..'"),
        ("S3://bucket/x/../p.zarr", "without empty parts, '.' and '..'"),
    ],
)
def test_urls_that_name_no_place(url: str, part: str) -> None:
    refused(lambda: check_url(url), part, error=StoreError)


@pytest.mark.parametrize(
    "url", ["s3://b/a..b/.c", "http://host/../a", "abfss://c@me.dfs.core.windows.net/a", "gs://b"]
)
def test_urls_of_places(url: str) -> None:
    check_url(url)
