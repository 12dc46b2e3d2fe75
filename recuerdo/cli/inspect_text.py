"""``recuerdo inspect``: what is read out of a text before a model sees it."""

from typing import Annotated

import typer

from recuerdo.cli.console import piped_text, print_json, say
from recuerdo.cli.options import AsJson


def inspect_text(
    text: Annotated[str | None, typer.Argument(help="Default: standard input.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show language, symbols and sensitive parts of a text. Nothing is stored."""
    from recuerdo.nodes.build_context.symbols import resolve_symbols
    from recuerdo.nodes.receive.language import detect_language
    from recuerdo.stores.sensitive import find_sensitive

    text = piped_text() if text is None else text
    language = detect_language(text)
    read = resolve_symbols(text, (), ())
    symbols = list(read.symbols)
    spans = [vars(span) for span in find_sensitive(text)]
    if as_json:
        print_json({"language": language, "symbols": symbols, "maybe": list(read.unsure), "sensitive": spans})
        return
    print(say("inspect_language", language=language))
    print(say("inspect_symbols", symbols=", ".join(symbols) or "-"))
    if read.unsure:
        print(say("inspect_maybe", symbols=", ".join(read.unsure)))
    listed = ", ".join(f"{span['kind']} [{span['start']}:{span['end']}]" for span in spans)
    print(say("inspect_sensitive", spans=listed or "-"))
