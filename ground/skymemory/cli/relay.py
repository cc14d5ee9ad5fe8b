"""`skymem relay`: connects a satellite to mission control."""

import logging
import signal
import socket
import threading
from pathlib import Path

import click

from skymemory.cli.common import find_sky, sky_option
from skymemory.cli.log_options import begin_log, log_options
from skymemory.cli.parameters import require_place
from skymemory.fsw.relay import COMMAND_PORT, TELEMETRY_PORT, Relay
from skymemory.link.control import ControlPlane
from skymemory.link.other_versions import other_versions, version_words
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)

PORT_MAX = 65535
LOOK_S = 0.5
PING_S = 5.0
"""Seconds for which the satellite is waited for at the start."""


class Endpoint(click.ParamType[tuple[str, int]]):
    """A HOST:PORT on the command line."""

    name = "host:port"

    def convert(self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Read a name or an IPv4 address, a colon and a port; look up the name's address."""
        if isinstance(value, tuple):
            return value
        host, _, port = value.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
            self.fail(f"{value!r} is not HOST:PORT with a port from 1 to {PORT_MAX}", param, ctx)
        try:
            return socket.gethostbyname(host), int(port)
        except OSError as error:
            self.fail(f"{host}: {error.strerror}", param, ctx)


@click.command()
@click.argument("plane", type=click.IntRange(min=1))
@click.argument("slot", type=click.IntRange(min=1))
@click.option(
    "--commands", type=Endpoint(), default=f"127.0.0.1:{COMMAND_PORT}", show_default=True, help="Address that takes commands."
)
@click.option(
    "--telemetry", type=Endpoint(), default=f"127.0.0.1:{TELEMETRY_PORT}", show_default=True, help="Address that gets telemetry."
)
@sky_option
@log_options
def relay(plane: int, slot: int, commands: tuple[str, int], telemetry: tuple[str, int], constellation_path: Path | None) -> None:
    """Connect mission control to satellite PLANE SLOT, as cFS's ci_lab and to_lab would, until Ctrl-C.

    Commands for the satellite's Software Bus come as cFS packets over UDP. Its telemetry goes out the same way. A satellite that
    refuses this host's keys, or does not answer, is told of at the start.
    """
    constellation = find_sky(constellation_path).constellation
    place = Satellite(plane, slot)
    require_place(place, constellation.torus, f"{plane} {slot}")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    route = Route(place, place)
    begin_log()
    with Relay(constellation, route, commands, telemetry, lambda text: _log.warning("%s", text)) as running:
        click.echo(f"satellite {place}: commands at {commands[0]}:{running.port}, telemetry to {telemetry[0]}:{telemetry[1]}")
        if why := _why_not(constellation, route):
            _log.warning("%s", why)
        while not stop.wait(LOOK_S):  # a library's thread may get the signal, which then does not wake this one
            pass


def _why_not(constellation: Constellation, route: Route) -> str:
    """Ping a satellite, and return why it will not take commands now; '' if it may."""
    with ControlPlane(constellation) as control:
        if control.ping([route], PING_S):
            return ""
        versions = version_words(other_versions(constellation, [route.satellite]))
        return control.refusal() or versions or f"satellite {route.satellite} does not answer yet"
