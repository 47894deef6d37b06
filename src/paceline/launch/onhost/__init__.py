"""Code that runs on the hosts of a launch: standard library only, copied with the launch files.

A host needs only the folder that `paceline.launch.launch_files` writes, not Paceline itself.
"""
