"""A study: a designed experiment, from Python or a file; run, resumed, analysed, reported."""

from paceline.study.settings import StudySettings
from paceline.study.study import Study

__all__ = ["Study", "StudySettings"]
