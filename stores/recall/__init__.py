"""Finding memories again: by meaning and by words, the two scores added (design section 5)."""
