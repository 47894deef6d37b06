"""Packages of third parties, made visible to a command as an installer would."""

import os
import shutil
import tomllib
from pathlib import Path

PACKAGES = Path(__file__).parent / "fixtures" / "plugins"


def install(site: Path, *names: str) -> dict[str, str]:
    """Install packages of the fixtures into ``site``; the environment in which they are seen."""
    for name in names:
        project = tomllib.loads((PACKAGES / name / "pyproject.toml").read_text())["project"]
        shutil.copytree(PACKAGES / name, site, dirs_exist_ok=True)
        information = site / f"{name}-{project['version']}.dist-info"
        information.mkdir(exist_ok=True)
        (information / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        (information / "entry_points.txt").write_text(
            "\n".join(
                line
                for group, points in project["entry-points"].items()
                for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()))
            )
        )
    path = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
