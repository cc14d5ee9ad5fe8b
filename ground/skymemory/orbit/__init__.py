"""Where satellites are: distances of the paper's equations, and Walker constellations seen from a site."""
