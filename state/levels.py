"""The three levels of memory (OR-2): every item that is shown says which it is of."""

from typing import Final, Literal

Level = Literal[1, 2, 3]

VOLATILE: Final[Level] = 1
"""What a turn works with; gone with its end (OR-3)."""

EPISODIC: Final[Level] = 2
"""What was learnt of users and business while serving them (OR-7)."""

NORMATIVE: Final[Level] = 3
"""What governs: knowledge packs and the signed revisions of plans (OR-13)."""
