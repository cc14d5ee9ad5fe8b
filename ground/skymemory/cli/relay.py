"""`skymem relay`: connects a satellite to mission control."""

import signal
import socket
import threading
from pathlib import Path

import click

from skymemory.cli.common import find_sky, sky_option
from skymemory.cli.parameters import require_place
from skymemory.fsw.relay import COMMAND_PORT, TELEMETRY_PORT, Relay
from skymemory.sky.entry_satellites import Route
from skymemory.wire.address import Satellite

PORT_MAX = 65535
LOOK_S = 0.5


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
def relay(plane: int, slot: int, commands: tuple[str, int], telemetry: tuple[str, int], constellation_path: Path | None) -> None:
    """Connect mission control to satellite PLANE SLOT, as cFS's ci_lab and to_lab would, until Ctrl-C.

    Commands for the satellite's Software Bus come as cFS packets over UDP. Its telemetry goes out the same way.
    """
    constellation = find_sky(constellation_path).constellation
    place = Satellite(plane, slot)
    require_place(place, constellation.torus, f"{plane} {slot}")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with Relay(constellation, Route(place, place), commands, telemetry, lambda text: click.echo(text, err=True)) as running:
        click.echo(f"satellite {place}: commands at {commands[0]}:{running.port}, telemetry to {telemetry[0]}:{telemetry[1]}")
        while not stop.wait(LOOK_S):  # a library's thread may get the signal, which then does not wake this one
            pass
