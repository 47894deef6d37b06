"""Statistics of launches and steps as functions of plain numbers.

docs/explanation/statistics.md gives the reasons.
The launch is the unit of replication. No module here imports stores, frameworks or reports.
"""
