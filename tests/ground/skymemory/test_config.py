"""constellation.toml: what is taken, and what is said about what is not."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from skymemory.config import PACKET_BYTES_MIN, ConfigError, Constellation, LinkModel
from skymemory.placement.torus import Direction, Satellite
from skymemory.testbed.state import Running, State, StateError
from skymemory.wire import icd

ROOT = Path(__file__).parents[3]


def load(folder: Path, text: str) -> Constellation:
    path = folder / "constellation.toml"
    path.write_text(text, encoding="utf-8")
    return Constellation.load(path)


def complaint(folder: Path, text: str) -> list[str]:
    """Lines of the error, without the folder."""
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]


def test_shipped_file_holds_the_defaults() -> None:
    assert Constellation.load(ROOT / "constellation.toml") == Constellation()


def test_shipped_file_shows_every_key() -> None:
    text = (ROOT / "constellation.toml").read_text(encoding="utf-8")
    for section in Constellation().model_dump(by_alias=True).values():
        for key in section:
            assert f"\n{key} = " in text or f"# [[links.{key}]]" in text


def test_defaults_are_the_papers() -> None:
    sky = Constellation()
    assert (sky.planes, sky.slots, sky.grid.altitude_km) == (5, 19, 550)
    assert (sky.cache.servers, sky.cache.chunk_bytes, sky.cache.block_tokens) == (10, 6000, 128)
    assert sky.slot_bytes == 6144


def test_the_default_codec_brings_every_bit_back() -> None:
    assert Constellation().cache.codec == "raw"


def test_the_file_of_the_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Constellation.default() == Constellation()
    (tmp_path / "constellation.toml").write_text("[cache]\nservers = 7\n")
    assert Constellation.default().cache.servers == 7


def test_the_constellation_that_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    assert Constellation.running() is None
    sky = Constellation().replace(network={"network": "198.18.0.0/16"})
    State().save(Running("docker", sky, {}))
    assert Constellation.running() == sky
    State().save(Running("local", sky, {}))  # all its processes are gone
    assert Constellation.running() is None
    State().path.write_text("{")
    with pytest.raises(StateError, match="cannot be read"):
        Constellation.running()


def test_empty_file_is_the_default(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Constellation()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[cache]\n\nservers = 200\n", "constellation.toml:3: cache.servers is 200; allowed are 1 to 95 (planes x slots)"),
        ("[cache]\nservers = 0", "constellation.toml:2: cache.servers is 0; allowed are whole numbers from 1 to planes x slots"),
        ('[network]\nport = "x"', 'constellation.toml:2: network.port is "x"; allowed are whole numbers from 1 to 65535'),
        ("[network]\nport = true", "constellation.toml:2: network.port is true; allowed are whole numbers from 1 to 65535"),
        ("[network]\nport = 1.5", "constellation.toml:2: network.port is 1.5; allowed are whole numbers from 1 to 65535"),
        (
            "[constellation]\naltitude_km = nan",
            "constellation.toml:2: constellation.altitude_km is nan; allowed are numbers from 160 to 2000",
        ),
        (
            '[cache]\nlayout = "spiral"',
            'constellation.toml:2: cache.layout is "spiral"; allowed are "rotation", "hop" and "rotation_hop"',
        ),
        (
            "[constellation]\nplanez = 5",
            "constellation.toml:2: constellation.planez is unknown (did you mean planes?); allowed in [constellation] are "
            "planes, slots, altitude_km, inclination_deg, geometry, seam",
        ),
        (
            "[links]\n[zoo]\n",
            "constellation.toml:2: zoo is unknown; allowed as tables are constellation, network, satellite, links, cache, site",
        ),
        ("cache = 3", "constellation.toml:1: cache is 3; allowed are tables"),
        (
            "[cache]\ncentre = [3,\n  40]",
            "constellation.toml:2: cache.centre is [3, 40]; allowed are [1, 1] to [5, 19] (5 planes x 19 slots)",
        ),
        ("[cache]\ncentre = [3]", "constellation.toml:2: cache.centre is [3]; allowed are [plane, slot], both from 1"),
        (
            "[[links.override]]\nfrom = [1, 1]\nto = [1, 2]\n[[links.override]]\nfrom = [1, 1]\nto = [3, 3]",
            "constellation.toml:6: links.override.to is [3, 3], not a neighbour of [1, 1]; "
            "allowed are [5, 1], [1, 2], [2, 1], [1, 19]",
        ),
        (
            "[[links.override]]\nfrom = [6, 1]\nto = [1, 2]",
            "constellation.toml:2: links.override.from is [6, 1]; allowed are [1, 1] to [5, 19] (5 planes x 19 slots)",
        ),
        (
            "[[links.override]]\nto = [1, 2]",
            "constellation.toml:1: links.override.from is missing; allowed are [plane, slot], both from 1",
        ),
        (
            '[network]\nnetwork = "10.0.0.0/24"',
            "constellation.toml:2: network.network is 10.0.0.0/24, too small for 5 planes x 19 slots; "
            "allowed are prefixes of /21 and shorter",
        ),
        (
            '[network]\nnetwork = "10.0.0.1/16"',
            'constellation.toml:2: network.network is "10.0.0.1/16"; allowed are IPv4 networks such as "127.18.0.0/16", '
            "no bits set behind the prefix",
        ),
        (
            "[satellite]\nstore_mib = 0",
            "constellation.toml:2: satellite.store_mib is 0; allowed are whole numbers from 1 to 65536",
        ),
        ("a = ", "constellation.toml:1: not valid TOML: invalid value"),
        ("\n[cache\n", "constellation.toml:2: not valid TOML: expected ']' at the end of a table declaration (column 7)"),
    ],
)
def test_mistakes_are_told_with_line_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    assert complaint(tmp_path, text) == [expected]


def test_smallest_packets_carry_the_largest_chunk() -> None:
    overhead = icd.PRIMARY_BYTES + icd.RESPONSE_SECONDARY_BYTES + icd.HEADER_BYTES + icd.PEC_BYTES
    assert icd.LIMIT_FRAGMENTS * (PACKET_BYTES_MIN - overhead) >= icd.LIMIT_CHUNK_BYTES


SHIPPED = (ROOT / "constellation.toml").read_text(encoding="utf-8")
WORDS = [
    "",
    "-1",
    "99999999999999999999",
    "1e400",
    "nan",
    "true",
    '"x"',
    "[]",
    "[[1, 2]]",
    "{a = 1}",
    "1979-05-27",
    '"""',
    "]",
    "#",
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_is_in_the_file_only_config_errors_come(tmp_path: Path, data: st.DataObject) -> None:
    lines = SHIPPED.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[at].partition("=")
        lines[at] = data.draw(st.sampled_from([lines[at - 1], *(f"{key}{equals} {word}" for word in WORDS)]))
    try:
        load(tmp_path, "\n".join(lines))
    except ConfigError as error:
        for line in str(error).splitlines():
            assert re.match(rf"{tmp_path}/constellation.toml:[1-9][0-9]*: .+", line)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    lines = complaint(tmp_path, "[cache]\nservers = 0\n[network]\nport = 0\nmtu = 3")
    assert [line.split(":")[1] for line in lines] == ["4", "5", "2"]


def test_seam_cut_makes_a_link_over_it_a_contradiction(tmp_path: Path) -> None:
    over_the_seam = "[[links.override]]\nfrom = [1, 1]\nto = [5, 1]\ncut = true\n"
    load(tmp_path, over_the_seam)
    (line,) = complaint(tmp_path, over_the_seam + '[constellation]\nseam = "cut"')
    assert "not a neighbour" in line


def test_missing_file_and_wrong_encoding(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        Constellation.load(tmp_path / "nowhere.toml")
    path = tmp_path / "latin.toml"
    path.write_bytes(b"# \xe9\n")
    with pytest.raises(ConfigError, match="byte 2 is not UTF-8"):
        Constellation.load(path)


def test_replace_checks_again() -> None:
    sky = Constellation().replace(cache={"servers": 12, "centre": [1, 1]}, constellation={"planes": 3})
    assert (sky.cache.servers, sky.cache.centre, sky.planes, sky.slots) == (12, Satellite(1, 1), 3, 19)
    assert sky.replace() == sky
    with pytest.raises(ConfigError, match=r"^cache.servers is 58; allowed are 1 to 57 \(planes x slots\)$"):
        sky.replace(cache={"servers": 58})


def test_it_is_immutable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Constellation().cache.servers = 3  # type: ignore[misc]  # that it is refused is what is tested


def test_addresses() -> None:
    sky = Constellation()
    assert sky.address(3, 10) == "127.18.3.10"
    assert sky.network.base == "127.18.0.0"
    assert sky.replace(network={"network": "198.18.0.0/15"}).address(5, 19) == "198.18.5.19"
    with pytest.raises(ValueError, match=r"\[6, 1\] is outside 5 planes x 19 slots"):
        sky.address(6, 1)


def test_thousands_of_satellites_get_distinct_addresses() -> None:
    sky = Constellation().replace(constellation={"planes": 72, "slots": 22}, network={"network": "127.18.0.0/15"})
    assert len({sky.address(*satellite) for satellite in sky.torus.satellites()}) == 72 * 22


def test_links_are_ideal_by_default() -> None:
    sky = Constellation()
    models = sky.link_models()
    assert set(models) == set(sky.torus.satellites())
    assert all(model.ideal for links in models.values() for model in links.values())
    assert all(sky.ground_model(*satellite).ideal for satellite in sky.torus.satellites())


def test_geometry_gives_the_papers_delays() -> None:
    sky = Constellation().replace(links={"model": "geometry", "delay_us": 100, "loss_ppm": 7})
    links = sky.link_models()[Satellite(2, 5)]
    assert links[Direction.EAST] == links[Direction.WEST] == LinkModel(7700, 0, 0, 7)  # 2,278 km
    assert links[Direction.NORTH].delay_us == 14_368  # 4,277 km
    assert sky.ground_model(3, 10).delay_us == 1_935  # 550 km
    assert sky.ground_model(3, 11).delay_us == pytest.approx(7_918, abs=1)  # sqrt(2278^2 + 550^2) km


def test_overrides_change_one_direction_of_one_link() -> None:
    change = {"from": [3, 10], "to": [3, 11], "delay_us": 5, "cut": True}
    sky = Constellation().replace(links={"jitter_us": 9, "override": [change]})
    models = sky.link_models()
    assert models[Satellite(3, 10)][Direction.EAST] == LinkModel(5, 9, 0, 0, True)
    assert models[Satellite(3, 11)][Direction.WEST] == LinkModel(0, 9)
    assert str(models[Satellite(3, 10)][Direction.EAST]) == "delay_us=5,jitter_us=9,rate_kbps=0,loss_ppm=0,cut=1"


def test_cut_seam_has_no_links() -> None:
    models = Constellation().replace(constellation={"seam": "cut"}).link_models()
    assert Direction.NORTH not in models[Satellite(1, 4)]
    assert Direction.SOUTH not in models[Satellite(5, 4)]
    assert len(models[Satellite(3, 4)]) == 4
