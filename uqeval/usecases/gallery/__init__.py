"""Paint pictures of a report's items from its stores."""

from uqeval.usecases.gallery.opening import gallery_of, open_gallery

__all__ = ["gallery_of", "open_gallery"]
