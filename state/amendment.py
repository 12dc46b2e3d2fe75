"""What an approved proposal changes in a plan: it acts only in the next signed revision (OR-29)."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from recuerdo.state.plan import AutoApproveRule, EvalCase, Text


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RuleAdded(_Part):
    """A rule by which calls of a four-eyes tool pass (OR-25)."""

    kind: Literal["rule"] = "rule"
    rule: AutoApproveRule

    @property
    def name(self) -> str:
        """The rule's id."""
        return self.rule.id


class EvalCaseAdded(_Part):
    """A case that every later revision is tried with (OR-26)."""

    kind: Literal["eval_case"] = "eval_case"
    case: EvalCase

    @property
    def name(self) -> str:
        """The case's id."""
        return self.case.id


class ToolDeactivated(_Part):
    """A tool that requests carry no longer (OR-27), named as the model calls it."""

    kind: Literal["tool"] = "tool"
    tool: Text

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool


Amendment = Annotated[RuleAdded | EvalCaseAdded | ToolDeactivated, Field(discriminator="kind")]


class ApprovedProposal(_Part):
    """A proposal that a person has approved: its id, and what it changes."""

    proposal: Text
    change: Amendment

    @property
    def names(self) -> frozenset[str]:
        """What it can be called by: its id, and the rule, case or tool."""
        return frozenset({self.proposal, self.change.name})
