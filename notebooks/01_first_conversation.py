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
# # A first conversation
#
# Recuerdo decides, turn by turn, what goes to the model and what is remembered. This notebook opens an agent,
# talks with it in Spanish, and looks at both: the exact request, and the record that says why it is as it is.
#
# Nothing has to be set up. PostgreSQL, the vector index and the embeddings are embedded, and everything is
# kept in a temporary folder. Without `OPENAI_API_KEY` the *offline responder* answers: it can only quote the
# prompt that it was given, so its answers show what Recuerdo put there.

# %%
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

from rich.console import Console
from rich.table import Table

import recuerdo
from recuerdo.demo import SAMPLE_USER
from recuerdo.demo.sample import load_sample

console = Console(width=110, highlight=False)
settings = recuerdo.Settings(data=Path(mkdtemp(prefix="recuerdo-")), database_url=None)

# %% [markdown]
# ## Open an agent
#
# In a script one writes `with recuerdo.open_agent(...) as agent:`. Here the block is entered in one cell and
# left in the last one. `send_sync` also works while the notebook's own event loop is running; in async code
# it is `async with recuerdo.open_agent(...)` and `await agent.send(...)`.

# %%
opening = recuerdo.open_agent(settings, plan="trading")
agent = opening.__enter__()

# %% [markdown]
# The sample user is a trader with a portfolio, quotes and an alert, dated from now. In production these come
# from your own tables or services: anything that follows `recuerdo.Source`.

# %%
_ = agent.run_sync(load_sample(agent.services, settings.tenant, datetime.now(UTC)))

# %% [markdown]
# ## Talk
#
# A person is named by `user`; whatever belongs together in a chat shares a `conversation`.


# %%
def say(text: str, conversation: str) -> recuerdo.Turn:
    """Send one message, print the reply, and return the turn."""
    turn = agent.send_sync(text, user=SAMPLE_USER, conversation=conversation)
    print(f"> {text}\n{turn.reply}\n")
    return turn


first = say("Hola. Prefiero respuestas breves.", conversation="lunes")
turn = say("¿Cómo va mi inversión en AAPL?", conversation="lunes")

# %% [markdown]
# ## The request
#
# `turn.request` is exactly what went to the model: the messages, the tools, and the limit of the answer.

# %%
for message in turn.request["messages"]:
    console.rule(message.type)
    console.print(message.text, markup=False)
print("tools:", [tool["function"]["name"] for tool in turn.request["tools"]])
print("estimated input tokens:", turn.request["input_tokens"])

# %% [markdown]
# ## The record
#
# Whatever may enter a prompt is a *block*. It has a tier (critical, high, medium, low) and a ladder of
# renderings from rich to poor. While a request is over its budget, blocks go down their ladders, the lowest
# tier first; critical ones stay as they are.


# %%
def show_blocks(turn: recuerdo.Turn) -> None:
    """A table of the blocks of the turn's last request."""
    table = Table("block", "tier", "rung", "of", "tokens", title=f"turn {turn.record.number}")
    for block in turn.record.blocks:
        rung = f"{block.rung_index + 1} ({block.rung})"
        table.add_row(block.name, block.tier, rung, str(block.rungs), str(block.tokens))
    console.print(table)
    estimate = turn.record.estimate
    print(f"{estimate['input_tokens']} of {estimate['target']} tokens, {len(turn.record.steps)} steps down")


show_blocks(turn)

# %% [markdown]
# The record also says how the context was built, which symbols and topic the message was about, and what a
# turn taught, with the words that say so.

# %%
steps = Table("step", "status", "ms", "tokens")
for step in turn.record.trace:
    steps.add_row(step["step"], step["status"], f"{step['ms']:.1f}", str(step["size"]))
console.print(steps)
print(
    "language:", turn.record.language, "| symbols:", turn.record.symbols, "| topic:", turn.record.topic.name
)
for learnt in [*first.record.learnt, *turn.record.learnt]:
    print(f"{learnt.type} {learnt.key}: {learnt.value!r} ({learnt.quote!r})")

# %% [markdown]
# ## Another day
#
# A new conversation has no history, but the same person: what was learnt is there.

# %%
another = say("¿Qué sabes de mis preferencias?", conversation="martes")
show_blocks(another)

# %% [markdown]
# Somebody else gets nothing of it.

# %%
stranger = agent.send_sync("¿Qué sabes de mis preferencias?", user="user-456", conversation="otra")
print(stranger.reply)

# %% [markdown]
# ## A message that is too large
#
# What cannot be cut and does not fit is not sent at all. The error says what takes most.

# %%
too_large = "Dime qué ha pasado con cada una: " + "AAPL, MSFT, TSLA, " * 2000
try:
    agent.send_sync(too_large, user=SAMPLE_USER, conversation="lunes")
except recuerdo.BudgetError as error:
    print(error.sentence.es)

# %% [markdown]
# ## Close
#
# The last client of the embedded server stops it. The temporary folder is left to the system.

# %%
opening.__exit__(None, None, None)
