"""Statistics of launches and steps as functions of plain numbers; docs/statistics.md says why.

The launch is the unit of replication. Nothing here knows of stores, frameworks or reports.
"""
