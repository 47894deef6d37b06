"""Statistics of recorded launches: configurations, rankings, effects, regressions."""
