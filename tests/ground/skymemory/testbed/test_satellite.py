"""The command line of a satellite."""

from skymemory.config import Constellation
from skymemory.placement.torus import Satellite
from skymemory.testbed.satellite import arguments


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
    ]


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
