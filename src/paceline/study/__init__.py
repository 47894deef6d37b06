"""Studies: designed experiments from Python or a file; run, resume, analyse, report."""

from paceline.study.study import Study
from paceline.study.study_settings import StudySettings

__all__ = ["Study", "StudySettings"]
