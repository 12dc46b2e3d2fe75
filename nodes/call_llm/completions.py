"""The OpenAI-compatible chat model. Imported only when one is configured: it takes about two seconds."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from recuerdo.nodes.call_llm.failures import BrokenReplyError, sentences
from recuerdo.stores.endpoint import Endpoint

# Seconds. Reading is long: a model on the user's own processor may think that long before its first word.
TIMEOUT = openai.Timeout(connect=5.0, read=120.0, write=30.0, pool=5.0)
MAX_RETRIES = 2


class ChatCompletions(ChatOpenAI):
    """ChatOpenAI that notices a reply cut short, and limits the output of servers that are not OpenAI's."""

    limit_as_max_tokens: bool = False

    async def aclose(self) -> None:
        """Close the connections; the model cannot be called afterwards."""
        self.root_client.close()
        await self.root_async_client.close()

    def _get_request_payload(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(*args, **kwargs)
        # Ollama and older llama.cpp and vLLM ignore max_completion_tokens without a word (ollama issue
        # 7125), so that the limit of RF-34 would not hold. OpenAI's reasoning models know no other name.
        if self.limit_as_max_tokens and "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        finished = False
        for chunk in super()._stream(*args, **kwargs):
            finished = finished or _is_last(chunk)
            yield chunk
        _require(finished)

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        finished = False
        async for chunk in super()._astream(*args, **kwargs):
            finished = finished or _is_last(chunk)
            yield chunk
        _require(finished)


def connect(model: str, key: SecretStr, endpoint: Endpoint) -> BaseChatModel:
    """A chat model at ``endpoint``. Its connections belong to the event loop in which it is first used."""
    # Clients of our own: the default ones are shared between models and so between event loops, take a
    # password in the URL into the log, and ask the environment's proxy for a server on this machine.
    transport: dict[str, Any] = {
        "timeout": TIMEOUT,
        "auth": endpoint.credentials,
        "trust_env": not endpoint.is_local,
    }
    chat = ChatCompletions(
        model=model,
        api_key=key,
        base_url=endpoint.url,
        timeout=TIMEOUT,
        max_retries=MAX_RETRIES,
        stream_usage=True,
        use_responses_api=False,
        openai_proxy=None,
        http_client=openai.DefaultHttpxClient(**transport),
        http_async_client=openai.DefaultAsyncHttpxClient(**transport),
        limit_as_max_tokens=not endpoint.is_openai,
    )
    if not endpoint.is_openai:
        _forget_account(chat)
    return chat


def _forget_account(chat: ChatOpenAI) -> None:
    """The organisation and project that the environment names are OpenAI's: no business of another server."""
    for client in (chat.root_client, chat.root_async_client):
        client.organization = client.project = None


def _is_last(chunk: ChatGenerationChunk) -> bool:
    return bool((chunk.generation_info or {}).get("finish_reason"))


def _require(finished: bool) -> None:
    # A server or proxy that dies may end the stream in good form; the openai package then says nothing.
    if not finished:
        raise BrokenReplyError(sentences("broken_off").en)
