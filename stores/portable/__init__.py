"""The portable form of long-term memory: one tenant as one SQLite file, one user as plain data (OR-6, IM-43)."""

from recuerdo.stores.portable.export import export_tenant, export_user
from recuerdo.stores.portable.importing import Imported, import_tenant

__all__ = ["Imported", "export_tenant", "export_user", "import_tenant"]
