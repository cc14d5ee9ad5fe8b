"""Command line parameters that several commands take: a satellite, a page for a picture."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from skymemory.cli.common import BadInput
from skymemory.common.accounts import NAMES
from skymemory.simulate.drawing import Page
from skymemory.sky.placement.layouts import SERVERS_MAX
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

_INCHES: Final = {"mm": 1 / 25.4, "cm": 1 / 2.54, "in": 1.0, "pt": 1 / 72.27}
"""Inches of each unit; points are TeX's, in which \\columnwidth is given."""
_WIDTHS_IN: Final = (2.0, 40.0)

Command = TypeVar("Command", bound=Callable[..., Any])


class Place(click.ParamType[Satellite]):
    """A satellite on the command line, plane first."""

    name = "plane,slot"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Satellite:
        """Read two whole numbers with a comma between them."""
        if isinstance(value, Satellite):
            return value
        try:
            plane, slot = (int(word) for word in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not PLANE,SLOT: two whole numbers with a comma between them", param, ctx)
        return Satellite(plane, slot)


def require_servers(servers: int, torus: Torus) -> None:
    """Check `--servers`.

    Raises:
        BadInput: The grid has fewer satellites, or a satellite has no room for so many.
    """
    satellites = torus.planes * torus.slots
    if servers > satellites:
        raise BadInput(f"--servers {servers}: there are {satellites} satellites ({torus.planes} planes x {torus.slots} slots)")
    if servers > SERVERS_MAX:
        raise BadInput(f"--servers {servers}: satellites have room for {SERVERS_MAX:,}")


def require_place(place: Satellite, torus: Torus, named: str) -> None:
    """Check that a satellite is one of the grid.

    Args:
        named: The user's input, as an error names it.

    Raises:
        BadInput: The grid has no such satellite.
    """
    if place not in torus:
        raise BadInput(f"{named}: planes are 1 to {torus.planes}, slots 1 to {torus.slots}")


class AccountName(click.ParamType[str]):
    """A name of a client that has a key or password."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a name."""
        if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", str(value)) is None:
            self.fail(f"{value!r} is no such name; allowed are {NAMES}", param, ctx)
        return str(value)


class Width(click.ParamType[float]):
    """A width with its unit on the command line, in inches inside."""

    name = "width"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number with mm, cm, in or pt."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?) ?(mm|cm|in|pt)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a width with its unit; allowed are 88mm, 8.8cm, 3.5in and 252pt", param, ctx)
        inches = float(match[1]) * _INCHES[match[2]]
        low, high = _WIDTHS_IN
        if not low <= inches <= high:
            self.fail(f"{value!r} is {inches:g} in; allowed are {low:g} to {high:g} in", param, ctx)
        return inches


def page_options(command: Command) -> Command:
    """Add --bare and --width, which `page` reads."""
    bare = click.option("--bare", is_flag=True, help="Leave out title and sentence: a paper has captions.")
    width = click.option("--width", type=Width(), help="Width of the picture with its unit: 88mm, 3.5in, 252pt.")
    return bare(width(command))


def page(bare: bool, width: float | None) -> Page:
    """Return the page that the two options ask for."""
    return Page(bare, width)
