"""The twin: a whole constellation of flight cores in one process, under a virtual clock, with faults from a seed or a file."""

from typing import Final

VIOLATIONS_MAX: Final = 10
"""Violations at which a run stops by default: more of them rarely say more. It is here so that the command line need not load the
rest."""
