"""Measurements: SkyMemory beside other stores, generation with the cache, a constellation at rest."""
