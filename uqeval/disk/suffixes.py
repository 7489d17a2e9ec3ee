"""The suffixes of stores and of files of items: which are read where, and names without them."""

from __future__ import annotations

from collections.abc import Collection

NUMPY = (".npy", ".npz")
NIFTI = (".nii", ".nii.gz")
#: Files of arrays. In a video, only those of saved flow are no predictions.
ARRAYS = (*NUMPY, *NIFTI)
#: Stores with groups and arrays inside.
GROUPS = (".zarr", ".zip", ".h5", ".hdf5", ".hdf", ".nc", ".nc4")
#: Files of class ids. `NIFTI` files are read where there are no others.
IDS = (".png",)
#: Files of true numbers, one for each item.
TARGETS = (".png", ".npy", ".pfm")
#: Files of optical flow, one for each pair of frames.
FLOWS = (".flo", ".png", ".npy", ".pfm")
#: Frames of a video, or images beside predictions.
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm")

#: The suffixes that names of items may have. What else follows a dot belongs to the name.
OF_ITEMS = frozenset((*ARRAYS, *TARGETS, *IMAGES))
#: The suffixes of all files that may belong to an item.
OF_FILES = OF_ITEMS | {*FLOWS}
#: The suffixes that stores may have, also two of them: `fog.zarr.zip`.
OF_STORES = frozenset((*GROUPS, *ARRAYS))


def suffix_of(name: str, suffixes: Collection[str] = OF_FILES) -> str:
    """Return the suffix of a file in small letters, such as `.nii.gz`; empty if it has none of
    these. `frame.01` has none, and a name that begins with a dot is no suffix.
    """
    stem, _, last = name.rpartition(".")
    suffix = f".{last.lower()}"
    if suffix == ".gz":
        stem, _, last = stem.rpartition(".")
        suffix = f".{last.lower()}.gz"
    has_stem = stem and not stem.endswith("/")
    return suffix if has_stem and suffix in suffixes else ""


def without_suffix(name: str, suffixes: Collection[str] = OF_ITEMS) -> str:
    """Return the name of an item, or of a store, without the suffix of a file."""
    return name[: len(name) - len(suffix_of(name, suffixes))]
