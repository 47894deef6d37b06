"""``python -m paceline`` is the command line."""

from paceline.cli.main import main

main()
