"""The Learning Hub: from evidence to proposals that people decide on (OR-21).

``collect`` counts what the evidence has, ``distil`` finds what it says, ``propose`` writes it down. ``limits`` finds
the limits of a rule in approved calls, ``fields`` knows what names of fields say, ``people`` takes out of a case what
names a person, ``wording`` asks the person.
"""

from recuerdo.nodes.learning.collect import collect
from recuerdo.nodes.learning.distil import distil
from recuerdo.nodes.learning.propose import propose

__all__ = ["collect", "distil", "propose"]
