# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tokens over a conversation
#
# What does each turn of a long conversation send to the model, block by block, and where does the budget cut in?
# Every turn leaves a record; this notebook plays a conversation with long answers and draws the records.
#
# Nothing has to be set up. The answers are written here, so the notebook needs no model and always shows the
# same figures.

# %%
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

import recuerdo
from recuerdo.demo import SAMPLE_USER
from recuerdo.demo.sample import load_sample
from recuerdo.state.record import TurnRecord

console = Console(width=120, highlight=False)
settings = recuerdo.Settings(data=Path(mkdtemp(prefix="recuerdo-")), database_url=None)
now = datetime(2025, 12, 1, 15, 0, tzinfo=UTC)

QUESTIONS = (
    "Mi objetivo es ganar un 10% anual con riesgo moderado",
    "¿Cómo va mi inversión?",
    "¿Qué opinas de AAPL?",
    "¿Y qué opinas del volumen?",
    "Explícame qué es el RSI",
    "¿Debería comprar TSLA ahora?",
)
ANSWER = "El precio está en su rango y el volumen es algo mayor que ayer, así que conviene esperar. " * 22


class SameAnswer(FakeListChatModel):
    """A chat model that always says the same and calls no tools."""

    def bind_tools(self, tools: Any, *, tool_choice: str | None = None, **kwargs: Any) -> Any:
        """Take tools as any chat model does, and leave them alone."""
        return self


model = SameAnswer(responses=[ANSWER])
opening = recuerdo.open_agent(settings, plan="trading", model=model, clock=lambda: now)
agent = opening.__enter__()
_ = agent.run_sync(load_sample(agent.services, settings.tenant, now))

# %% [markdown]
# ## Twenty-four turns

# %%
records = []
for place in range(24):
    now += timedelta(minutes=1)
    turn = agent.send_sync(QUESTIONS[place % len(QUESTIONS)], user=SAMPLE_USER, conversation="larga")
    records.append(turn.record)

# %% [markdown]
# ## The chart
#
# One bar a turn, one colour a section of the prompt. The first line marks the target (the plan's
# `compress_above`): above it, compression starts. The second marks the hard limit, which no request passes.
# The history grows, and falls where the window is cut and the summary takes its place.

# %%
COLOURS = {
    "frames and tools": "bright_black",
    "stable": "blue",
    "profile": "cyan",
    "history": "green",
    "turn": "yellow",
    "message": "magenta",
}
WIDTH = 100
limit, target = records[0].estimate["limit"], records[0].estimate["target"]


def sections(record: TurnRecord) -> dict[str, int]:
    """Tokens of the record's request by section; they add up to the estimate."""
    tokens = dict.fromkeys(COLOURS, 0)
    tokens["frames and tools"] = record.estimate["overhead"]
    for block in record.blocks:
        tokens[block.section] += block.tokens
    assert sum(tokens.values()) == record.estimate["input_tokens"]
    return tokens


def bar(record: TurnRecord) -> Text:
    """The record's request as a bar, with the lines of target and limit."""
    filled = [colour for name, colour in COLOURS.items() for _ in range(cells(sections(record)[name]))]
    drawn = Text(f"{record.number:3d} ")
    for cell in range(WIDTH + 1):
        mark = "│" if cell in (cells(target), WIDTH) else ""
        drawn.append(mark or ("█" if cell < len(filled) else " "), filled[cell] if cell < len(filled) else "")
    return drawn.append(f" {record.estimate['input_tokens']}")


def cells(tokens: int) -> int:
    """A number of tokens as a length; the whole width is the hard limit."""
    return round(tokens * WIDTH / limit)


console.print(Text("    ").append_text(Text("  ").join(Text(f"█ {n}", c) for n, c in COLOURS.items())))
for record in records:
    console.print(bar(record), soft_wrap=True)
console.print(f"│ target {target}, limit {limit}")

# %% [markdown]
# ## What gave way
#
# Each step that `fit` took, in order: Low before Medium before High, critical never. The two totals are those of
# the whole request.

# %%
steps = Table("turn", "block", "tier", "from", "to", "request before", "after")
for record in records:
    for step in record.steps:
        totals = (str(step.tokens_before), str(step.tokens_after))
        steps.add_row(str(record.number), step.block, step.tier, step.from_rung, step.to_rung, *totals)
console.print(steps)

# %% [markdown]
# ## Block by block
#
# The same as figures, for the turn that sent most.

# %%
largest = max(records, key=lambda record: record.estimate["before"])
blocks = Table("block", "section", "tier", "rung", "tokens", title=f"turn {largest.number}")
for block in largest.blocks:
    blocks.add_row(block.name, block.section, block.tier, block.rung, str(block.tokens))
console.print(blocks)
print(largest.estimate["before"], "tokens before compression,", largest.estimate["input_tokens"], "after")

# %% [markdown]
# ## Close

# %%
opening.__exit__(None, None, None)
