"""Progress bars: steps and their time, from any program that shows a tqdm or Rich bar."""

import re

from paceline.importers.logs.parsing.log_reader import LineParser, ProgramReader
from paceline.importers.logs.parsing.progress_bars import Bars, has_bar


class ProgressBarParser(LineParser):
    """State of one log with progress bars."""

    program = "tqdm"
    ignored = re.compile(r".*")

    def __init__(self, any_name: bool = False) -> None:
        super().__init__()
        self._bars = Bars(any_name)
        self.rules = self._bars.rules()

    def finish(self) -> None:
        self._bars.add_to(self.log)


READERS = (
    ProgramReader(
        "tqdm",
        "progress bars (tqdm, Rich: Lightning, Accelerate, Levanter)",
        (),
        ProgressBarParser,
        has_bar,
    ),
    ProgramReader(
        "training-bar",
        "log with a single progress bar that counts training steps",
        (),
        lambda: ProgressBarParser(any_name=True),
    ),
)
