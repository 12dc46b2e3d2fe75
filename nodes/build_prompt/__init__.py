"""Step 4 of the turn: the exact messages that go to the model (RF-50). ``node`` is the step."""
