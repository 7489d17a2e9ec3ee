"""Use cases: each module or package does the work of one command."""
