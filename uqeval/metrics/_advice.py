"""Advice for bad scores that several metrics share."""

TEMPERATURE = "Fit a temperature on other images (--fit-on), or train with label smoothing."
RANKING = "Compare other uncertainties (--uncertainty); a deeper ensemble ranks errors better."
SCALE_SIGMA = "Scale σ by a factor fitted on other images."
