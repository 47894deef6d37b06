"""Common part of the programs that rivals.py runs: rows on standard input, answers as JSON."""

import contextlib
import io
import json
import logging
import sys
from collections.abc import Callable
from typing import Any


def serve(answer: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]) -> None:
    """Answer every row of the document on standard input; a row that fails has its error."""
    logging.disable(logging.CRITICAL)
    document = json.load(sys.stdin)
    answers = []
    for job in document["jobs"]:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                answers.append(answer(job, document["settings"]))
            except (Exception, SystemExit) as error:  # another program's errors: no answer
                answers.append({"error": f"{type(error).__name__}: {error}"})
    print(json.dumps(answers))
