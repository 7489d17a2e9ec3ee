"""`uqeval.yaml`: what is evaluated, where it goes, and what it has to hold."""

from uqeval.config.load import FILE, json_schema, load_config, load_rules
from uqeval.config.model import Config, Store

__all__ = ["FILE", "Config", "Store", "json_schema", "load_config", "load_rules"]
