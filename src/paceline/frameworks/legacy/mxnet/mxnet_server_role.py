"""The scheduler or the server of MXNet's parameter server: the role is in DMLC_ROLE.

Importing MXNet starts the role and does not return before the workers have left.
"""

from channel import die_with_parent

die_with_parent()

import mxnet  # noqa: F401
