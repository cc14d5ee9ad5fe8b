"""The twin: a whole constellation of flight cores in one process, under a virtual clock, with faults from a seed or a file."""

from typing import Final

VIOLATIONS_MAX: Final = 10
"""violations at which a run stops unless told otherwise: more of them rarely say more. The command line need not load the rest"""
