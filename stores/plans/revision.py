"""A signed revision of a plan: its canonical form (RFC 8785), its hash, and opening one (OR-29, A-28).

The tenant, the parent and the full pins of the packs are signed with it: a revision of one tenant is none of
another's. Nothing of a user is in it (IM-12).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import rfc8785
from pydantic import TypeAdapter, ValidationError

from recuerdo.state.amendment import ApprovedProposal
from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan
from recuerdo.state.sentences import load_sentences
from recuerdo.stores.keys import Signature, SigningKey, Trusted, envelope, find_fault
from recuerdo.stores.plans.merge import Carried, without_carried

sentences = load_sentences(__package__)

FORMAT = 1
"""Number of the document's form."""

REVISION_TYPE = "application/vnd.recuerdo.plan+json"

_INCLUDED = TypeAdapter(tuple[ApprovedProposal, ...])
_EXCLUDED = TypeAdapter(tuple[str, ...])


@dataclass(frozen=True)
class Revision:
    """A verified revision. ``sha256`` is that of its document, ``parent`` that of the one it goes on from.

    ``included`` are the proposals that it carries, ``excluded`` the ids of approved ones that were taken out, sorted;
    ``packs`` gives the full pin of each ``name@pin``.
    """

    tenant: str
    plan: Plan
    number: int
    parent: str | None
    included: tuple[ApprovedProposal, ...]
    packs: Mapping[str, str]
    sha256: str
    excluded: tuple[str, ...] = ()

    @property
    def carried(self) -> Carried:
        """What the next revision goes on from."""
        return Carried(self.included, self.excluded)

    @property
    def draft(self) -> Plan:
        """The plan without what proposals brought: what it was compiled from, or would be again."""
        return without_carried(self.plan, self.carried)

    @property
    def label(self) -> str:
        """``r8``, as records and the audit say it."""
        return label(self.number)

    @property
    def reference(self) -> str:
        """``name r8``."""
        return reference(self.plan.name, self.number)


@dataclass(frozen=True)
class SealedRevision:
    """A revision as it is stored: nothing in it is to be believed before :func:`unseal_revision`."""

    tenant: str
    name: str
    number: int
    sha256: str
    document: bytes
    signature: Signature

    def envelope(self) -> dict[str, Any]:
        """The revision as a DSSE envelope."""
        return envelope(REVISION_TYPE, self.document, (self.signature,))


def label(number: int) -> str:
    """``r8``."""
    return f"r{number}"


def reference(name: str, number: int) -> str:
    """``name r8``."""
    return f"{name} {label(number)}"


def seal_revision(
    tenant: str,
    plan: Plan,
    number: int,
    parent: str | None,
    carried: Carried,
    packs: Mapping[str, str],
    key: SigningKey,
) -> SealedRevision:
    """Write and sign a revision. Raises SettingsError when the plan holds text that has no canonical form."""
    content = {
        "format": FORMAT,
        "tenant": tenant,
        "number": number,
        "parent": parent,
        "plan": plan.model_dump(mode="json"),
        "included": _INCLUDED.dump_python(carried.included, mode="json"),
        "packs": dict(packs),
    }
    if carried.excluded:
        # Left out where empty: it came later, and what has none keeps its form and its hash.
        content["excluded"] = list(carried.excluded)
    try:
        document = rfc8785.dumps(content)
    except rfc8785.CanonicalizationError:
        raise SettingsError(sentences("plan_not_canonical", plan=plan.name)) from None
    signature = key.sign(REVISION_TYPE, document)
    return SealedRevision(tenant, plan.name, number, sha256(document).hexdigest(), document, signature)


def unseal_revision(sealed: SealedRevision, trusted: Trusted) -> Revision:
    """The revision inside.

    Raises SettingsError, which names plan and revision, when the document is not what its hash says, when no
    trusted key has signed it, when it is another's, or when this program does not know its form.
    """
    if sha256(sealed.document).hexdigest() != sealed.sha256:
        raise _refused(sealed, "altered")
    fault = find_fault(REVISION_TYPE, sealed.document, (sealed.signature,), trusted)
    if fault is not None:
        raise _refused(sealed, f"signature_{fault}")
    content = json.loads(sealed.document)
    if content["format"] != FORMAT:
        raise _refused(sealed, "format_unknown")
    if (content["tenant"], content["plan"]["name"], content["number"]) != (
        sealed.tenant,
        sealed.name,
        sealed.number,
    ):
        raise _refused(sealed, "altered")
    try:
        # Signed by an older program: what it took need not be what this one takes.
        plan = Plan.model_validate_json(json.dumps(content["plan"]))
        included = _INCLUDED.validate_json(json.dumps(content["included"]))
        excluded = _EXCLUDED.validate_python(content.get("excluded", ()))
    except ValidationError:
        raise _refused(sealed, "format_unknown") from None
    return Revision(
        sealed.tenant,
        plan,
        sealed.number,
        content["parent"],
        included,
        content["packs"],
        sealed.sha256,
        excluded,
    )


def _refused(sealed: SealedRevision, reason: str) -> SettingsError:
    return SettingsError(
        sentences(
            "revision_refused", revision=reference(sealed.name, sealed.number), reason=sentences(reason)
        )
    )
