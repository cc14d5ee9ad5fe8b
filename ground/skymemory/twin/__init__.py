"""The twin: a whole constellation of flight cores in one process, under a virtual clock, with faults from a seed or a file."""
