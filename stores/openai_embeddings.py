"""Embeddings of an OpenAI-compatible server. Imported only when one is configured: it takes about two seconds."""

from typing import Any

import openai
from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr

from recuerdo.stores.endpoint import Endpoint

# Seconds. A turn's recall waits for it, and goes on without.
TIMEOUT = openai.Timeout(connect=5.0, read=20.0, write=10.0, pool=5.0)
MAX_RETRIES = 2


def connect(model: str, key: SecretStr, endpoint: Endpoint) -> OpenAIEmbeddings:
    """Embeddings at ``endpoint``. Their connections belong to the event loop in which they are first used."""
    # Clients of our own, for the reasons of the chat model's.
    transport: dict[str, Any] = {
        "timeout": TIMEOUT,
        "auth": endpoint.credentials,
        "trust_env": not endpoint.is_local,
    }
    return OpenAIEmbeddings(
        model=model,
        api_key=key,
        base_url=endpoint.url,
        timeout=TIMEOUT,
        max_retries=MAX_RETRIES,
        # Its check fetches token ranks from the network, and sends token numbers that other servers refuse.
        check_embedding_ctx_length=False,
        http_client=openai.DefaultHttpxClient(**transport),
        http_async_client=openai.DefaultAsyncHttpxClient(**transport),
    )
