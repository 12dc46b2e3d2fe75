"""Step a: the user's profile (RF-36) as a block."""

from recuerdo.nodes.build_context.gathered import Gathered
from recuerdo.nodes.build_context.phrasing import as_data, fenced, shortened
from recuerdo.state.blocks import REMOVED, Block, CountTokens, make_block, text_rung

SHORT_NAME = 20
"""Tokens of the name among the essentials: an endless one may not take language and time zone with it."""


def profile_blocks(data: Gathered, count: CountTokens) -> list[Block]:
    """Who the user is; shortened to name and region."""
    if data.profile is None:
        return []
    phrasing, profile = data.lasting_phrasing, data.profile
    say, say_value = phrasing.say, phrasing.value
    name = say("user_name", name=as_data(profile.name))
    short_name = say("user_name", name=shortened(as_data(profile.name), SHORT_NAME, count))
    region = say("user_region", language=profile.language, timezone=profile.timezone)
    details = [
        say("user_subscription", subscription=as_data(profile.subscription)),
        say("user_risk", risk=say_value(profile.risk_profile)),
        say("user_experience", experience=say_value(profile.experience)),
    ]
    rungs = [
        text_rung("full", fenced("user", [name, *details, region]), count),
        text_rung("essentials", fenced("user", [short_name, region]), count, floor=True),
        REMOVED,
    ]
    return [make_block("user", "high", "profile", rungs, source="profile", order=20, relevance=1.0)]
