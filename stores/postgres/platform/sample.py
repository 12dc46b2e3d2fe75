"""Platform data as plain data in a program: sample data, tests."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, ValidationError

from recuerdo.state.errors import InputError
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.sources.reasons import reason_of
from recuerdo.stores.sources.rows import (
    Alert,
    CourseProgress,
    EconomicEvent,
    Position,
    Profile,
    Quote,
    Row,
    Signal,
)

sentences = load_sentences("recuerdo.stores.postgres")


class PlatformSample(BaseModel):
    """Platform data to load: any of the kinds, each a list of rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profiles: tuple[Profile, ...] = ()
    quotes: tuple[Quote, ...] = ()
    positions: tuple[Position, ...] = ()
    alerts: tuple[Alert, ...] = ()
    signals: tuple[Signal, ...] = ()
    education: tuple[CourseProgress, ...] = ()
    events: tuple[EconomicEvent, ...] = ()

    def batches(self) -> Iterator[tuple[type[Row], tuple[Row, ...]]]:
        """The rows of each kind that has some, as :meth:`Platform.load_batches` takes them."""
        for name in type(self).model_fields:
            rows: tuple[Row, ...] = getattr(self, name)
            if rows:
                yield type(rows[0]), rows


def parse_sample(data: object) -> PlatformSample:
    """Validate plain data. Raises InputError that names the first place that is wrong."""
    try:
        return PlatformSample.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "-"
        raise InputError(sentences("platform_sample_invalid", place=place, reason=reason_of(first))) from None
