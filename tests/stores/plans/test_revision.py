"""A revision's canonical form, hash and signature (A-28, A-36, IM-12)."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from recuerdo.state.errors import SettingsError
from recuerdo.state.plan import Plan
from recuerdo.stores.keys import KeyFolder, Signature
from recuerdo.stores.plans import SealedRevision, load_plan, seal_revision, unseal_revision
from recuerdo.stores.plans.diff import Difference, differences
from recuerdo.stores.plans.merge import Carried
from tests.stores.plans.conftest import NOW, TENANT
from tests.stores.plans.test_merge import CASE, RULE, rule


def sealed_by(keys: KeyFolder, plan: Plan, *excluded: str) -> SealedRevision:
    pins = {"tarifas@aaaaaaaaaaaa": "a" * 64}
    carried = Carried((RULE,), excluded)
    return seal_revision(TENANT, plan, 8, "b" * 64, carried, pins, keys.signing_key("olga", NOW))


def test_a_36_a_revision_holds_the_whole_plan(keys: KeyFolder, draft: Plan) -> None:
    plan = draft.model_copy(update={"packs": ("tarifas@aaaaaaaaaaaa",), "auto_approve_rules": (rule(),)})
    revision = unseal_revision(sealed_by(keys, plan), keys.trusted())
    assert revision.plan == plan
    assert (revision.label, revision.reference, revision.parent) == ("r8", "hotel r8", "b" * 64)
    assert revision.included == (RULE,)
    assert revision.packs == {"tarifas@aaaaaaaaaaaa": "a" * 64}


@pytest.mark.parametrize("name", ["trading", "hotel_draft"])
def test_a_28_the_same_plan_gives_the_same_bytes(
    keys: KeyFolder, draft: Plan, tmp_path: Path, name: str
) -> None:
    plan = load_plan("trading") if name == "trading" else draft
    first, second = sealed_by(keys, plan), sealed_by(KeyFolder(tmp_path / "other"), plan)
    assert (first.document, first.sha256) == (second.document, second.sha256)
    assert first.signature != second.signature
    again = unseal_revision(first, keys.trusted()).plan
    assert sealed_by(keys, again).document == first.document


def test_im_12_a_revision_has_nothing_of_who_made_it_or_of_users(keys: KeyFolder, draft: Plan) -> None:
    document = json.loads(sealed_by(keys, draft).document)
    assert set(document) == {"format", "tenant", "number", "parent", "plan", "included", "packs"}
    assert set(document["plan"]) == set(Plan.model_fields)
    assert "olga" not in str(document)


def altered(sealed: SealedRevision) -> SealedRevision:
    return replace(sealed, document=sealed.document.replace(b"Recepci", b"Recapci"))


def with_its_hash(sealed: SealedRevision) -> SealedRevision:
    changed = altered(sealed)
    return replace(changed, sha256=sha256(changed.document).hexdigest())


def test_or_29_what_was_left_out_is_signed_with_it(keys: KeyFolder, draft: Plan) -> None:
    sealed = sealed_by(keys, draft, "p2", "p3")
    assert json.loads(sealed.document)["excluded"] == ["p2", "p3"]
    assert unseal_revision(sealed, keys.trusted()).excluded == ("p2", "p3")
    added = sealed.document.replace(b'"p3"', b'"p3","p1"')
    forged = replace(sealed, document=added, sha256=sha256(added).hexdigest())
    with pytest.raises(SettingsError, match="signature is wrong"):
        unseal_revision(forged, keys.trusted())


def test_a_28_a_revision_that_leaves_nothing_out_has_the_bytes_it_always_had(
    keys: KeyFolder, draft: Plan
) -> None:
    # As it was signed before revisions could leave anything out.
    content = {
        "format": 1,
        "tenant": TENANT,
        "number": 8,
        "parent": "b" * 64,
        "plan": draft.model_dump(mode="json"),
        "included": [RULE.model_dump(mode="json")],
        "packs": {"tarifas@aaaaaaaaaaaa": "a" * 64},
    }
    sealed = sealed_by(keys, draft)
    assert sealed.document == rfc8785.dumps(content)
    assert unseal_revision(sealed, keys.trusted()).excluded == ()


FORGERIES: dict[str, tuple[Any, str]] = {
    "one byte changed": (altered, "hash mismatch"),
    "its hash changed too": (with_its_hash, "signature is wrong"),
    "a forged signature": (
        lambda sealed: replace(sealed, signature=Signature(sealed.signature.key_id, bytes(64))),
        "signature is wrong",
    ),
    "no signature": (lambda sealed: replace(sealed, signature=Signature("", b"")), "not trusted"),
    "under another tenant": (lambda sealed: replace(sealed, tenant="t2"), "not what was signed"),
    "under another number": (lambda sealed: replace(sealed, number=9), "not what was signed"),
    "under another name": (lambda sealed: replace(sealed, name="trading"), "not what was signed"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_or_29_an_altered_revision_fails_verification(keys: KeyFolder, draft: Plan, forgery: str) -> None:
    forge, reason = FORGERIES[forgery]
    with pytest.raises(SettingsError, match=rf"r[89] is refused.*{reason}"):
        unseal_revision(forge(sealed_by(keys, draft)), keys.trusted())


def test_a_28_a_strangers_key_is_not_trusted(keys: KeyFolder, draft: Plan, tmp_path: Path) -> None:
    stranger = KeyFolder(tmp_path / "stranger")
    keys.signing_key("olga", NOW)
    with pytest.raises(SettingsError, match=r"hotel r8.*not trusted"):
        unseal_revision(sealed_by(stranger, draft), keys.trusted())


def test_a_28_a_rotated_key_keeps_old_revisions_valid(keys: KeyFolder, draft: Plan) -> None:
    old = sealed_by(keys, draft)
    keys.rotate("olga", NOW)
    new = sealed_by(keys, draft)
    assert old.signature.key_id != new.signature.key_id
    assert unseal_revision(old, keys.trusted()).plan == unseal_revision(new, keys.trusted()).plan


def test_a_28_a_text_without_a_canonical_form_is_refused(keys: KeyFolder, draft: Plan) -> None:
    with pytest.raises(SettingsError, match="half a Unicode character"):
        sealed_by(keys, draft.model_copy(update={"role": "\ud800"}))


def test_or_29_a_difference_names_fields_tools_packs_and_rules(draft: Plan) -> None:
    before = draft.model_copy(update={"packs": ("tarifas@aaaaaaaaaaaa",)})
    limits = draft.limits.model_copy(update={"tool_rounds": 3})
    after = draft.model_copy(
        update={
            "packs": ("tarifas@bbbbbbbbbbbb",),
            "tools": ("apply_discount",),
            "four_eyes": ("apply_discount",),
            "auto_approve_rules": (rule(),),
            "eval_cases": (CASE,),
            "limits": limits,
        }
    )
    assert differences(before, before) == []
    found = {one.field: (one.before, one.after) for one in differences(before, after)}
    assert found["limits.tool_rounds"] == (8, 3)
    assert found["packs[tarifas]"] == ("aaaaaaaaaaaa", "bbbbbbbbbbbb")
    assert (found["tools[get_quote]"], found["tools[apply_discount]"]) == ((True, None), (None, True))
    assert found["four_eyes[apply_discount]"] == (None, True)
    assert found["auto_approve_rules[discounts].tool"] == (None, "apply_discount")
    assert found["eval_cases[late].messages"] == (None, ["¿Late check-out?"])
    assert "role" not in found
    assert differences(after, before)[0] == Difference("auto_approve_rules[discounts].id", "discounts", None)
