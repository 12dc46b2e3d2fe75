"""Memories behind one protocol: kept in PostgreSQL with a vector index, or in this process alone."""
