"""Plain records: the report, addresses of its values, and intervals. They compute nothing."""
