"""What the user is after: a first, rule-based reading of the message (OR-5)."""

import re
from typing import Literal

Intent = Literal["trade", "explanation", "preference", "recall", "greeting", "analysis"]

# First match wins: a question whether to buy is that also when it names what is remembered.
_PATTERNS: tuple[tuple[Intent, str], ...] = (
    (
        "recall",
        r"\b(recuerdas|te acuerdas|te dije|me dijiste|me explicaste|do you remember|i told you|you told me)\b",
    ),
    (
        "trade",
        r"\b(deber[ií]a|conviene|es buen momento|puedo|quiero|vale la pena|should i|shall i|is it a good time to"
        r"|can i|i want to)\b.*\b(comprar|vender|entrar|salir|invertir|operar|buy|sell|enter|exit|invest|trade)",
    ),
    (
        "preference",
        r"\b(siempre|prefiero|a partir de ahora|de ahora en adelante|mejor usa|always|i prefer|from now on)\b",
    ),
    (
        "explanation",
        r"\b(qu[eé] (es|son|significa)|expl[ií]ca(me)?|c[oó]mo (funciona|se (lee|calcula|interpreta|usa))"
        r"|diferencia entre|para qu[eé] sirve|what (is|are|does .* mean)|explain|how (does|do) .* work"
        r"|how to (read|use)|difference between)\b",
    ),
    (
        "greeting",
        r"^\W*(hola|buen[oa]s( d[ií]as| tardes| noches)?|(muchas )?gracias|adi[oó]s|hi|hello|hey|thanks|thank you"
        r"|bye)\W*$",
    ),
)

_RULES = tuple((intent, re.compile(pattern, re.IGNORECASE)) for intent, pattern in _PATTERNS)


def read_intent(text: str) -> Intent:
    """The intent of a message; ``analysis`` when nothing else is recognised."""
    sample = text[:2000]
    return next((intent for intent, pattern in _RULES if pattern.search(sample)), "analysis")
