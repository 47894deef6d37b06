"""Worker scripts import each other as files of one folder, as they do when they are started."""

import sys
from pathlib import Path

import paceline.measurement.workers

sys.path.insert(0, str(Path(paceline.measurement.workers.__file__).parent))
