"""The command line: one file per command. `start.py` starts it, `entry.py` finds the command."""
