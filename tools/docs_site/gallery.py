"""The gallery: figures drawn from predictions, each with the command that draws it."""

import html
from collections.abc import Iterator

import paceline
from paceline.explanation.predicted_waterfall import predicted_waterfall
from paceline.predictor.sweep.sweep_tables import sweep_figure
from paceline.render.figures import (
    PhasesInfo,
    ScalingInfo,
    ScalingPoint,
    ScalingSeries,
    WaterfallInfo,
    draw,
    gantt_info,
    phase_bar,
    utilisation_info,
)
from paceline.render.number_format import Ranged


def gallery() -> str:
    """Figures drawn from predictions, each with the command that draws it."""
    parts = [
        "<h1>Gallery of figures</h1>",
        "<p>Drawn from predictions when these pages were built; "
        f"{_command('paceline report STUDY --figures DIR')} writes those of a study as SVG, "
        "PDF and PNG.</p>",
    ]
    for title, how, info in _gallery_figures():
        parts.append(
            f"<h2>{html.escape(title)}</h2><p>{_command(how)}</p>"
            f'<div class="gallery">{draw(info, 860.0)}</div>'
        )
    return "\n".join(parts)


def _command(text: str) -> str:
    """A command that breaks between words only."""
    words = (f'<span class="whole">{html.escape(word)}</span>' for word in text.split())
    return f"<code>{' '.join(words)}</code>"


def _gallery_figures() -> Iterator[tuple[str, str, object]]:
    counts = (1, 2, 4, 8, 16)
    series, bars = [], []
    for link in ("eth_10g", "eth_100g"):
        found = [
            paceline.predict(
                "vgg16", "hkbu-v100-pcie", nodes=n, link=link, batch=64, precision="fp32"
            )
            for n in counts
        ]
        points = tuple(
            ScalingPoint(p.devices, Ranged(p.samples_per_second, *p.samples_per_second_interval))
            for p in found
        )
        series.append(ScalingSeries(link, points, is_predicted=True))
        bars.append(phase_bar(f"{found[-1].devices} devices, {link}", found[-1].breakdown))
        last = found[-1]
    asked = "paceline predict --model vgg16 --batch 64 --cluster hkbu-v100-pcie"
    info = ScalingInfo("throughput (samples/s)", tuple(series), "samples/s")
    yield "Throughput and perfect scaling", f"{asked} --nodes 1,2,4,8,16 --link eth_10g", info
    yield "Phases of a step", f"{asked} --nodes 16", PhasesInfo(tuple(bars))
    yield "Timeline of a step", f"{asked} --nodes 16 --timeline t.svg", gantt_info(last.step)
    yield "Resource utilisation", "paceline report STUDY", utilisation_info(last.step)
    crossing = paceline.sweep(
        "vgg16", "hkbu-v100-pcie", ("link=1gbit..100gbit:20",), nodes=8, batch=64
    )
    how = f"{asked.replace('predict', 'sweep')} --axis link=1gbit..100gbit"
    yield "Data and model parallelism", f"{how} --figure f.pdf", sweep_figure([crossing])
    yield (
        "From one device to many",
        f"{asked} --nodes 16 --explain",
        WaterfallInfo(predicted_waterfall(last), "predicted step"),
    )
