"""What a tool's schema has against a call's arguments (IM-13)."""

from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from recuerdo.nodes.run_tools.fitting import misfit


class Period(BaseModel):
    start: int
    end: int

    @model_validator(mode="after")
    def _in_order(self) -> "Period":
        if self.end < self.start:
            raise ValueError("the end is before the start")
        return self


class Lenient(BaseModel):
    amount: float

    @field_validator("amount", mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return value.removesuffix(" EUR") if isinstance(value, str) else value


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    amount: float


class Breaks(BaseModel):
    amount: float

    @field_validator("amount", mode="before")
    @classmethod
    def _break(cls, value: Any) -> Any:
        raise RuntimeError("no connection")


class Changes(BaseModel):
    parts: list[int]

    @model_validator(mode="before")
    @classmethod
    def _take(cls, data: dict[str, Any]) -> dict[str, Any]:
        data["parts"].clear()
        return data


def taking(schema: Any) -> BaseTool:
    async def act(**arguments: Any) -> str:
        return "done"

    return StructuredTool.from_function(coroutine=act, name="act", description="Act.", args_schema=schema)


@tool
def refund(amount: float, to: str, key: Annotated[str, InjectedToolCallId], note: str | None = None) -> str:
    """Give money back."""
    return "done"


JSON_SCHEMA = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}


@pytest.mark.parametrize(
    ("asked", "arguments", "told"),
    [
        (refund, {"amount": "abc", "to": "Ana"}, "amount: "),
        (refund, {"amount": 5}, "to: Field required"),
        (refund, {"amount": 5, "to": ["Ana"]}, "to: "),
        (taking(Period), {"start": 3, "end": 1}, "the end is before the start"),
        (taking(Strict), {"amount": 1, "other": 2}, "other: "),
    ],
)
def test_im_13_the_model_is_told_which_argument_does_not_fit(
    asked: BaseTool, arguments: dict[str, Any], told: str
) -> None:
    why = misfit(asked, arguments)
    assert why is not None and told in why and asked.name in why
    assert "abc" not in why and "key" not in why


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        (refund, {"amount": "5.5", "to": "Ana", "note": None}),
        (refund, {"amount": 5, "to": "Ana", "unknown": 1}),
        (taking(Period), {"start": 1, "end": 3}),
        (taking(Lenient), {"amount": "5 EUR"}),
        (taking(Strict), {"amount": 1}),
        (taking(Breaks), {"amount": 1}),
        (taking(JSON_SCHEMA), {"amount": "abc"}),
    ],
)
def test_im_13_what_the_tool_takes_or_only_the_call_can_tell_is_let_be(
    asked: BaseTool, arguments: dict[str, Any]
) -> None:
    assert misfit(asked, arguments) is None


def test_im_13_what_was_asked_for_stays_what_it_is() -> None:
    arguments = {"parts": [1, 2]}
    assert misfit(taking(Changes), arguments) is None
    assert arguments == {"parts": [1, 2]}
