"""Traces that other programs write, read into measured steps and layer-wise traces."""

from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.trace_registry import (
    is_layer_trace,
    read_layer_trace,
    read_trace,
    trace_format,
    trace_formats,
)

__all__ = [
    "ParsedTrace",
    "is_layer_trace",
    "read_layer_trace",
    "read_trace",
    "trace_format",
    "trace_formats",
]
