"""The end of a replay whose process was killed: the next command does what that process would have done at its end.

Otherwise a sky that the ground moves by command would count as moving, and nobody would move its blocks. One that
satellites move by their schedule would go on turning, although what a command starts ends with it.
"""

from collections.abc import Callable

from skymemory.link.control import ControlPlane
from skymemory.testbed.playing_record import DamagedRecordError
from skymemory.testbed.replay import OvertakenError, ReplayError, held_at, held_now, is_overtaken, settle, upload
from skymemory.testbed.run_record import RunSky


def stop_abandoned(sky: RunSky, tell: Callable[[str], None]) -> None:
    """Stop a replay of this sky that was killed: the window stays where it is.

    Args:
        sky: The sky, with the keys of this host.
        tell: Function that gets one line if there was such a replay.
    """
    try:
        abandoned = sky.playing.abandoned()
    except (DamagedRecordError, OSError):  # who uses the record says so
        return
    if abandoned is None:
        return
    by_schedule = abandoned.player.by == "schedule"
    held = held_now(abandoned.playing) if by_schedule else held_at(abandoned.playing, abandoned.seen_unix_s)
    sky.playing.save(held, abandoned.schedule)
    assert held.stopped_ms is not None
    centre = held.track.centre(held.track.row_at(held.stopped_ms))
    said = f"the replay that moved this sky (pid {abandoned.player.pid}) was killed"
    stays = f"{said}: the window stays around {centre}"
    try:
        with ControlPlane(sky.constellation) as control:
            if not by_schedule:
                left = settle(control, held)
                stays += f", but {left} satellites outside it still hold chunks" if left else ""
            elif is_overtaken(control, held):
                raise OvertakenError
            else:
                upload(control, held)
        tell(stays)
    except OvertakenError:
        tell(f"{said}; another one, of another user or state folder, has moved the window since")
    except (ReplayError, OSError) as error:
        tell(f"{stays}, but for some satellites: {error}")
