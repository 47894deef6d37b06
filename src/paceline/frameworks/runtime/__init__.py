"""Modules shared by the workers of all frameworks: standard library; NumPy only in ``numpy_*``.

A worker is a script that runs in the interpreter of its framework, with this folder on the search
path, and imports these modules by their bare names. `protocol.md` describes its input (one job as
JSON) and its output (events as JSON lines, one file per rank).
"""
