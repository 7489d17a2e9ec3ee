"""Settings of temporal consistency, and the presets of published definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uqeval.maps.flow_method import FlowMethod, flow_method
from uqeval.settings import Settings, definition_of, documented, option

#: What each definition in use changes of the defaults, which are those of the paper. Both codes
#: warp frame t back to t-1 and pool the counts of all pairs; neither can be reproduced whole:
#: one warps half a pixel off, the other interpolates class ids.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "vspw": {"grid": "previous", "average": "pooled", "absent": "current"},
    "etc": {"grid": "previous", "average": "pooled", "absent": "zero", "out_of_frame": "clamp"},
}
_FLOW, _CHOICES, _TRACKS = "Optical flow", "Details of the definition", "Long-term tracks"


@documented
@dataclass(frozen=True)
class TemporalSettings(Settings):
    """All settings of temporal consistency; the defaults are those of Varghese et al. 2020.

    `model`: which predictions, where there are several; none of the command line's options.
    """

    definitions = DEFINITIONS

    # fmt: off
    flow: str = option(
        "farneback", "Optical flow: farneback, dis (dis:medium), dis:fast, dis:ultrafast, "
        "tvl1, or file. Parameters follow the name: farneback:winsize=21. Repeat for variants.",
        metavar="METHOD", panel=_FLOW, common=True)
    flow_scale: float = option(
        1.0, "Estimate the flow on images scaled by this factor.",
        metavar="SCALE", panel=_FLOW, shown="1")
    model: str = ""
    occlusion: str = option(
        "none", "With fb, also report scores without the pixels that a forward-backward check "
        "finds occluded.",
        choices=("none", "fb"), panel=_FLOW, several=False, common=True,
        changes_only=("occluded", "tc_visible", "coverage_visible"))
    absent: str = option(
        "exclude", "Classes in neither map: exclude them, or count them as 0. With current, "
        "use only classes of y_t.",
        choices=("exclude", "zero", "current"), panel=_CHOICES)
    least_pixels: int = option(
        0, "Leave classes with fewer pixels in y_t out of TC_t.",
        metavar="N", panel=_CHOICES, least=0, several=False)
    average: str = option(
        "pairs", "mTC is the mean over pairs, or comes from pooled counts.",
        choices=("pairs", "pooled"), panel=_CHOICES, changes_only=("mtc", "mtc_no_warp"))
    grid: str = option(
        "current", "Warp t-1 to the current frame, or t back to the previous frame.",
        choices=("current", "previous"), panel=_CHOICES)
    out_of_frame: str = option(
        "exclude", "Pixels that come from outside the frame: exclude them, or use the nearest "
        "pixel at the border (clamp).",
        choices=("exclude", "clamp"), panel=_CHOICES)
    drop_cuts: bool = option(
        False, "Leave pairs that look like scene cuts out of the means.", panel=_CHOICES)
    tracks: bool = option(
        False, "Compute C26: the fraction of long-term tracks along which the prediction keeps "
        "its label.",
        panel=_TRACKS, common=True, changes_only=("tracks", "tracks_alive", "changed"))
    track_step: int = option(
        8, "Start tracks on a grid with this spacing.",
        metavar="PIXELS", panel=_TRACKS, least=1, several=False, needs="tracks")
    track_length: int = option(
        2, "Ignore shorter tracks.",
        metavar="FRAMES", panel=_TRACKS, least=2, several=False, needs="tracks")
    track_everywhere: bool = option(
        False, "Also start tracks where the image has no structure.", panel=_TRACKS,
        needs="tracks")
    definition: str = definition_of(DEFINITIONS)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        flow_method(self.flow, self.flow_scale)

    @property
    def method(self) -> FlowMethod:
        """Return the method of flow."""
        return flow_method(self.flow, self.flow_scale)
