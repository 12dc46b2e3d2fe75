"""An app's embeddings for an event loop that is not the app's."""

from langchain_core.embeddings import Embeddings


class ThreadedEmbeddings(Embeddings):
    """``embeddings`` by its sync methods in a thread: its async client may belong to another loop."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """See LangChain's ``Embeddings``."""
        return self._embeddings.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """See LangChain's ``Embeddings``."""
        return self._embeddings.embed_query(text)
