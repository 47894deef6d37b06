"""Worker scripts: each runs in its framework's own interpreter and imports nothing of Paceline.

They are started as files; the package itself imports only `layer_shapes` and `layer_settings`,
which every framework shares. `protocol.md` describes what goes in (one job as JSON) and what comes
out (events as JSON lines, one file per rank).
"""
