"""A local page on which a prediction is turned over: model, place and plan by hand and eye."""
