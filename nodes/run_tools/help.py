"""The tool with which the model asks a person for help (A-33); whether the turn waits for one, the plan says."""

from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool

from recuerdo.nodes.build_context.history import READ_ONLY
from recuerdo.nodes.run_tools.ledger import IDEMPOTENCY_KEY
from recuerdo.nodes.run_tools.requested import ASKS_FOR_HELP
from recuerdo.nodes.run_tools.tools import call_of
from recuerdo.stores.postgres.approvals import Approvals


async def ask_for_help(question: str, config: RunnableConfig) -> str:
    """Ask a person of the staff for help when it is not clear what the user wants or what may be done. question: what
    the person has to decide, in one sentence.
    """
    call, key = call_of(config), UUID(config["configurable"][IDEMPOTENCY_KEY])
    approvals = Approvals(call.services.database, call.caller.tenant, call.services.keys)
    answer = (await approvals.of([key])).get(key)
    if answer is None:
        return "The question was noted for the staff. Nobody has answered yet: tell the user so."
    return f"A person took it on and says: {answer.reason or 'go ahead'}"


HELP_TOOLS: dict[str, BaseTool] = {
    "ask_for_help": StructuredTool.from_function(
        coroutine=ask_for_help, metadata={READ_ONLY: True, ASKS_FOR_HELP: True}, handle_tool_error=True
    )
}
