"""Orbits of satellites: the paper's distances, Walker patterns and TLE files under SGP4, and schedules over a site."""
