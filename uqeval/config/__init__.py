"""`uqeval.yaml`: stores, metrics, outputs and rules of a run."""

from uqeval.config.load import check_file, load_config, load_rules, load_store_names
from uqeval.config.model import FILE, Config, Store, json_schema

__all__ = [
    "FILE",
    "Config",
    "Store",
    "check_file",
    "json_schema",
    "load_config",
    "load_rules",
    "load_store_names",
]
