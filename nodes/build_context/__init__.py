"""Step 2 of the turn: the context and its blocks (RF-47). ``node`` is the step; one file per part a to h."""
