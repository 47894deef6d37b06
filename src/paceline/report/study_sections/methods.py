"""The methods of a study as a paragraph for a paper, as text and LaTeX, and a BibTeX entry."""

from collections.abc import Sequence

from paceline import __version__
from paceline.render.html_page import Section
from paceline.render.markup import latex_text
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_sections.opening import describe_replication, recorded, versions
from paceline.report.study_sections.verdict import listed
from paceline.store import Launch


def methods_section(results: StudyAnalysis) -> Section:
    """The paragraph in both formats, and the entry that it cites."""
    return Section(
        "Methods, for a paper",
        text=methods_text(results),
        commands=[methods_latex(results), bibtex(results)],
        folded=True,
    )


def methods_text(results: StudyAnalysis) -> str:
    """Machine, versions, threads, design, replication and statistics of a study."""
    launches = results.finished
    models = listed(sorted({one.model for one in launches}) or ["nothing"])
    threads = sorted({one.job["threads"] for one in launches if one.job.get("threads")})
    batches = sorted({one.batch_per_rank for one in launches})
    sentences = [
        f"We trained {models} with {listed(versions(launches) or ['no framework'])} on "
        f"{recorded(launches, 'cpu_model') or 'an unrecorded processor'} "
        f"({recorded(launches, 'cores') or 'unknown'} cores, "
        f"{recorded(launches, 'system') or 'unknown system'}, "
        f"Python {recorded(launches, 'python') or 'unknown'}), "
        f"{listed(batches or [0])} samples per process"
        + (f" and {listed(threads)} {_thread(threads)} per process." if threads else "."),
        describe_replication(results),
        "Throughput is the number of samples over the sum of step times of the slowest rank. "
        "Intervals are 95 % intervals of the mean over launches, computed on logarithms where they "
        "are asymmetric; comparisons are corrected for multiplicity.",
        f"Measured and analysed with Paceline {__version__}.",
    ]
    return " ".join([sentences[0], *_builds(launches), *sentences[1:]])


def _builds(launches: Sequence[Launch]) -> list[str]:
    """Compiler and flags of each framework whose worker reports them."""
    found = {one.framework: one.outcome.facts.get("versions", {}).get("build") for one in launches}
    return [f"The build of {name} used {build}." for name, build in found.items() if build]


def _thread(counts: list[int]) -> str:
    return "thread" if counts == [1] else "threads"


def methods_latex(results: StudyAnalysis) -> str:
    """The paragraph for LaTeX, with a citation."""
    name = f"Paceline {__version__}"
    return latex_text(methods_text(results)).replace(name, rf"{name}~\cite{{paceline}}")


def bibtex(results: StudyAnalysis) -> str:
    """The entry of the software."""
    year = max((one.created_at[:4] for one in results.launches), default="")
    return (
        "@software{paceline,\n"
        "  title   = {Paceline: measuring, modelling and explaining distributed training},\n"
        "  author  = {{The Paceline authors}},\n"
        f"  version = {{{__version__}}},\n"
        f"  year    = {{{year}}}\n}}"
    )
