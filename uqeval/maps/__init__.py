"""Maps: per-pixel reductions [y, x] of one item, the only input of tallies."""

#: Raise this if the same data give other maps. States of another version are then counted again.
VERSION = 5
