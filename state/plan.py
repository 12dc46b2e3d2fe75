"""The plan: how an agent behaves. Written as YAML, checked here, immutable once loaded (design section 6).

What is here is a draft; ``recuerdo.stores.plans`` makes signed revisions of it.
"""

import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    Strict,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from recuerdo.state.errors import SettingsError
from recuerdo.state.limits import SUMMARY_AFTER_MESSAGES
from recuerdo.state.sentences import Sentence, load_sentences

sentences = load_sentences(__package__)

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

T = TypeVar("T")

Several = Annotated[tuple[T, ...], Strict(False)]
"""Given as a list, as YAML and people write it; kept so that nobody changes it."""

PLAN_NAME = r"[a-z][a-z0-9_-]{0,63}"
"""Pattern of a plan's name."""

PACK_NAME = r"[a-z][a-z0-9_-]{0,63}"
"""Pattern of a knowledge pack's name."""

PACK_REFERENCE = rf"{PACK_NAME}@[0-9a-f]{{12}}"

PackReference = Annotated[str, StringConstraints(pattern=f"^{PACK_REFERENCE}$")]
"""A knowledge pack as ``name@pin``: the first 12 hex digits of its SHA-256 (A-27)."""


def is_plan_name(name: object) -> bool:
    """Whether a plan can be called so."""
    return isinstance(name, str) and re.fullmatch(PLAN_NAME, name) is not None


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

    after_messages: int = Field(default=SUMMARY_AFTER_MESSAGES, ge=1)
    max_tokens: int = Field(default=400, ge=50)
    by: Literal["auto", "extractive"] = "auto"


class Learning(_Part):
    """Who reads what a message teaches of its user (RF-11).

    ``by``: "rules" needs no model; "auto" also asks the model, where one is configured, about statements that the
    rules made nothing of; "model" asks it about every message with a statement; "off" learns nothing.
    """

    by: Literal["auto", "rules", "model", "off"] = "auto"


class Memory(_Part):
    """The memory panel's settings.

    ``saving``: "ask_first" stores what the model or the learner wants to remember only after the user's yes
    (IM-34). ``by_tool``: whether what the memory tool adds counts as said by the user, 90 days, or as inferred, 7
    (C-8). ``command``: whether ``#MEMORY# text`` stores a memory (IM-31).
    """

    short_term: ShortTerm = ShortTerm()
    full_context: FullContext = FullContext()
    summary: Summary = Summary()
    recall_tokens: int = Field(default=600, ge=0)
    recent_topics: int = Field(default=10, ge=1)
    saving: Literal["direct", "ask_first"] = "direct"
    by_tool: Literal["explicit", "inferred"] = "explicit"
    command: bool = True
    learning: Learning = Learning()


class Limits(_Part):
    """Token limits of one request and caps of the tool loop (RF-34, RF-48).

    ``tool_result`` caps one result in the prompt, ``tool_step`` all results of one step together. ``packs`` is
    what the texts of the plan's knowledge packs may have together (packs.max_tokens, C-23).
    """

    compress_above: int = Field(default=6000, ge=500)
    max_input: int = Field(default=8000, ge=500)
    max_output: int = Field(default=2000, ge=1)
    tool_result: int = Field(default=1500, ge=100)
    tool_step: int = Field(default=4000, ge=100)
    tool_rounds: int = Field(default=8, ge=0)
    critical_messages: int = Field(default=3, ge=0)
    packs: int = Field(default=3000, ge=0)

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


class SourceSettings(_Part):
    """How one source of data is asked (RF-35, RF-63).

    ``provider`` says who gives the data: "table" is PostgreSQL. ``timeout_ms`` is how long a turn waits for it.
    ``refresh_seconds`` is how old its answers may be: None, the kind's own (60 for the market's, 0 for what is a
    user's own).
    """

    provider: Text = "table"
    timeout_ms: int = Field(default=2000, ge=10, le=30_000)
    refresh_seconds: int | None = Field(default=None, ge=0, le=86_400)


def _by_name(sources: Any) -> Any:
    """A list of names means each with its default settings."""
    if isinstance(sources, tuple | list) and all(isinstance(name, str) for name in sources):
        return {name: {} for name in sources}
    if isinstance(sources, dict):
        return {name: {} if settings is None else settings for name, settings in sources.items()}
    return sources


class Bilingual(_Part):
    """A sentence that users see, in both languages."""

    es: Text
    en: Text

    def in_language(self, language: str | None) -> str:
        """The text in ``language``; English for anything but Spanish."""
        return Sentence(self.es, self.en).in_language(language)


def _one_pin_each(packs: tuple[str, ...]) -> tuple[str, ...]:
    """Of two versions of one pack nobody could say which rule holds."""
    names = [reference.partition("@")[0] for reference in packs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise PydanticCustomError("pack_twice", "{name} × 2", {"name": twice})
    return packs


def _type_name(name: str) -> str:
    """As it is written, blanks included (LA-31); the same letters in another encoding are the same name."""
    # A no-break space does not count as printable, but it is a letter of the name like any other.
    if not name.strip() or not all(c.isprintable() or unicodedata.category(c) == "Zs" for c in name):
        raise PydanticCustomError("event_type_name", "visible text on one line")
    return unicodedata.normalize("NFC", name)


class EventType(_Part):
    """A kind of key event: the exact name that is stored, and what tells the model when it applies (IM-5)."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_type_name)]
    description: str = Field(default="", max_length=1000)


def _types_once(types: tuple[EventType, ...]) -> tuple[EventType, ...]:
    names = [event_type.name for event_type in types]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise PydanticCustomError("event_type_twice", "{name} × 2", {"name": twice})
    return types


class Extraction(_Part):
    """When and how events are read out of a conversation for the agent types that do not write them in the
    round (LA-26, IM-6, IM-7).

    A conversation has ended after ``idle_minutes`` without a message; ``message_threshold`` new messages start it
    before that, None: never (C-34). ``model`` None is the chat model; ``rules`` are sentences that guide it.
    """

    idle_minutes: int = Field(default=5, ge=1, le=1440)
    message_threshold: int | None = Field(default=None, ge=1, le=1000)
    model: Text | None = None
    rules: Several[Text] = ()


class KeyEventSettings(_Part):
    """Key events, the same for all three agent types (LA-24). They work with the switch on and at least one type.

    ``injected_max`` open events stand in each prompt (LA-22), resolved ones among them or not (A-19). Closed ones
    can be asked for ``closed_days`` days (C-9). Shared: those of every assistant of the tenant (A-23).
    """

    enabled: bool = False
    types: Annotated[Several[EventType], AfterValidator(_types_once)] = ()
    injected_max: int = Field(default=5, ge=0, le=50)
    inject_resolved: bool = True
    extraction: Extraction = Extraction()
    shared_across_assistants: bool = False
    closed_days: int = Field(default=90, ge=1, le=3650)


ExactInt = Annotated[int, Field(gt=-(2**53), lt=2**53)]
"""A whole number that every reader of JSON takes for the same (RFC 8785)."""


class Condition(_Part):
    """One comparison of an auto-approve rule: ``field`` is an argument of the tool's call.

    Numbers compare with numbers, text and yes or no only by "==" and "!="; anything else does not hold.
    """

    field: Text
    op: Literal["<", "<=", ">", ">=", "==", "!="]
    value: bool | ExactInt | FiniteFloat | Text

    def holds(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments fulfils it; an argument that is missing never does."""
        given, wanted = arguments.get(self.field), self.value
        if _is_number(given) and _is_number(wanted):
            return bool(_COMPARES[self.op](given, wanted))
        # True is an int to Python; a limit of 1 must not let it through.
        return type(given) is type(wanted) and self.op in {"==", "!="} and _COMPARES[self.op](given, wanted)


_COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_from_0(value: float | str) -> bool:
    return not isinstance(value, str | bool) and value >= 0


RuleId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
"""Name of an auto-approve rule or an eval case within its plan."""


class AutoApproveRule(_Part):
    """Lets a call of a four-eyes tool pass without a person when all conditions hold (OR-33).

    ``arguments`` are the names of all that a call gives, no more and no fewer, null counting as not given; those
    that no condition looks at are a text or a number. None: those that the conditions look at, and nothing else.

    "At most 10" means from 0 on: see ``conditions``.
    """

    id: RuleId
    tool: Text
    when: Several[Condition] = Field(min_length=1)
    arguments: Several[Text] | None = None

    def allows(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether it lets this call pass."""
        return tool == self.tool and self.within(arguments) and self._knows(arguments)

    def within(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call is within the limits, whatever else it gives."""
        return all(condition.holds(arguments) for condition in self.conditions)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """``when``, and what goes without saying: a number that is only limited from above, by 0 or more, is none
        below 0. Who agreed to at most 10 did not agree to -500.
        """
        above = {one.field for one in self.when if one.op in {"<", "<="} and _is_from_0(one.value)}
        below = {one.field for one in self.when if one.op in {">", ">=", "=="}}
        return (*self.when, *(Condition(field=name, op=">=", value=0) for name in sorted(above - below)))

    @property
    def looked_at(self) -> frozenset[str]:
        """Names of the arguments that its conditions look at."""
        return frozenset(condition.field for condition in self.when)

    @property
    def known(self) -> frozenset[str]:
        """Names of all that a call gives which it lets pass."""
        return self.looked_at if self.arguments is None else frozenset(self.arguments)

    def _knows(self, arguments: Mapping[str, Any]) -> bool:
        given = {name: value for name, value in arguments.items() if value is not None}
        return given.keys() == self.known and all(
            isinstance(value, str) or _is_number(value)
            for name, value in given.items()
            if name not in self.looked_at
        )


class Expectation(_Part):
    """What an eval case wants of the last turn: parts of the reply, and tools that were called, or neither."""

    says: Several[Text] = ()
    says_not: Several[Text] = ()
    calls: Several[Text] = ()
    calls_not: Several[Text] = ()

    @model_validator(mode="after")
    def _wants_something(self) -> "Expectation":
        if not (self.says or self.says_not or self.calls or self.calls_not):
            raise PydanticCustomError("expects_nothing", "nothing is expected")
        return self


class EvalCase(_Part):
    """A conversation that every revision is tried with: the user's messages, the last one is judged (OR-35)."""

    id: RuleId
    messages: Several[Text] = Field(min_length=1, max_length=20)
    expect: Expectation


Identified = TypeVar("Identified", AutoApproveRule, EvalCase)


def _ids_once(parts: tuple[Identified, ...]) -> tuple[Identified, ...]:
    ids = [part.id for part in parts]
    twice = next((key for key in ids if ids.count(key) > 1), None)
    if twice:
        raise PydanticCustomError("id_twice", "{id} × 2", {"id": twice})
    return parts


class Plan(_Part):
    """One agent: role prompt, limits, memory settings, tools. The core knows no domain beyond it.

    ``four_eyes`` names the tools whose calls wait for a second person, ``deactivated_tools`` those that no request
    carries (OR-37): both as the model calls them, those of the app among them.
    """

    name: Annotated[str, StringConstraints(pattern=rf"^{PLAN_NAME}$")]
    language: Literal["es", "en"]
    agent_type: Literal["loop", "agent", "flow"] = "loop"
    role: Text
    instructions: Several[Text] = Field(min_length=1)
    disclaimer: Bilingual
    limits: Limits = Limits()
    memory: Memory = Memory()
    key_events: KeyEventSettings = KeyEventSettings()
    sources: Annotated[dict[Text, SourceSettings], BeforeValidator(_by_name)] = Field(default_factory=dict)
    tools: Several[Text] = ()
    four_eyes: Several[Text] = ()
    deactivated_tools: Several[Text] = ()
    auto_approve_rules: Annotated[Several[AutoApproveRule], AfterValidator(_ids_once)] = ()
    eval_cases: Annotated[Several[EvalCase], AfterValidator(_ids_once)] = ()
    packs: Annotated[Several[PackReference], AfterValidator(_one_pin_each)] = ()
    entitlements: dict[Text, Several[Text]] = Field(default_factory=dict)
    prices: dict[Text, Price] = Field(default_factory=dict)


class TwinKeyError(yaml.constructor.ConstructorError):
    """A mapping has ``key`` twice."""

    def __init__(self, key: str, mark: yaml.Mark) -> None:
        super().__init__(None, None, f"twice: {key}", mark)
        self.key = key


class NoTwins(yaml.SafeLoader):
    """YAML whose mappings have each key once: of two, a reader would trust the wrong one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """As SafeLoader's; a key given twice is an error at its place."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise TwinKeyError(key, key_node.start_mark)
            seen.add(key if isinstance(key, str) else id(key_node))
        return super().construct_mapping(node, deep)


_SHOWN = 60
"""Characters of a key that an error shows."""


def read_plan(text: str, origin: str) -> Plan:
    """Parse and check a plan's YAML. ``origin`` names it in errors.

    Raises SettingsError that names the field, what is wrong with it and the allowed range.
    """
    try:
        raw = yaml.load(text, NoTwins)
    # PyYAML lets a date that does not exist, a number of 5,000 digits and endless nesting through as these.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "?"
        if isinstance(error, TwinKeyError):
            key = " ".join(error.key.split())[:_SHOWN]
            raise SettingsError(sentences("plan_key_twice", origin=origin, key=key, place=place)) from None
        raise SettingsError(sentences("plan_not_yaml", origin=origin, place=place)) from None
    if not isinstance(raw, dict):
        raise SettingsError(sentences("plan_not_a_mapping", origin=origin))
    try:
        return Plan.model_validate(raw)
    except ValidationError as error:
        field, reason = first_fault(error)
        raise SettingsError(sentences("plan_invalid", origin=origin, field=field, reason=reason)) from None


def first_fault(error: ValidationError) -> tuple[str, Sentence | str]:
    """The first field of a plan that is wrong, by its path, and what is wrong with it."""
    first = error.errors()[0]
    return ".".join(str(part) for part in first["loc"]) or "plan", _reason(first)


def with_setting(plan: Plan, path: str, value: Any) -> Plan:
    """The plan with one field set, by its path such as ``memory.full_context.rounds``, checked as a whole.

    Raises ValidationError, see :func:`first_fault`; the plan itself stays as it is.
    """
    raw = plan.model_dump()
    *groups, name = path.split(".")
    place = raw
    for group in groups:
        place = place[group]
    place[name] = value
    return Plan.model_validate(raw)


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
    low, high = whole_numbers(place)
    return (
        sentences("plan_at_least", low=low) if high is None else sentences("plan_range", low=low, high=high)
    )


def whole_numbers(place: tuple[int | str, ...]) -> tuple[int, int | None]:
    """The least and the greatest whole number that the field at ``place`` takes; None: no greatest (LA-11)."""
    schema = Plan.model_json_schema()
    field = schema
    for part in place:
        field = field["properties"][part] if "properties" in field else field["additionalProperties"]
        field = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]] if "$ref" in field else field
    number = next((option for option in field.get("anyOf", ()) if option["type"] == "integer"), field)
    return number["minimum"], number.get("maximum")
