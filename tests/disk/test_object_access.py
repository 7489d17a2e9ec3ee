"""Spellings of URLs."""

from __future__ import annotations

import pytest

from uqeval.disk.files import place_of
from uqeval.disk.object_access import normal_url


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("http://host/a", "HTTP://Host:80/a/"), ("https://host/a/b", "https://host:443//a//b//"),
        ("s3://bucket/a", "S3://bucket/a//"), ("gs://bucket", "gs://bucket/"),
        ("http://[::1]:8080/a", "http://[::1]:8080//a"),
    ],
)  # fmt: skip
def test_spellings_of_one_place(url: str, other: str) -> None:
    assert normal_url(url) == place_of(url) == place_of(other) == url


@pytest.mark.parametrize(
    ("url", "other"),
    [("http://host/a", "http://host/A"), ("http://host:8080/a", "http://host/a"),
     ("s3://b/a", "gs://b/a"), ("s3://b/a", "s3://b//a"), ("http://host/a?x=1", "http://host/a")],
)  # fmt: skip
def test_other_places(url: str, other: str) -> None:
    assert place_of(url) != place_of(other)


def test_paths_follow_the_disk() -> None:
    assert place_of("a/../b/") == place_of("b") != place_of("a")
