"""`uqeval.yaml`: stores, metrics, outputs and rules of a run."""

from uqeval.config.load import (
    RulesFile,
    check_file,
    load_config,
    load_rules,
    load_rules_file,
    no_file,
)
from uqeval.config.model import FILE, Config, Store, json_schema, keys_of_options

__all__ = [
    "FILE",
    "Config",
    "RulesFile",
    "Store",
    "check_file",
    "json_schema",
    "keys_of_options",
    "load_config",
    "load_rules",
    "load_rules_file",
    "no_file",
]
