"""`uqeval.yaml`: stores, metrics, outputs and rules of a run."""

from uqeval.config.json_schema import json_schema
from uqeval.config.load import FILE, check_file, load_config, load_rules
from uqeval.config.model import Config, Store

__all__ = ["FILE", "Config", "Store", "check_file", "json_schema", "load_config", "load_rules"]
