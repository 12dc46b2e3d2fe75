"""Step 6 of the turn: what it leaves behind (RF-52 to RF-55, OR-3). ``node`` is the step."""
