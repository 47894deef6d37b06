"""Published studies: their figures, and the same experiments predicted and measured here."""
