"""What is wrong with a draft shows when it is opened, not when a tool has run (OR-20, OR-33, OR-37)."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.tools import tool

import recuerdo
from recuerdo.state.errors import SettingsError
from recuerdo.stores.plans import load_plan
from tests.recuerdo.carlos import CARLOS, House
from tests.scripted import ScriptedModel

RULE = {"id": "small", "tool": "refnud", "when": [{"field": "amount", "op": "<=", "value": 10}]}
SLIPS: list[dict[str, Any]] = [
    {"four_eyes": ["refnud"]},
    {"four_eyes": ["refund", "refnud"]},
    {"deactivated_tools": ["refnud"]},
    {"auto_approve_rules": [RULE]},
]


@tool
def refund(amount: float) -> str:
    """Give money back."""
    return "done"


def draft(tmp_path: Path, **changes: Any) -> str:
    data = load_plan("trading").model_dump(mode="json") | {"name": "shop"} | changes
    path = tmp_path / "shop.yaml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("mode", ["live", "preview"])
@pytest.mark.parametrize("slip", SLIPS)
async def test_or_33_or_37_a_draft_that_names_a_tool_nobody_brings_is_not_opened(
    house: House, tmp_path: Path, slip: dict[str, Any], mode: Any
) -> None:
    file = draft(tmp_path, **slip)
    (field,) = slip
    for plan, drafts in ((file, True), (load_plan(file), False)):
        opening = house.open(plan=plan, tools=[refund], mode=mode, settings={"drafts": drafts})
        with pytest.raises(SettingsError, match=rf"{field}.*refnud.*refund") as raised:
            async with opening:
                pass
        assert "\n" not in str(raised.value) and "«refnud»" in raised.value.sentence.es


async def test_or_33_a_file_whose_tool_only_the_app_brings_is_opened_there(
    house: House, tmp_path: Path
) -> None:
    file = draft(tmp_path, four_eyes=["refund"])
    with pytest.raises(SettingsError, match=r"refund.*open_agent\(tools="):
        async with house.open(plan=file, settings={"drafts": True}):
            pass
    model = ScriptedModel(replies=["Hola."])
    async with house.open(plan=file, settings={"drafts": True}, tools=[refund], model=model) as agent:
        assert (await agent.send("Hola", user=CARLOS)).record.draft


async def test_or_33_an_app_that_renamed_a_tool_of_its_signed_plan_is_warned(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def give_back(amount: float) -> str:
        """Give money back, under a new name."""
        return "done"

    plan = load_plan(draft(tmp_path, four_eyes=["refund"]))
    async with house.open(tools=[refund]) as agent:
        await agent.governance.roles.appoint_first_owner("olga")
        revision = await agent.governance.plans.compile(plan, actor="olga")
        await agent.governance.plans.activate(revision.number, actor="olga", name="shop")
    for tools, warned in (([refund], False), ([], False), ([give_back], True)):
        caplog.clear()
        async with house.open(plan="shop", tools=tools):
            pass
        assert ("four_eyes" in caplog.text and "refund" in caplog.text) == warned


def test_or_33_a_script_that_opens_such_a_draft_is_told_too(tmp_path: Path) -> None:
    plan = load_plan(draft(tmp_path, four_eyes=["refnud"]))
    settings = recuerdo.Settings(data=tmp_path / "data")
    with pytest.raises(SettingsError, match="refnud"), recuerdo.open_agent(settings, plan=plan):
        pass
    assert not (tmp_path / "data").exists(), "nothing was opened"
