"""File access: regular files only, bounded reads, atomic writes."""
