"""``python -m recuerdo`` is the command ``recuerdo``."""

from recuerdo.cli import main

main()
