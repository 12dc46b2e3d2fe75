"""The chat on a terminal: streamed replies, the conversation so far, and commands."""

from collections.abc import Callable
from contextlib import suppress

from rich.console import Console

from recuerdo.cli.console import complain, out, plain_text, printable, say
from recuerdo.cli.context import find_record
from recuerdo.cli.memory_view import Remembered
from recuerdo.cli.record_view import record_view
from recuerdo.cli.session import Session
from recuerdo.state.errors import RecuerdoError
from recuerdo.state.record import TurnRecord

_PROMPT = "> "
_MESSAGES_SHOWN = 10
_NAMES = {
    "help": "help",
    "ayuda": "help",
    "context": "context",
    "contexto": "context",
    "memory": "memory",
    "memoria": "memory",
    "forget": "forget",
    "olvida": "forget",
    "quit": "quit",
    "salir": "quit",
}


class Talk:
    """A person at a terminal in one conversation, until /quit, Ctrl-D, or Ctrl-C twice."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._console: Console = out()
        self._record: TurnRecord | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "help": self._help,
            "context": self._context,
            "memory": self._memory,
            "forget": self._forget,
        }

    def run(self) -> None:
        """Talk until the person leaves."""
        # Line editing and history for input(); not on every platform.
        with suppress(ImportError):
            import readline  # noqa: F401
        self._console.print(plain_text(say("chat_welcome", conversation=self._session.conversation), "dim"))
        self._show_history()
        interrupted = False
        while True:
            try:
                line = input(_PROMPT)
                interrupted = False
                if not self._take(line):
                    return
            except EOFError:
                self._console.print()
                return
            except KeyboardInterrupt:
                self._console.print()
                if interrupted:
                    return
                interrupted = True
                self._console.print(plain_text(say("chat_interrupted"), "dim"))

    def _show_history(self) -> None:
        session = self._session
        conversations = session.agent.conversations
        messages = session.agent.run_sync(conversations.get(session.conversation, user=session.user))
        for message in [m for m in messages if m.role != "tool" and m.content][-_MESSAGES_SHOWN:]:
            prefix = _PROMPT if message.role == "user" else ""
            self._console.print(plain_text(prefix + message.content, "dim"), soft_wrap=True)

    def _take(self, line: str) -> bool:
        """Handle one line; False when the person leaves."""
        command, _, rest = line.strip().partition(" ")
        if not command:
            return True
        if not command.startswith("/"):
            self._guarded(self._reply, line)
            return True
        name = _NAMES.get(command[1:].lower())
        if name == "quit":
            return False
        if name is None:
            self._console.print(plain_text(say("chat_unknown_command", command=command[:40])))
            return True
        self._guarded(self._commands[name], rest.strip())
        return True

    def _guarded(self, action: Callable[[str], None], argument: str) -> None:
        """What goes wrong is said in one line, and the chat goes on."""
        try:
            action(argument)
        except RecuerdoError as error:
            complain(error.sentence)

    def _reply(self, text: str) -> None:
        turn = self._session.ask(text, self._write)
        self._record = turn.record
        self._console.print("\n")

    def _write(self, token: str) -> None:
        self._console.out(printable(token), end="", highlight=False)

    def _help(self, argument: str) -> None:
        self._console.print(plain_text(say("chat_help")))

    def _context(self, argument: str) -> None:
        session = self._session
        if self._record is None:
            found = find_record(session.agent, session.user, session.conversation)
            self._record = session.agent.run_sync(found)
        usage = session.agent.conversations.usage(session.conversation, user=session.user)
        self._console.print(record_view(self._record, session.agent.run_sync(usage)))

    def _memory(self, argument: str) -> None:
        self._console.print(Remembered.read(self._session.agent, self._session.user).view())

    def _forget(self, argument: str) -> None:
        if not argument:
            self._console.print(plain_text(say("chat_forget_what")))
            return
        remembered = Remembered.read(self._session.agent, self._session.user)
        gone = remembered.forget(self._session.agent, argument)
        self._console.print(plain_text(say("memory_forgotten", item=gone)))
