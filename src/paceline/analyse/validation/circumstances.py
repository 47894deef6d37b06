"""The circumstances of a published row, under the names that fitted effects go by."""

from paceline.analyse.validation.jobs import Job
from paceline.analyse.validation.measurement import Configuration
from paceline.analyse.validation.parts import takes_whole_step
from paceline.predictor.fitted.circumstances import (
    FULL,
    HALF,
    IMAGE,
    OTHER,
    TEXT,
    Circumstances,
    base_of,
)

_KINDS = {"images": IMAGE, "sequences": TEXT}


def circumstances_of(configuration: Configuration, job: Job) -> Circumstances:
    """What effects may depend on in this row. A row's measured speed is no part of it."""
    script = "/".join((configuration.family, configuration.framework, configuration.task))
    program = "/".join(
        (
            configuration.family,
            configuration.framework,
            configuration.model,
            configuration.task,
            str(configuration.sequence or ""),
        )
    )
    kernel = ""
    if takes_whole_step(job):
        batch = configuration.global_batch / job.plan.dp / (job.plan.micro_batches or 1)
        kernel = f"{program}/tp {job.plan.tp}/batch {batch:g}"
    return Circumstances(
        framework=job.framework.name,
        base=base_of(job.framework.name),
        kind=_kind(configuration),
        width=HALF if configuration.half_precision else FULL,
        compiler=_compiler(configuration.method),
        device=job.cluster.device.name,
        model=configuration.model,
        link=_link(job),
        script=script,
        program=program,
        site=_site(configuration),
        kernel=kernel,
    )


def _kind(configuration: Configuration) -> str:
    """What a sample is; where samples per second follow from an assumed length, nothing usual."""
    if configuration.throughput_unit != configuration.batch_unit:
        return OTHER
    return _KINDS.get(configuration.batch_unit, OTHER)


def _compiler(method: str) -> str:
    if "XLA on" in method:
        return "xla"
    return "plain" if "XLA off" in method else ""


def _link(job: Job) -> str:
    link = job.cluster.inter if job.cluster.nodes > 1 else job.cluster.intra
    return link.name if link is not None else ""


def _site(configuration: Configuration) -> str:
    """One machine of one source: its system where the row names one, else its device."""
    system = configuration.method if configuration.method.startswith("system:") else ""
    return f"{configuration.family}/{system or configuration.device}"
