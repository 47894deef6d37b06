"""Loaded by every Python process of `paceline run`: watches training, changes nothing else.

Python imports the first `sitecustomize` on its path. This one runs the one that it hides, then
starts the watcher. The script must run even if this module fails.
"""

import importlib.machinery
import importlib.util
import os
import sys


def run_hidden(here: str) -> None:
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def main() -> None:
    """Run the hidden sitecustomize, then watch if ``paceline run`` started this process."""
    try:
        run_hidden(os.path.dirname(os.path.abspath(__file__)))
    except Exception as error:
        print(f"paceline: another sitecustomize failed: {error!r}", file=sys.stderr)
    if not os.environ.get("PACELINE_WATCH_DIR"):
        return
    try:
        import paceline_watch

        paceline_watch.start(
            os.environ["PACELINE_WATCH_DIR"], os.environ.get("PACELINE_WATCH_LAYERS") == "1"
        )
    except Exception as error:
        print(f"paceline: cannot watch this process: {error!r}", file=sys.stderr)


main()
