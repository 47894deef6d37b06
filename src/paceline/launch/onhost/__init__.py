"""What runs on the machines of a launch: standard library only, copied beside its files.

A machine needs nothing of Paceline but the folder that `paceline.launch.documents` writes.
"""
