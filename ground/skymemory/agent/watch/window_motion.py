"""The schedule, for the page: the window of now, what moves where, and when it moves next."""

from collections.abc import Collection
from typing import Any, Final

import numpy as np

from skymemory.agent.watch.frame import Frame
from skymemory.sky.orbit.schedule_format import utc
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.wire.address import Satellite

SHOWN_S: Final = 8.0
"""Shortest time for which a handover is shown; the satellites are mostly done in less."""
MOVES_MAX: Final = 4
"""Moves of the window that are told, before and after now."""


def sky_ms(playing: Playing | None, time_s: float) -> int:
    """Return the time in the sky: the schedule's, where one is played."""
    if playing is None or playing.schedule is None:
        return round(time_s * 1000)
    return playing.schedule.header.epoch_ms + playing.schedule_ms(time_s)


def sky_rate(playing: Playing | None, time_s: float) -> float:
    """Return how fast that time passes: 60 in a replay at 60x, 0 when it is over or was stopped."""
    if playing is None or playing.schedule is None:
        return 1.0
    track_ms = playing.track_ms(time_s)
    begun = playing.from_ms + playing.speed * track_ms >= 0
    return playing.speed if begun and track_ms < playing.end_ms else 0.0


def place(frame: Frame, where: Whereabouts, time_s: float, lost: Collection[Satellite]) -> None:
    """Fill in the places of the window and its servers, of now and before the handover that runs.

    Args:
        lost: Satellites that do not answer; others stand in for them, as hosts have it.
    """
    row = where.row(time_s)
    slots = frame.shape.slots
    centre = where.centre(row)
    frame["row"][0], frame["centre"][0] = row, _index(centre, slots)
    frame["sky_ms"][0] = sky_ms(where.playing, time_s)
    for number, satellite in enumerate(where.servers(row, lost)):
        frame["server"][_index(satellite, slots)] = number
    playing = where.playing
    if playing is None or row <= 1:
        return
    since_ms = playing.track_ms(time_s) - playing.track.rows[row - 1][0]
    longest_ms = 1000 * max(SHOWN_S, where.constellation.cache.handover_s)
    if since_ms < 1000 * SHOWN_S or (since_ms < longest_ms and bool(np.any(frame["moved_per_s"] > 0))):
        for number, satellite in enumerate(where.servers(row - 1, lost)):
            frame["server_before"][_index(satellite, slots)] = number


def told(where: Whereabouts, time_s: float) -> dict[str, Any]:
    """Row, speed, and the moves around now, each with its time (Unix, ms), its centre, and how many servers it moves."""
    playing = where.playing
    if playing is None:
        return {"rows": None, "moves": []}
    row, track = where.row(time_s), playing.track
    found = []
    last = row if track.stays(row) else min(len(track.rows), row + MOVES_MAX)
    for one in range(max(2, row - MOVES_MAX + 1), last + 1):
        before, after = where.servers(one - 1), where.servers(one)
        found.append(
            {
                "row": one,
                "time_ms": round(1000 * playing.started_unix_s + track.rows[one - 1][0]),
                "centre": _index(track.centre(one), where.constellation.slots),
                "servers_moved": sum(old != new for old, new in zip(before, after, strict=True)),
            }
        )
    return {
        "rows": len(track.rows),
        "speed": playing.speed,
        "rate": sky_rate(playing, time_s),
        "source": None if playing.schedule is None else playing.schedule.header.source,
        "sky_time": None if playing.schedule is None else utc(sky_ms(playing, time_s)),
        "moves": found,
    }


def _index(satellite: Satellite, slots: int) -> int:
    return (satellite.plane - 1) * slots + satellite.slot - 1
