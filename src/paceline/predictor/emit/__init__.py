"""A plan as flags or configuration files of training programs."""
