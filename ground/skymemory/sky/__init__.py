"""The sky: the constellation file, orbits and schedules, and the places of servers and of shares of blocks."""
