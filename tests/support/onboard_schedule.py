"""A rotation schedule for the satellites of a constellation, by command as in `docs/cfs-integration.md`, section 5."""

import secrets
import time
from collections.abc import Sequence

import crcmod

from skymemory.fsw import messages
from skymemory.fsw.messages import KVC_CMD_MID, Message
from skymemory.fsw.structures import (
    COMMAND_ROWS,
    KvcScheduleBegin,
    KvcScheduleCommit,
    KvcScheduleRow,
    KvcScheduleRows,
)
from skymemory.link.control import ControlPlane
from skymemory.placement.whereabouts import Playing
from skymemory.placement.window import Route

crc32c = crcmod.mkCrcFun(0x11EDC6F41, initCrc=0, rev=True, xorOut=0xFFFFFFFF)
LAYOUT_IDS = {"rotation": 1, "hop": 2, "rotation_hop": 3}


def upload(control: ControlPlane, playing: Playing) -> None:
    """Let all satellites follow a schedule; returns when all do."""
    sky, number = control.constellation, secrets.randbits(32)
    rows = [KvcScheduleRow(time_ms, *cell) for time_ms, cell in playing.track.rows]
    routes = [Route(satellite, satellite) for satellite in sky.torus.satellites()]
    size = sky.planes, sky.slots, LAYOUT_IDS[sky.cache.layout], sky.cache.servers
    age_ms = round(1000 * (time.time() - playing.started_unix_s))
    command(control, routes, messages.KVC_SCHEDULE_BEGIN, bytes(KvcScheduleBegin(number, age_ms, *size, len(rows))))
    for first in range(0, len(rows), COMMAND_ROWS):
        piece = rows[first : first + COMMAND_ROWS]
        array = (KvcScheduleRow * COMMAND_ROWS)(*piece)
        command(control, routes, messages.KVC_SCHEDULE_ROWS, bytes(KvcScheduleRows(number, first + 1, len(piece), array)))
    crc = crc32c(b"".join(map(bytes, rows)))
    command(control, routes, messages.KVC_SCHEDULE_COMMIT, bytes(KvcScheduleCommit(number, crc)))
    while {counters["rows"] for counters in control.store_stats(routes, 10).values()} != {len(rows)}:
        pass


def command(control: ControlPlane, routes: Sequence[Route], code: int, payload: bytes) -> None:
    answers = control.relay(routes, Message(KVC_CMD_MID, payload, code).encode(), 10)
    assert all(answer is not None and answer.ok for answer in answers)
