"""Paint pictures of a report's items from its stores."""

from uqeval.usecases.gallery.opening import open_gallery

__all__ = ["open_gallery"]
