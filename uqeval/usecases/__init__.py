"""What users ask for: each module or package is one command's work."""
