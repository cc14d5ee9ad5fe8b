"""How commands tell that a handover takes longer than expected."""

import pytest

from skymemory.cli.replay import _told
from skymemory.cli.status import handover, handover_text
from skymemory.config import Constellation
from skymemory.placement.torus import Satellite
from skymemory.testbed.replay import Handover


@pytest.mark.parametrize(
    ("chunks", "duration_s", "left", "said"),
    [
        (0, 0.0, 0, "nothing to move"),
        (5, 1.0, 0, "5 chunks, 0.0 MB, in 1.00 s"),
        (5, 31.0, 0, "in 31.00 s; LATE: longer than cache.handover_s = 30 s"),
        (5, 2.0, 1200, "in 2.00 s; LATE: 1,200 chunks were left when the row ended"),
        (0, 0.0, 7, "LATE: 7 chunks were left when the row ended"),
    ],
)
def test_replay_says_when_a_handover_is_late(chunks: int, duration_s: float, left: int, said: str) -> None:
    told = _told(Handover(3, Satellite(2, 7), chunks, 1000, duration_s, left), 30.0)
    assert told.endswith(said)


def test_status_says_what_is_left_and_for_how_long() -> None:
    sky = Constellation()
    nothing = {"handover_left": 0, "handover_ms": 0}
    assert handover_text(handover(sky, [nothing])) == ""
    some = handover(sky, [nothing, {"handover_left": 10, "handover_ms": 1500}, {"handover_left": 5, "handover_ms": 2500}])
    assert some == {"satellites": 2, "chunks": 15, "duration_s": 2.5, "late": False}
    assert handover_text(some) == "handover: 15 chunks left on 2 satellites, after 2.5 s"
    late = handover(sky, [{"handover_left": 1, "handover_ms": 30_001}])
    assert handover_text(late).endswith("longer than cache.handover_s: LATE")
