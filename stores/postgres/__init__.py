"""What is kept in PostgreSQL: the turn log, long-term memory, platform data, checkpoints, the schedule."""
