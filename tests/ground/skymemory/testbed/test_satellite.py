"""The command line of a satellite."""

import subprocess

import pytest

from skymemory.config import DELAY_US_MAX, HANDOVER_S_MAX, PLANES_MAX, SCRUB_S_MAX, SLOTS_MAX, STORE_MIB_MAX, Constellation
from skymemory.placement.torus import Satellite
from skymemory.testbed.satellite import arguments, program


def options(constellation: Constellation, place: Satellite) -> list[str]:
    return " ".join(arguments(constellation, place)).split(" --")


def test_of_the_default_constellation() -> None:
    assert options(Constellation(), Satellite(3, 10)) == [
        "--plane 3",
        "slot 10",
        "planes 5",
        "slots 19",
        "network 127.18.0.0",
        "port 4919",
        "mtu 65507",
        "store-mib 16",
        "slot-bytes 6144",
        "credit 20",
        "hello-s 10",
        "handover-ms 30000",
    ]


def test_what_is_off_is_left_out() -> None:
    sky = Constellation().replace(satellite={"gossip": True, "scrub_s": 60})
    assert options(sky, Satellite(3, 10))[-2:] == ["gossip", "scrub-ms 60000"]


def test_links_that_do_something_are_named() -> None:
    sky = Constellation().replace(
        constellation={"seam": "cut"},
        links={"model": "geometry", "override": [{"from": [1, 10], "to": [1, 11], "cut": True, "delay_us": 5}]},
    )
    found = options(sky, Satellite(1, 10))
    links = {word.split(":")[0]: word.split(":")[1] for word in found if word.startswith("link ")}
    assert "seam-cut" in found
    assert set(links) == {"link east", "link south", "link west", "link ground"}  # north is the seam
    assert links["link east"] == "delay_us=5,jitter_us=0,rate_kbps=0,loss_ppm=0,cut=1"
    assert links["link west"].startswith("delay_us=7")


@pytest.mark.parametrize(
    ("option", "name", "most"),
    [
        ("--planes", "", PLANES_MAX),
        ("--slots", "", SLOTS_MAX),
        ("--store-mib", "", STORE_MIB_MAX),
        ("--scrub-ms", "", 1000 * SCRUB_S_MAX),
        ("--handover-ms", "", 1000 * HANDOVER_S_MAX),
        ("--link", "east:delay_us=", DELAY_US_MAX),
        ("--link", "east:jitter_us=", DELAY_US_MAX),
    ],
)
def test_the_satellite_takes_what_the_file_may_hold(option: str, name: str, most: int) -> None:
    words = [str(program()), *arguments(Constellation(), Satellite(1, 1)), option]
    least = 0 if name or option in ("--scrub-ms", "--handover-ms") else 1
    # Of what is in range it says nothing; it ends because of the option behind
    for number, complaint in ((most, "--bad: "), (most + 1, f"allowed are {least} .. {most}")):
        done = subprocess.run([*words, f"{name}{number}", "--bad", "1"], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode
        assert complaint in done.stderr
