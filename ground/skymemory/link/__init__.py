"""Packets between the ground and satellites: the core's ground, and what Python asks of it."""
