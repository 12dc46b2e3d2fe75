"""The plan: how an agent behaves. Written as YAML, checked here, immutable once loaded (design section 6).

Until signing exists every plan runs as a marked draft (``draft`` is True).
"""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from recuerdo.state.errors import SettingsError
from recuerdo.state.sentences import Sentence, load_sentences

sentences = load_sentences(__package__)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ShortTerm(_Part):
    """Which rounds are candidates for the prompt, and how many messages stand verbatim (C-1)."""

    enabled: bool = True
    rounds: int = Field(default=30, ge=1, le=200)
    max_messages: int | None = Field(default=20, ge=4)


class FullContext(_Part):
    """How many of the newest rounds carry their whole tool trace (LA-9 to LA-15)."""

    rounds: int = Field(default=1, ge=0, le=5)


class Summary(_Part):
    """When the running summary is written (RF-31), how long it may be, and who writes it.

    ``by``: "auto" asks the model where one is configured, "extractive" never does.
    """

    after_messages: int = Field(default=15, ge=1)
    max_tokens: int = Field(default=400, ge=50)
    by: Literal["auto", "extractive"] = "auto"


class Memory(_Part):
    """The memory panel's settings."""

    short_term: ShortTerm = ShortTerm()
    full_context: FullContext = FullContext()
    summary: Summary = Summary()
    recall_tokens: int = Field(default=600, ge=0)
    recent_topics: int = Field(default=10, ge=1)


class Limits(_Part):
    """Token limits of one request and caps of the tool loop (RF-34, RF-48).

    ``tool_result`` caps one result in the prompt, ``tool_step`` all results of one step together.
    """

    compress_above: int = Field(default=6000, ge=500)
    max_input: int = Field(default=8000, ge=500)
    max_output: int = Field(default=2000, ge=1)
    tool_result: int = Field(default=1500, ge=100)
    tool_step: int = Field(default=4000, ge=100)
    tool_rounds: int = Field(default=8, ge=0)
    critical_messages: int = Field(default=3, ge=0)

    @model_validator(mode="after")
    def _target_below_limit(self) -> "Limits":
        if self.compress_above > self.max_input:
            raise PydanticCustomError("target_above_limit", "compress_above > max_input")
        return self


def _exact(value: Any) -> Decimal:
    """A number of a plan as it is written there: through its text, so that 0.1 stays 0.1."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal("NaN")
    if isinstance(value, bool) or not number.is_finite() or number < 0:
        raise PydanticCustomError("price", "a number of 0 or more")
    return number


UnitsPerMillion = Annotated[Decimal, BeforeValidator(_exact)]
"""Usage units for a million tokens."""


class Price(_Part):
    """What a family of models costs (A-29). ``cached_input`` is for what the provider had in its cache."""

    input: UnitsPerMillion
    cached_input: UnitsPerMillion
    output: UnitsPerMillion


class Bilingual(_Part):
    """A sentence that users see, in both languages."""

    es: Text
    en: Text

    def in_language(self, language: str | None) -> str:
        """The text in ``language``; English for anything but Spanish."""
        return Sentence(self.es, self.en).in_language(language)


class Plan(_Part):
    """One agent: role prompt, limits, memory settings, tools. The core knows no domain beyond it."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
    language: Literal["es", "en"]
    agent_type: Literal["loop", "agent", "flow"] = "loop"
    role: Text
    instructions: tuple[Text, ...] = Field(min_length=1)
    disclaimer: Bilingual
    limits: Limits = Limits()
    memory: Memory = Memory()
    sources: tuple[Text, ...] = ()
    tools: tuple[Text, ...] = ()
    entitlements: dict[Text, tuple[Text, ...]] = Field(default_factory=dict)
    prices: dict[Text, Price] = Field(default_factory=dict)

    @property
    def draft(self) -> bool:
        """Whether the plan runs unsigned: True until signed revisions exist."""
        return True


class _NoTwins(yaml.SafeLoader):
    """YAML whose mappings have each key once: of two, a reader would trust the wrong one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """As SafeLoader's; a key given twice is an error at its place."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"twice: {key}", key_node.start_mark)
            seen.add(key if isinstance(key, str) else id(key_node))
        return super().construct_mapping(node, deep)


def read_plan(text: str, origin: str) -> Plan:
    """Parse and check a plan's YAML. ``origin`` names it in errors.

    Raises SettingsError that names the field, what is wrong with it and the allowed range.
    """
    try:
        raw = _lists_to_tuples(yaml.load(text, _NoTwins))
    # PyYAML lets a date that does not exist, a number of 5,000 digits and endless nesting through as these.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "?"
        raise SettingsError(sentences("plan_not_yaml", origin=origin, place=place)) from None
    if not isinstance(raw, dict):
        raise SettingsError(sentences("plan_not_a_mapping", origin=origin))
    try:
        return Plan.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "plan"
        raise SettingsError(
            sentences("plan_invalid", origin=origin, field=field, reason=_reason(first))
        ) from None


_NOT_IN_RANGE = {"int_type", "int_from_float", "greater_than_equal", "less_than_equal"}


def _reason(error: ErrorDetails) -> Sentence | str:
    """What is wrong with a field, in both languages; the checker's own words for what has no sentence."""
    if error["type"] in _NOT_IN_RANGE:
        return _range(error["loc"])
    key = f"plan_{error['type']}"
    # "'es' or 'en'" is English only.
    values = {name: str(value).replace(" or ", ", ") for name, value in error.get("ctx", {}).items()}
    return sentences(key, **values) if key in sentences else error["msg"]


def _range(place: tuple[int | str, ...]) -> Sentence:
    """The whole numbers that the field at ``place`` takes (LA-11)."""
    schema = Plan.model_json_schema()
    field = schema
    for part in place:
        field = field["properties"][part]
        field = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]] if "$ref" in field else field
    number = next((option for option in field.get("anyOf", ()) if option["type"] == "integer"), field)
    low, high = number["minimum"], number.get("maximum")
    return (
        sentences("plan_at_least", low=low) if high is None else sentences("plan_range", low=low, high=high)
    )


def _lists_to_tuples(value: Any) -> Any:
    """YAML has lists only; a strict frozen model takes tuples."""
    if isinstance(value, dict):
        return {key: _lists_to_tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_lists_to_tuples(item) for item in value)
    return value
