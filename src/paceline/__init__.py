"""Paceline measures, models and explains distributed deep-learning training.

Public names are imported on first use, so that ``import paceline`` loads no framework.
"""

import importlib
from typing import TYPE_CHECKING, Any

from paceline.errors import PacelineError

if TYPE_CHECKING:
    from paceline.analysis.api import compare
    from paceline.calibration.api import calibrate, calibrate_links
    from paceline.catalog.api import (
        clusters,
        devices,
        framework_profiles,
        inspect,
        libraries,
        links,
        models,
        predictor_constants,
        published_rows,
        published_sources,
        recipes,
    )
    from paceline.explanation.api import explain, trace, utilisation
    from paceline.explore.api import export_pages, serve_explorer
    from paceline.frameworks.api import (
        install_frameworks,
        installed_frameworks,
        remove_frameworks,
        use_framework,
        verify_frameworks,
    )
    from paceline.hardware import Cluster
    from paceline.importers.api import import_launches, read_log
    from paceline.lab.api import create_lab, labs, remove_lab
    from paceline.launch.api import run_ranks
    from paceline.measurement.api import check_hosts, doctor, run
    from paceline.measurement.recording.record import record
    from paceline.predictor.api import bandwidth_for, predict, whatif
    from paceline.predictor.plan.plan import Plan
    from paceline.predictor.prediction import Prediction
    from paceline.predictor.search.api import advise
    from paceline.predictor.sweep.api import sweep
    from paceline.publications.api import reproduce
    from paceline.report.api import write_report
    from paceline.store import Store
    from paceline.store.api import (
        annotate,
        delete_study,
        export,
        launches,
        merge_store,
        rename_study,
        show,
        studies,
    )
    from paceline.study import Study
    from paceline.study.api import demo, measure, noise_test, rerun
    from paceline.study.package import package_study, verify_package
    from paceline.validation.api import validate
    from paceline.workload.capture import capture
    from paceline.workload.workload import Workload

__version__ = "0.2.0"

_HOMES = {
    "paceline.analysis.api": "compare",
    "paceline.calibration.api": "calibrate calibrate_links",
    "paceline.catalog.api": "clusters devices framework_profiles inspect libraries links models "
    "predictor_constants published_rows published_sources recipes",
    "paceline.explanation.api": "explain trace utilisation",
    "paceline.explore.api": "export_pages serve_explorer",
    "paceline.frameworks.api": "install_frameworks installed_frameworks remove_frameworks "
    "use_framework verify_frameworks",
    "paceline.hardware": "Cluster",
    "paceline.importers.api": "import_launches read_log",
    "paceline.lab.api": "create_lab labs remove_lab",
    "paceline.launch.api": "run_ranks",
    "paceline.measurement.api": "check_hosts doctor run",
    "paceline.measurement.recording.record": "record",
    "paceline.predictor.api": "bandwidth_for predict whatif",
    "paceline.predictor.sweep.api": "sweep",
    "paceline.predictor.plan.plan": "Plan",
    "paceline.predictor.prediction": "Prediction",
    "paceline.predictor.search.api": "advise",
    "paceline.publications.api": "reproduce",
    "paceline.report.api": "write_report",
    "paceline.study.package": "package_study verify_package",
    "paceline.store": "Store",
    "paceline.store.api": "annotate delete_study export launches merge_store rename_study show "
    "studies",
    "paceline.study": "Study",
    "paceline.study.api": "demo measure noise_test rerun",
    "paceline.validation.api": "validate",
    "paceline.workload.capture": "capture",
    "paceline.workload.workload": "Workload",
}
_LAZY = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = [
    "Cluster",
    "PacelineError",
    "Plan",
    "Prediction",
    "Store",
    "Study",
    "Workload",
    "__version__",
    "advise",
    "annotate",
    "bandwidth_for",
    "calibrate",
    "calibrate_links",
    "capture",
    "check_hosts",
    "clusters",
    "compare",
    "create_lab",
    "delete_study",
    "demo",
    "devices",
    "doctor",
    "explain",
    "export",
    "export_pages",
    "framework_profiles",
    "import_launches",
    "inspect",
    "install_frameworks",
    "installed_frameworks",
    "labs",
    "launches",
    "libraries",
    "links",
    "measure",
    "merge_store",
    "models",
    "noise_test",
    "package_study",
    "predict",
    "predictor_constants",
    "published_rows",
    "published_sources",
    "read_log",
    "recipes",
    "record",
    "remove_frameworks",
    "remove_lab",
    "rename_study",
    "reproduce",
    "rerun",
    "run",
    "run_ranks",
    "serve_explorer",
    "show",
    "studies",
    "sweep",
    "trace",
    "use_framework",
    "utilisation",
    "validate",
    "verify_frameworks",
    "verify_package",
    "whatif",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'paceline' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
