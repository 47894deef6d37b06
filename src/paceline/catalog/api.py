"""Public functions that list what Paceline knows: models, hardware, constants, publications."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from paceline.catalog.listing import Listing
from paceline.errors import InputError, UnknownNameError
from paceline.naming import did_you_mean, unknown_name
from paceline.render.files import write_text
from paceline.render.result import PublicResult
from paceline.render.table import Table
from paceline.workload.graph import Graph

SHOWN_ROWS = 40


def models(search: str = "") -> Listing:
    """The built-in models whose name contains ``search`` [all], with costs of one sample."""
    from paceline.catalog.model_tables import model_facts, model_table
    from paceline.workload import zoo

    names = zoo.names_like(search)
    if not names:
        raise UnknownNameError(
            f"no model name contains '{search}'.{did_you_mean(search, zoo.names())}",
            "run 'paceline catalog models' for a list",
        )
    facts = tuple(map(model_facts, names))
    return Listing(
        "models", facts, (model_table(facts),), (f"paceline inspect {names[0]} --batch 32",)
    )


def devices(name: str | None = None, *, file: Path | str | None = None) -> Listing:
    """All devices, or the device ``name`` with the source of each number.

    ``file`` is a TOML file with your hardware; its entries override those of the catalogue.
    """
    return _hardware("devices", name, file)


def links(name: str | None = None, *, file: Path | str | None = None) -> Listing:
    """All links, or the link ``name`` with the source of each number; ``file`` as in `devices`."""
    return _hardware("links", name, file)


def clusters(name: str | None = None, *, file: Path | str | None = None) -> Listing:
    """All clusters, or the cluster ``name`` with its parts; ``file`` as in `devices`."""
    return _hardware("clusters", name, file)


def libraries(name: str | None = None) -> Listing:
    """All communication libraries, or the algorithms of the library ``name``."""
    return _hardware("libraries", name, None)


def framework_profiles(name: str | None = None) -> Listing:
    """All frameworks as the predictor models them, or the overheads of the framework ``name``."""
    return _hardware("frameworks", name, None)


def predictor_constants(name: str | None = None, *, status: str | None = None) -> Listing:
    """Constants of the predictor [all], with unit, status and source.

    ``name`` is a constant, shown with the effect of a 10 % increase on standard cases, or a prefix
    such as ``libraries.nccl``. ``status`` is fact, prior or fitted.
    """
    from paceline.catalog.constant_tables import constant_entry, constant_list
    from paceline.constants import constant, shipped_constants

    every = shipped_constants().items()
    below = [one for key, one in every if name is None or key.startswith(f"{name}.")]
    if name is not None and not below:
        return constant_entry(constant(name))
    listed = [one for one in below if status in (None, one.status)]
    if not listed:
        raise InputError(
            f"{name} has no constants with status {status}", "omit --status to list all"
        )
    return constant_list(listed)


def recipes(name: str | None = None, *, values: Mapping[str, str] | None = None) -> Listing:
    """How to run other training programs and collect their logs; ``values`` of placeholders."""
    from paceline.catalog.recipe_tables import recipe_entry, recipe_list
    from paceline.frameworks.framework_registry import recipe
    from paceline.frameworks.framework_registry import recipes as known

    if name is not None:
        return recipe_entry(recipe(name), values or {})
    if values:
        raise InputError("--set requires a recipe", "write paceline catalog recipes NAME --set ...")
    return recipe_list(known().values())


def published_rows(
    *,
    family: str | None = None,
    model: str | None = None,
    device: str | None = None,
    framework: str | None = None,
    where: Sequence[str] = (),
    sort: str = "id",
    limit: int | None = None,
    export: Path | str | None = None,
) -> Listing:
    """Published measurements used for validation; every row cites its publication.

    ``where`` are conditions such as ``nodes>1`` or ``method~XLA``, ``sort`` a column (``-column``
    in descending order). ``limit`` bounds the rows returned [all]; ``export`` names a CSV file for
    all matching rows.
    """
    from paceline.validation.published_tables import published_table, row_json
    from paceline.validation.reference_data import reference_table
    from paceline.validation.row_filters import in_order, selected, to_csv

    every = reference_table().measurements
    named = {"family": family, "model": model, "device": device, "framework": framework}
    wanted = []
    for column, value in named.items():
        if value:
            known = sorted({str(row.value(column)) for row in every})
            if value not in known:
                hint = f"choose one of {', '.join(known)[:300]}"
                raise unknown_name(f"published {column}", value, known, hint)
            wanted.append(f"{column}={value}")
    rows = in_order(selected(every, [*wanted, *where]), sort)
    if export is not None:
        write_text(Path(export), to_csv(rows))
    table = published_table(rows[: limit or SHOWN_ROWS], len(rows))
    entries = tuple(row_json(row) for row in rows[:limit])
    further = ["paceline catalog publications --sources", "paceline validate"]
    if export is not None:
        further = [f"paceline validate --data {shlex.quote(str(export))}"]
    return Listing("publications", entries, (table,), tuple(further))


def published_sources() -> Listing:
    """Sources of the published measurements, with their licences."""
    from paceline.validation.published_tables import sources_table
    from paceline.validation.reference_data import reference_sources

    sources = reference_sources()
    entries = tuple({"name": source.family, **asdict(source)} for source in sources)
    further = ("paceline catalog publications --family hkbu",)
    return Listing("sources", entries, (sources_table(sources),), further)


@dataclass(frozen=True, repr=False)
class InspectedModel(PublicResult):
    """The layers of a model and the costs of one training step."""

    schema: ClassVar[str] = "inspect/1"
    graph: Graph
    batch: int
    seq: int | None
    precision: str
    all_layers: bool = False

    def parts(self) -> list[str | Table]:
        """A table of blocks or layers, the total, and notes about captured models."""
        from paceline.catalog.model_tables import inspected_parts
        from paceline.workload.capture_notes import capture_notes

        parts = inspected_parts(
            self.graph, self.batch, self.seq, self.precision, all_layers=self.all_layers
        )
        return [*parts, *(f"note: {note}" for note in capture_notes(self.graph))]

    def to_dict(self) -> dict[str, Any]:
        """Costs in total and of each layer."""
        from paceline.catalog.model_tables import inspected_json

        return inspected_json(self.graph, self.batch, self.seq, self.precision)


def inspect(
    model: str | Path | Graph,
    *,
    batch: int | None = None,
    seq: int | None = None,
    precision: str | None = None,
    inputs: Sequence[str] = (),
    all_layers: bool = False,
) -> InspectedModel:
    """The layers of ``model`` with parameters, FLOPs and memory of a training step.

    ``model`` is a built-in model, FILE.py:FUNCTION, an ONNX file, a config.json or a `Graph`;
    ``inputs`` are shapes such as 32x3x224x224 or name=8x16:int64. ``batch`` is that of ``inputs``,
    else 32, by default (1 above 1B parameters); ``precision`` that of config.json, else fp32.
    """
    from paceline.spec.resolve_model import batch_of, graph_of

    shapes = tuple(inputs)
    graph = model if isinstance(model, Graph) else graph_of(str(model), shapes, seq)
    samples = batch_of(batch, shapes, graph)
    return InspectedModel(graph, samples, seq, precision or graph.dtype or "fp32", all_layers)


def _hardware(kind: str, name: str | None, file: Path | str | None) -> Listing:
    from paceline.catalog.hardware_tables import hardware_entry, hardware_list
    from paceline.hardware.catalogue import catalogue

    known = catalogue().extended_with(Path(file)) if file else catalogue()
    return hardware_list(kind, known) if name is None else hardware_entry(kind, name, known)
