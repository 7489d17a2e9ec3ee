"""Paint pictures of a report's items from its stores."""
