"""What published measurements teach the predictor, and how far it may be trusted.

Five quantities of a step are not on any data sheet: how much longer layers take than the rates of
a device say, how fast messages are beside their line rate, which share of hidden communication
shows after all, how much workers vary, and what a second replica costs whatever its size. Each is
a constant plus effects of named circumstances. The variance among the levels of a circumstance is
estimated, so that a level nobody measured falls back to the constant and widens the interval by
what such levels vary.
"""
