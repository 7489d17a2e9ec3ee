"""Plain records: the report, addresses of its values, and intervals. Light, and compute nothing."""
