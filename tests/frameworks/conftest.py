"""Workers' modules can be imported by their bare names, as when a worker is started."""

import sys

from paceline.frameworks.command import search_path
from paceline.frameworks.framework_registry import framework

sys.path[:0] = map(str, search_path(framework("horovod-torch")))
