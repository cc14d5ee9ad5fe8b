"""The command line of a satellite."""

import re
import subprocess
from ipaddress import IPv4Address

import pytest

from skymemory.common import defaults
from skymemory.sky.constellation import Constellation
from skymemory.testbed.satellite_program import arguments, program
from skymemory.wire import icd
from skymemory.wire.address import Satellite


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
        "scrub-ms 600000",
        "window rotation_hop:12:3:10",
    ]


def test_quotas_of_tenants() -> None:
    quotas = [{"number": 7, "reserved_percent": 25, "most_percent": 50}, {"number": "others", "most_percent": 10}]
    assert options(Constellation().replace(tenants=quotas), Satellite(3, 10))[-2:] == ["tenant 7:25:50", "tenant others:0:10"]


def test_what_is_off_is_left_out() -> None:
    sky = Constellation().replace(satellite={"gossip": True, "scrub_s": 60, "log_json": True}, cache={"parity": 0})
    assert options(sky, Satellite(3, 10))[-4:] == ["scrub-ms 60000", "window rotation_hop:12:3:10", "gossip", "log-json"]
    off = {"gossip": False, "scrub_s": 0, "log_json": False}
    sky = sky.replace(satellite=off, cache={"servers": 20, "parity": 4, "layout": "all_planes"})
    assert options(sky, Satellite(1, 1))[-2:] == ["scrub-ms 0", "window all_planes:20:3:10"]


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


def test_the_satellite_tells_the_defaults_that_it_has() -> None:
    done = subprocess.run([str(program()), "--help"], capture_output=True, text=True, timeout=30, check=True)
    told = dict(re.findall(r"^ +(--[a-z-]+) [A-Z].*\(([0-9.]+)\)$", done.stdout, re.MULTILINE))
    assert told == {
        "--network": str(IPv4Address(defaults.DEFAULT_NETWORK_IPV4)),
        "--port": str(icd.UDP_PORT),
        "--mtu": str(icd.LIMIT_PACKET_BYTES),
        "--store-mib": str(defaults.DEFAULT_STORE_MIB),
        "--slot-bytes": str(defaults.DEFAULT_SLOT_BYTES),
        "--credit": str(defaults.DEFAULT_CREDIT),
        "--hello-s": str(defaults.DEFAULT_HELLO_S),
        "--scrub-ms": str(defaults.DEFAULT_SCRUB_MS),
        "--handover-ms": str(defaults.DEFAULT_HANDOVER_MS),
    }
    assert f"{defaults.LEAST_PACKET_BYTES} .. {icd.LIMIT_PACKET_BYTES}" in done.stdout


@pytest.mark.parametrize(
    ("option", "name", "most"),
    [
        ("--hello-s", "", defaults.MOST_HELLO_S),
        ("--planes", "", defaults.MOST_PLANES),
        ("--slots", "", defaults.MOST_SLOTS),
        ("--store-mib", "", defaults.MOST_STORE_MIB),
        ("--scrub-ms", "", defaults.MOST_SCRUB_MS),
        ("--handover-ms", "", defaults.MOST_HANDOVER_MS),
        ("--link", "east:delay_us=", defaults.MOST_DELAY_US),
        ("--link", "east:jitter_us=", defaults.MOST_DELAY_US),
    ],
)
def test_the_satellite_takes_what_the_file_may_hold(option: str, name: str, most: int) -> None:
    words = [str(program()), *arguments(Constellation(), Satellite(1, 1)), option]
    least = 0 if name or option in ("--hello-s", "--scrub-ms", "--handover-ms") else 1
    # Of what is in range it says nothing; it ends because of the option behind
    for number, complaint in ((most, "--bad: "), (most + 1, f"allowed are {least} .. {most}")):
        done = subprocess.run([*words, f"{name}{number}", "--bad", "1"], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode
        assert complaint in done.stderr


def test_a_satellite_with_keys_is_told_their_file() -> None:
    words = arguments(Constellation(), Satellite(3, 10), "/run/secrets/satellite.key")
    assert words == [*arguments(Constellation(), Satellite(3, 10)), "--keys", "/run/secrets/satellite.key"]
