"""Says at the end which frameworks ran their contract, and which were left.

Workers' modules can be imported by their bare names, as when a worker is started.
"""

import re
import sys

from paceline.frameworks.command import search_path
from paceline.frameworks.framework_registry import framework

sys.path[:0] = map(str, search_path(framework("torch-ddp")))

CONTRACT = re.compile(r"test_a_framework_keeps_its_contract\[([\w-]+)\]")


def pytest_terminal_summary(terminalreporter):
    lines = [
        (heading, _frameworks(terminalreporter.stats.get(outcome, [])))
        for outcome, heading in (
            ("passed", "contract kept"),
            ("failed", "contract broken"),
            ("skipped", "left, no time to build"),
            ("deselected", "run with --all or --frameworks"),
        )
    ]
    if any(names for _, names in lines):
        terminalreporter.section("frameworks")
        for heading, names in lines:
            if names:
                terminalreporter.write_line(f"{heading}: {', '.join(names)}")


def _frameworks(reports):
    found = [CONTRACT.search(report.nodeid) for report in reports]
    return list(dict.fromkeys(match[1] for match in found if match))
