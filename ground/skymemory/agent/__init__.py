"""The ground agent: one process a host that owns its links to the sky, for any number of engines, Redis clients and browsers."""
