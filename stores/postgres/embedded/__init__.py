"""The PostgreSQL server that Recuerdo runs itself where no `DATABASE_URL` is given."""

from recuerdo.stores.postgres.embedded.server import EmbeddedServer

__all__ = ["EmbeddedServer"]
