"""Records training scripts that users run, with or without changes to them."""
