"""Constellations to work with: local processes, containers, and the record of the one that is up."""
