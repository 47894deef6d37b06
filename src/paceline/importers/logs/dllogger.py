"""NVIDIA DLLogger: a JSON object behind ``DLLL`` on each line."""

from paceline.importers.logs.metrics_json import JsonLinesParser
from paceline.importers.logs.parsing.log_reader import ProgramReader

READER = ProgramReader("dllogger", "NVIDIA DLLogger (JSON)", (("DLLL {", 1.0),), JsonLinesParser)
