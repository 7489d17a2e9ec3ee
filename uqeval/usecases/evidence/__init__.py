"""The files that a safety case needs: a statement to be signed, results, environment, README."""
