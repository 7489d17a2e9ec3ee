"""The version of uqeval, defined only here."""

VERSION = "0.1.0"
