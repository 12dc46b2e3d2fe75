"""Step 5 of the turn: the model and its answer (RF-51). ``node`` is the step."""
