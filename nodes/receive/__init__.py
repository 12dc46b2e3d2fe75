"""Step 1 of the turn: the message, the caller and the plan in force (RF-46). ``node`` is the step."""
