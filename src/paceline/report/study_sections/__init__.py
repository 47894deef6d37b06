"""The page about a study, part by part, in the order of a paper."""
