"""What the tool is called and says: exact texts that models and apps know it by, in English (ET-16 to ET-39, C-40)."""

from typing import Any

NAME = "MemoryTool"

DESCRIPTION = """Keeps facts about the user you are talking to, and finds them again in later conversations.
Modes:
- add: remember a fact. Needs memory. Returns its memory_id.
- search: find what is remembered. Needs query; k is how many at most (1 to 50, default 3).
- update: give a memory another text. Needs memory_id and memory.
- delete: forget a memory. Needs memory_id.
Write each memory as one short sentence in the user's language. Only this user's memories can be reached."""

DEFAULT_K = 3
"""Results of a search that does not say how many (ET-10)."""

MOST_K = 50
"""Results of one search at most (IM-27)."""


def _optional(description: str) -> dict[str, Any]:
    return {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": description}


SCHEMA: dict[str, Any] = {
    "title": NAME,
    "description": DESCRIPTION,
    "type": "object",
    "properties": {
        "mode": {"type": "string", "description": "'add', 'search', 'update' or 'delete'."},
        "memory": _optional("Text to remember; for add and update."),
        "query": _optional("What to look for; for search."),
        "memory_id": _optional("Which memory; for update and delete."),
        "k": {
            "type": "integer",
            "default": DEFAULT_K,
            "description": f"Results of a search at most, 1 to {MOST_K}.",
        },
    },
    "required": ["mode"],
}
"""Arguments as the model sees them (IM-26). The tool checks them itself, so that each fault has its own text."""

ADDED = "Memory added for user_id {user}: {memory} (memory_id: {memory_id})"
UPDATED = "Memory updated for user_id {user}: {memory} (memory_id: {memory_id})"
DELETED = "Memory with memory_id {memory_id} deleted for user_id {user}"
FOUND = "- {memory} (memory_id: {memory_id})"
NONE_FOUND = "No memories found for user_id {user} with query: {query}"
PROPOSED = (
    "Nothing is stored yet: the user is asked at the end of your reply whether to remember it, and a yes"
    " stores it. Do not say that it is remembered."
)

PREVIEW = "Memory is off in a preview: nothing is read or written."
INVALID_MODE = "Invalid mode '{mode}'. Use 'add', 'search', 'update', or 'delete'."
NO_CONTEXT = "assistant_id or ad_user_id not found in Payload."
MEMORY_REQUIRED = "The 'memory' parameter is required for 'add' mode."
QUERY_REQUIRED = "The 'query' parameter is required for 'search' mode."
UPDATE_REQUIRED = "Both 'memory_id' and 'memory' are required for 'update' mode."
MEMORY_ID_REQUIRED = "The 'memory_id' parameter is required for 'delete' mode."
NOT_TEXT = "The '{name}' parameter must be text."
INVALID_K = f"The 'k' parameter must be a whole number from 1 to {MOST_K}."
NOT_FOUND = "No memory found with memory_id {memory_id} for user_id {user}"
PUBLISHED = "That memory is published: only a supervisor can change or withdraw it."
UNEXPECTED = "Error in MemoryTool: {reason}"
