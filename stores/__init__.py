"""Where things are kept: PostgreSQL, Chroma, embeddings, platform data. Never imports graph or nodes."""
