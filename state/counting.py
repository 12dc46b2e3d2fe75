"""How far our own token count is from the provider's, learnt per family of models (design section 3, A-8).

The hard limit is kept by our count times a factor. The factor rises at once when a provider counts more than
we did, falls slowly when it counts less, and is never below 1.
"""

import re

LARGEST_FACTOR = 2.0
"""A provider that reports more than this counts something else than the request; it is not believed."""

SMALLEST_REQUEST = 500
"""Our tokens below which a request teaches nothing: what a provider adds once to every request would count
as a share of all."""

DECAY = 0.05
"""Share of the way back that one lower report takes the factor."""

_DATE = re.compile(r"[-@](20\d{2}-?\d{2}-?\d{2}|\d{4}|latest)$")


def model_family(model: str) -> str:
    """The name under which a model's factor is learnt: no host, no date, no quantisation."""
    name = model.rsplit("/", 1)[-1].split(":", 1)[0].lower()
    return _DATE.sub("", name)


def learnt_factor(factor: float, estimated: int, reported: int) -> float:
    """The factor after a call that we estimated at ``estimated`` input tokens and the provider reported."""
    if estimated < SMALLEST_REQUEST or reported <= 0:
        return factor
    ratio = reported / estimated
    if ratio > LARGEST_FACTOR:
        return factor
    if ratio >= factor:
        return ratio
    return max(1.0, factor + (ratio - factor) * DECAY)
