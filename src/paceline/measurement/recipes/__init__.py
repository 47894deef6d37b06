"""Recipes: how to run a training program that Paceline does not install, and read its log."""

from paceline.measurement.recipes.recipe import Recipe, fill, placeholders, recipe, recipes

__all__ = ["Recipe", "fill", "placeholders", "recipe", "recipes"]
