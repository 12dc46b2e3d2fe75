"""Plans: the drafts that ship, and the signed revisions that are in force (design section 6).

``shipped`` reads drafts, ``merge`` brings approved proposals into one, ``revision`` is the canonical form and its
signature, ``rows`` keeps revisions in PostgreSQL, ``office`` compiles, activates and stops, ``shelf`` gives what is
in force, verified once per process, ``autonomy`` says what may pass without a person, ``diff`` compares,
``standing`` says which of them have a proposal.
"""

from recuerdo.stores.plans.autonomy import Autonomy, EmergencyStop, read_autonomy
from recuerdo.stores.plans.office import PlanOffice, checked_plan_name
from recuerdo.stores.plans.revision import Revision, SealedRevision, seal_revision, unseal_revision
from recuerdo.stores.plans.rows import Activation, RevisionEntry
from recuerdo.stores.plans.shelf import PlanShelf
from recuerdo.stores.plans.shipped import is_file, load_draft, load_plan, shipped_plans

__all__ = [
    "Activation",
    "Autonomy",
    "EmergencyStop",
    "PlanOffice",
    "PlanShelf",
    "Revision",
    "RevisionEntry",
    "SealedRevision",
    "checked_plan_name",
    "is_file",
    "load_draft",
    "load_plan",
    "read_autonomy",
    "seal_revision",
    "shipped_plans",
    "unseal_revision",
]
