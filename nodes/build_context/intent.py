"""What the user is after: a first, rule-based reading of the message with its confidence (OR-5, A-33)."""

import re
from dataclasses import dataclass
from typing import Literal

IntentName = Literal["trade", "explanation", "preference", "recall", "greeting", "analysis"]

CLEAR, LIKELY, UNKNOWN = 0.9, 0.7, 0.3
"""Confidence of words that can hardly mean anything else, of words that mostly mean it, and of a default."""

MIXED = 0.75
"""What a clear or likely reading keeps of its confidence for each other intent that the message shows too."""

_READ = 2000


@dataclass(frozen=True)
class Intent:
    """The intent of a message; ``confidence`` from 0 to 1, low where a human might be asked (A-33)."""

    name: IntentName
    confidence: float


# First match wins: a question whether to buy is that also when it names what is remembered.
_PATTERNS: tuple[tuple[IntentName, float, str], ...] = (
    (
        "recall",
        CLEAR,
        r"\b(recuerdas|te acuerdas|te dije|me dijiste|me explicaste|do you remember|i told you|you told me)\b",
    ),
    (
        "trade",
        CLEAR,
        r"\b(deber[ií]a|conviene|es buen momento|puedo|quiero|vale la pena|should i|shall i|is it a good time to"
        r"|can i|i want to)\b.*\b(comprar|vender|entrar|salir|invertir|operar|buy|sell|enter|exit|invest|trade)",
    ),
    (
        "trade",
        CLEAR,
        r"\b(entrar[ií]as?|comprar[ií]as?|vender[ií]as?|invertir[ií]as?|saldr[ií]as?|would you (buy|sell|enter|exit)"
        r"|(right|good|best) time to (buy|sell|enter|exit|get (in|out))|buy or sell|compro o vendo)\b",
    ),
    # In the present a question: an answer to "what have you done" has no question mark.
    (
        "trade",
        CLEAR,
        r"(?:^|[¿.,;!]\s*)(?:y |pero |entonces |ahora |ya |mejor |so |and )*(?:le |me |les )?"
        r"(entro|compro|vendo|salgo|invierto|meto|buy|sell|enter|exit)\b[^?.!]*\?",
    ),
    (
        "trade",
        LIKELY,
        r"^\W*(?:por favor |please )?(c[oó]mpra(me)?|v[eé]nde(me)?|buy|sell|short)"
        r" (\w+ ){0,2}?(\d|todo|todas|all\b|mis|my\b)",
    ),
    (
        "preference",
        CLEAR,
        r"\b(prefiero|a partir de ahora|de ahora en adelante|mejor usa|i prefer|from now on)\b",
    ),
    ("preference", LIKELY, r"\b(siempre|always)\b"),
    (
        "explanation",
        CLEAR,
        r"\b(qu[eé] (es|son|significa)|expl[ií]ca(me)?|c[oó]mo (funciona|se (lee|calcula|interpreta|usa))"
        r"|diferencia entre|para qu[eé] sirve|what (is|are|does .* mean)|explain|how (does|do) .* work"
        r"|how (to|(do|should|can) (i|you)) (read|use|interpret|calculate)|difference between)\b",
    ),
    (
        "greeting",
        CLEAR,
        r"^\W*(hola|buen[oa]s( d[ií]as| tardes| noches)?|(muchas )?gracias|adi[oó]s|hi|hello|hey|thanks|thank you"
        r"|bye)\W*$",
    ),
    (
        "analysis",
        CLEAR,
        r"\b(anal[ií]\w+|analy[sz]\w+|compar[ae]\w*|opinas|opini[oó]n|c[oó]mo (ves|va|van|est[aá]|cerr[oó])"
        r"|what do you think|how (is|are|am i) \w+ ?\w* doing)\b",
    ),
    (
        "analysis",
        LIKELY,
        r"\b(precio|volumen|tendencia|soportes?|resistencias?|resultados|cartera|acciones|price|volume|trend"
        r"|supports?|resistances?|earnings|portfolio|stocks?)\b",
    ),
)

_RULES = tuple(
    (name, confidence, re.compile(pattern, re.IGNORECASE)) for name, confidence, pattern in _PATTERNS
)


def read_intent(text: str) -> Intent:
    """The intent of a message; ``analysis`` with a low confidence when nothing is recognised."""
    sample = text[:_READ]
    found = [(name, confidence) for name, confidence, pattern in _RULES if pattern.search(sample)]
    if not found:
        return Intent("analysis", UNKNOWN)
    name, confidence = found[0]
    others = {other for other, _ in found if other not in (name, "analysis")}
    return Intent(name, round(confidence * MIXED ** len(others), 2))
