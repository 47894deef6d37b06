"""Watches training scripts that know nothing of Paceline, and records those that do."""
