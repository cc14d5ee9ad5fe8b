"""How commands tell that a handover takes longer than expected."""

import pytest

from skymemory.cli.replay import handover_line, summary
from skymemory.cli.status_report import expected_s, handover
from skymemory.cli.status_words import handover_text
from skymemory.sky.constellation import Constellation
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing
from skymemory.testbed.replay import Handover
from skymemory.wire.address import Satellite


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
    told = handover_line(Handover(3, Satellite(2, 7), chunks, 1000, duration_s, left), 30.0)
    assert told.endswith(said)


def test_the_report_counts_as_late_what_the_lines_call_late() -> None:
    rows = [
        Handover(row, Satellite(2, 7), 5, 1000, duration_s, left)
        for row, (duration_s, left) in enumerate([(1.0, 0), (31.0, 0), (2.0, 1200)], start=2)
    ]
    assert summary(rows, 30.0)["late"] == sum("LATE" in handover_line(row, 30.0) for row in rows) == 2


def test_a_handover_is_late_when_it_takes_longer_than_its_row() -> None:
    sky = Constellation()
    track = Track.of(sky.torus, [(0, Satellite(2, 3)), (10_000, Satellite(2, 4)), (100_000, Satellite(2, 5))])
    playing = Playing(track, 1000.0)
    assert expected_s(sky, None, 1000.0) == 30
    assert [expected_s(sky, playing, 1000.0 + passed_s) for passed_s in (5, 15, 200)] == [10, 30, 30]


def test_status_says_what_is_left_and_for_how_long() -> None:
    sky = Constellation()
    nothing = {"handover_left": 0, "handover_ms": 0}
    assert handover_text(handover(sky, [nothing], 30.0)) == ""
    some = handover(sky, [nothing, {"handover_left": 10, "handover_ms": 1500}, {"handover_left": 5, "handover_ms": 2500}], 30.0)
    assert some == {"satellites": 2, "chunks": 15, "duration_s": 2.5, "late": False, "allowed_s": 30.0}
    assert handover_text(some) == "handover: 15 chunks left on 2 satellites, after 2.5 s"
    late = handover(sky, [{"handover_left": 1, "handover_ms": 30_001}], 30.0)
    assert handover_text(late).endswith("longer than 30 s: LATE")
