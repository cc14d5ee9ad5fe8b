"""Addresses of satellites."""

from typing import NamedTuple


class Satellite(NamedTuple):
    """Address of a satellite; planes and slots count from 1."""

    plane: int
    slot: int

    def __str__(self) -> str:
        return f"[{self.plane}, {self.slot}]"
