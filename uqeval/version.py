"""The version of uqeval: the only place that says it."""

VERSION = "0.1.0"
