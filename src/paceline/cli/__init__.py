"""The command line: arguments in, tables and JSON out; no logic of its own."""
