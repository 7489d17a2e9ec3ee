"""Rounds of shards without a cluster: each shard counts a pass, then all are added up."""
