"""Modules that workers of all frameworks share: standard library, and NumPy where named so.

A worker is started as a file in its framework's own interpreter, with this folder on its path, and
imports these modules by their bare names; `protocol.md` describes what goes in (one job as JSON)
and what comes out (events as JSON lines, one file per rank).
"""
