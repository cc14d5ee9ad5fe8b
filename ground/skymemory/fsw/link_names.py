"""The links of a satellite by name, in the order in which tables, commands and telemetry have them."""

from typing import Final

from skymemory.fsw.structures import IslHousekeeping, IslHousekeepingLink

NEIGHBOURS: Final = ("north", "east", "south", "west")
LINKS: Final = (*NEIGHBOURS, "ground")


def links_of(housekeeping: IslHousekeeping) -> dict[str, IslHousekeepingLink]:
    """Return isl's housekeeping of each link."""
    return dict(zip(LINKS, housekeeping.link, strict=True))
