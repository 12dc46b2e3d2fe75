"""Deployment settings, from the environment and `.env`. They never hold behaviour: that is the plan's."""

from pathlib import Path
from typing import Literal, Self

from platformdirs import user_data_path
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from recuerdo.state.errors import SettingsError
from recuerdo.state.limits import LOW_CONFIDENCE_BELOW, LOW_CONFIDENCE_MAX_DAYS, MemoryLimits
from recuerdo.state.sentences import Sentence, load_sentences

sentences = load_sentences(__package__)

Layout = Literal["tail_system", "tail_user", "single"]
"""In which messages the prompt's parts stand, as the model's provider wants them (design section 4)."""


class Settings(BaseSettings):
    """Where Recuerdo keeps its data and which parts it uses.

    Every field has an environment variable of the name given as its alias. Secrets are ``SecretStr`` and
    never printed.
    """

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        populate_by_name=True,
        frozen=True,
    )

    data: Path = Field(default_factory=lambda: user_data_path("recuerdo"), validation_alias="RECUERDO_DATA")
    plan: str = Field(default="trading", validation_alias="RECUERDO_PLAN")
    tenant: str = Field(default="default", validation_alias="RECUERDO_TENANT")
    drafts: bool = Field(default=False, validation_alias="RECUERDO_DRAFTS")
    model: str | None = Field(default=None, validation_alias="RECUERDO_MODEL")
    layout: Layout = Field(default="tail_system", validation_alias="RECUERDO_LAYOUT")
    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    chroma_url: str | None = Field(default=None, validation_alias="CHROMA_URL")
    embeddings: str | None = Field(default=None, validation_alias="RECUERDO_EMBEDDINGS")
    openai_api_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    openai_base_url: SecretStr | None = Field(default=None, validation_alias="OPENAI_BASE_URL")
    low_confidence_max_days: int = Field(
        default=LOW_CONFIDENCE_MAX_DAYS,
        ge=1,
        le=LOW_CONFIDENCE_MAX_DAYS,
        validation_alias="LOW_CONFIDENCE_MAX_DAYS",
    )
    low_confidence_below: float = Field(
        default=LOW_CONFIDENCE_BELOW, ge=0, le=1, validation_alias="LOW_CONFIDENCE_BELOW"
    )

    @property
    def memory_limits(self) -> MemoryLimits:
        """How long what was inferred is kept: at most 7 days, a setting may only shorten them (OR-9)."""
        return MemoryLimits(self.low_confidence_max_days, self.low_confidence_below)

    @field_validator("openai_api_key")
    @classmethod
    def _is_a_key(cls, key: SecretStr | None) -> SecretStr | None:
        """Without the blanks that copying brings along. What cannot stand in a header is no key."""
        if key is None:
            return None
        text = key.get_secret_value().strip()
        if not text.isascii() or not text.isprintable():
            raise ValueError("it has characters that no key has")
        return SecretStr(text)

    @classmethod
    def load(cls) -> Self:
        """Read the environment. Raises SettingsError that names the variable that is wrong."""
        try:
            return cls()
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(
                sentences("setting_invalid", name=first["loc"][0], reason=_reason(first))
            ) from None


def _reason(error: ErrorDetails) -> Sentence | str:
    """What is wrong with a setting; the checker's own words for what has no sentence."""
    match error["type"]:
        case "literal_error":
            # "'a' or 'b'" is English only.
            return sentences("setting_choice", values=error["ctx"]["expected"].replace(" or ", ", "))
        case "less_than_equal":
            return sentences("setting_at_most", limit=error["ctx"]["le"])
        case "greater_than_equal":
            return sentences("setting_at_least", limit=error["ctx"]["ge"])
        case _:
            return error["msg"]
