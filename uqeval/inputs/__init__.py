"""Open and check the user's inputs: predictions, ground truth, names."""

from uqeval.inputs.opened import Given, Inputs
from uqeval.inputs.opening import beside_reference, open_inputs
from uqeval.inputs.options import InputOptions

__all__ = ["Given", "InputOptions", "Inputs", "beside_reference", "open_inputs"]
