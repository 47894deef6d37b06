"""Where the time of a measured step goes, and which changes would shorten it."""
