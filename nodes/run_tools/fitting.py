"""Whether a tool can take the arguments of a call at all: nobody is asked to decide on one that must fail (IM-13)."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError


def misfit(tool: BaseTool, arguments: Mapping[str, Any]) -> str | None:
    """What the tool's schema has against the arguments, for the model; None: nothing, or only the call can tell.

    A schema that is no pydantic model, such as the JSON one of an MCP tool, is not looked at.
    """
    schema = tool.args_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return None
    try:
        # A copy, for a validator may change what it is given, and what a person decides on must be what was asked.
        schema.model_validate(deepcopy(dict(arguments)))
    except ValidationError as error:
        return _told(error, tool)
    except Exception:
        # A validator that breaks down says nothing about the arguments.
        return None
    return None


def _told(error: ValidationError, tool: BaseTool) -> str | None:
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'all'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
        # What whoever runs the tool adds, such as the call's id, is not the model's to give.
        if fault["type"] != "missing" or fault["loc"][0] in tool.args
    ]
    if not faults:
        return None
    listed = "; ".join(faults)
    return f"{tool.name} was not run, and nobody was asked: its arguments do not fit. Correct them. {listed}"
