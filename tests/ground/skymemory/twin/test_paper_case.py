"""One case of the paper's simulation as packets: distances, and what cannot be."""

from dataclasses import replace

import numpy as np
import pytest

from skymemory.sky.placement.torus import Torus
from skymemory.twin.native_twin import TwinError
from skymemory.twin.paper_case import PaperCase, measure
from skymemory.wire.address import Satellite

CASE = PaperCase(
    torus=Torus(5, 7),
    centre=Satellite(3, 4),
    layout="rotation_hop",
    servers=9,
    block_bytes=20 * 1000,
    chunk_bytes=1000,
    processing_us=5000,
    altitude_km=629.0,
    light_km_per_s=300_000.0,
)
IN_PLANE_US = 7000 * 2 * np.sin(np.pi / 7) / 0.3
CROSS_US = 7000 * 2 * np.sin(np.pi / 5) / 0.3


def test_links_are_chords() -> None:
    isl_us, ground_us = CASE.delays_us()
    assert isl_us.shape == (35, 4)
    assert isl_us[0] == pytest.approx([CROSS_US, IN_PLANE_US, CROSS_US, IN_PLANE_US], abs=0.5)
    assert (isl_us == isl_us[0]).all()
    sky = ground_us.reshape(5, 7)
    assert sky[2, 3] == pytest.approx(629 / 0.3, abs=0.5)
    assert sky[3, 3] == pytest.approx(np.hypot(CROSS_US, 629 / 0.3), abs=0.5)
    assert sky[2, 4] == pytest.approx(np.hypot(IN_PLANE_US, 629 / 0.3), abs=0.5)
    corner_us = np.hypot(np.hypot(2 * CROSS_US, 3 * IN_PLANE_US), 629 / 0.3)
    assert sky[[0, 0, 4, 4], [0, 6, 0, 6]] == pytest.approx(corner_us, abs=0.5)


def test_steps_go_the_short_way_round() -> None:
    _, ground_us = replace(CASE, centre=Satellite(1, 1)).delays_us()
    assert ground_us.reshape(5, 7)[4, 6] == pytest.approx(np.hypot(np.hypot(CROSS_US, IN_PLANE_US), 629 / 0.3), abs=0.5)


def test_on_board_there_is_no_way_to_the_ground() -> None:
    case = replace(CASE, layout="hop")
    assert not case.delays_us()[1].any()
    assert measure(replace(case, servers=1)).get_s == pytest.approx(20 * 0.005)
    # nine servers, two chunks each and a third for two: the second is one hop away, or those two hops away come later
    assert measure(case).get_s == pytest.approx(
        max(0.015 + 2e-6 * CROSS_US, 0.010 + 2e-6 * (CROSS_US + max(CROSS_US, IN_PLANE_US))), abs=1e-5
    )


def test_chunks_of_a_server_wait_for_each_other() -> None:
    assert measure(replace(CASE, servers=1)).put_s == pytest.approx(20 * 0.005 + 2 * 629 / 3e5, abs=1e-6)
    assert measure(replace(CASE, servers=1, processing_us=0)).put_s == pytest.approx(2 * 629 / 3e5, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"servers": 36}, "servers is 36; allowed are 1 to 35"),
        ({"servers": 1, "block_bytes": 3_000_000}, "credit is 3000; allowed are 1 to 2048"),
    ],
)
def test_what_cannot_be(change: dict[str, object], said: str) -> None:
    with pytest.raises(TwinError, match=said):
        measure(replace(CASE, **change))  # type: ignore[arg-type]  # fields are named by the test
