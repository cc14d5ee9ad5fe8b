"""constellation.toml: what is taken, and what is said about what is not."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from skymemory.common import defaults
from skymemory.sky.constellation import ConfigError, Constellation, LinkModel
from skymemory.sky.file_sections import PACKET_BYTES_MIN
from skymemory.sky.placement.torus import Direction
from skymemory.wire import icd
from skymemory.wire.address import Satellite

ROOT = Path(__file__).parents[4]


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


def test_defaults_are_the_papers_with_two_servers_of_parity_besides() -> None:
    sky = Constellation()
    assert (sky.planes, sky.slots, sky.grid.altitude_km) == (5, 19, 550)
    assert (sky.cache.servers - sky.cache.parity, sky.cache.chunk_bytes, sky.cache.block_tokens) == (10, 6000, 128)
    assert sky.cache.parity == 2
    assert sky.slot_bytes == 6144


def test_a_file_that_names_servers_alone_has_two_of_parity(tmp_path: Path) -> None:
    cache = load(tmp_path, "[cache]\nservers = 3").cache
    assert (cache.servers, cache.parity) == (3, 2)
    cache = load(tmp_path, "[cache]\nservers = 1\nparity = 0").cache
    assert (cache.servers, cache.parity) == (1, 0)


def test_the_default_codec_brings_every_bit_back() -> None:
    assert Constellation().cache.codec == "raw"


def test_the_file_of_the_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Constellation.default() == Constellation()
    (tmp_path / "constellation.toml").write_text("[cache]\nservers = 7\n")
    assert Constellation.default().cache.servers == 7


LINK = "[[links.override]]\nfrom = [3, 10]\nto = [3, 11]\n"
BACK = "[[links.override]]\nfrom = [3, 11]\nto = [3, 10]\n"


def test_empty_file_is_the_default(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Constellation()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[cache]\n\nservers = 200\n", "constellation.toml:3: cache.servers is 200; allowed are 1 to 95 (planes x slots)"),
        (
            '[cache]\nhost = "satellite"',
            'constellation.toml:1: cache.layout is rotation_hop by default with a host on board (cache.host); allowed is "hop"',
        ),
        (
            '[cache]\nhost = "satellite"\nlayout = "hop"\nwindow = "physical"',
            'constellation.toml:4: cache.window is physical with a host on board (cache.host); allowed is "logical"',
        ),
        ("[cache]\nhandover_s = -1", "constellation.toml:2: cache.handover_s is -1; allowed are numbers from 0 to 3600"),
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
            'constellation.toml:2: cache.layout is "spiral"; allowed are "rotation", "hop", "rotation_hop" and "all_planes"',
        ),
        (
            "[constellation]\nplanez = 5",
            "constellation.toml:2: constellation.planez is unknown (did you mean planes?); allowed in [constellation] are "
            "planes, slots, altitude_km, inclination_deg, geometry, seam",
        ),
        (
            "[links]\n[zoo]\n",
            "constellation.toml:2: zoo is unknown; allowed as tables are constellation, network, satellite, links, cache, site, "
            "security, tenants",
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
            '[constellation]\nplanes = 200\n[network]\nnetwork = "10.0.0.0/17"',
            "constellation.toml:4: network.network is 10.0.0.0/17, too small for 200 planes x 19 slots; "
            "allowed are prefixes of /16 and shorter",
        ),
        (
            "[constellation]\nplanes = 2\nslots = 4\n[cache]\ntenant = 1\nservers = 9",
            "constellation.toml:4: cache.centre is [3, 10] by default; allowed are [1, 1] to [2, 4] (2 planes x 4 slots)\n"
            "constellation.toml:6: cache.servers is 9; allowed are 1 to 8 (planes x slots)",
        ),
        (
            "[constellation]\nplanes = 2\nslots = 2",
            "constellation.toml: cache.servers is 12 by default; allowed are 1 to 4 (planes x slots)\n"
            "constellation.toml: cache.centre is [3, 10] by default; allowed are [1, 1] to [2, 2] (2 planes x 2 slots)",
        ),
        (
            "[cache]\nservers = 4\nparity = 4",
            "constellation.toml:3: cache.parity is 4; allowed are 0 to 3 (servers - 1)",
        ),
        (
            "[cache]\nparity = -1",
            "constellation.toml:2: cache.parity is -1; allowed are whole numbers from 0 to servers - 1",
        ),
        (
            "[constellation]\nplanes = 20\n[cache]\nservers = 256\nparity = 2",
            "constellation.toml:4: cache.servers is 256, and cache.parity is 2; allowed are 3 to 255, or cache.parity = 0",
        ),
        (
            "[constellation]\nplanes = 20\n[cache]\nservers = 256",
            "constellation.toml:4: cache.servers is 256, and cache.parity is 2 by default; "
            "allowed are 3 to 255, or cache.parity = 0",
        ),
        (
            "[cache]\nservers = 2",
            "constellation.toml:2: cache.servers is 2, and cache.parity is 2 by default; "
            "allowed are cache.servers from 3, or cache.parity from 0 to 1",
        ),
        (
            "[cache]\nservers = 1",
            "constellation.toml:2: cache.servers is 1, and cache.parity is 2 by default; "
            "allowed are cache.servers from 3, or cache.parity = 0",
        ),
        (
            "[cache]\nservers = 1\nparity = 1",
            "constellation.toml:3: cache.parity is 1; allowed is 0 (servers - 1)",
        ),
        (
            "[satellite]\nstore_mib = 513",
            "constellation.toml:2: satellite.store_mib is 513; allowed are whole numbers from 1 to 512",
        ),
        (
            '[links]\nmodel = "geometry"\ndelay_us = 9999999',
            "constellation.toml:3: links.delay_us is 9999999 and comes on top of up to 74134 from geometry; "
            "allowed are 0 to 9925866",
        ),
        (
            LINK + "cut = true\n" + LINK + "cut = false",
            "constellation.toml:5: links.override appears twice for the link from [3, 10] to [3, 11]; "
            "allowed is one for each direction",
        ),
        (
            LINK + "delay_us = 1\n" + LINK + "jitter_us = 1",
            "constellation.toml:5: links.override appears twice for the link from [3, 10] to [3, 11]; "
            "allowed is one for each direction",
        ),
        (
            LINK + "cut = true\n" + BACK + "cut = false",
            "constellation.toml:8: links.override.cut is false, while the link from [3, 10] to [3, 11] is cut; "
            "allowed is true, or nothing: a link is cut in both directions",
        ),
        ("a = ", "constellation.toml:1: not valid TOML: invalid value"),
        ("\n[cache\n", "constellation.toml:2: not valid TOML: expected ']' at the end of a table declaration (column 7)"),
    ],
)
def test_mistakes_are_told_with_line_and_what_is_allowed(tmp_path: Path, text: str, expected: str) -> None:
    assert complaint(tmp_path, text) == expected.splitlines()


NETWORKS = 'IPv4 networks A.B.0.0/N such as "127.18.0.0/16", A from 1 to 223, no bits set behind the prefix'


@pytest.mark.parametrize(
    "network",
    [
        *("10.0.0.1/16", "10.0.3.0/24", "10.1.0.0/8"),  # bits behind the prefix, or where planes and slots go
        *("0.0.0.0/8", "0.1.0.0/16", "0.0.0.0/0", "224.0.0.0/16", "239.1.0.0/16", "240.0.0.0/16", "255.255.0.0/16"),
        *("", "sky", "::/16", "10.0.0.0/33"),
    ],
)
def test_networks_that_cannot_work(tmp_path: Path, network: str) -> None:
    (line,) = complaint(tmp_path, f'[network]\nnetwork = "{network}"')
    assert line == f'constellation.toml:2: network.network is "{network}"; allowed are {NETWORKS}'


@pytest.mark.parametrize(
    "network", ["10.0.0.0/8", "10.20.0.0/16", "172.16.0.0/12", "192.168.0.0/21", "198.18.0.0/15", "223.255.0.0/16"]
)
def test_any_unicast_network_will_do(tmp_path: Path, network: str) -> None:
    assert load(tmp_path, f'[network]\nnetwork = "{network}"').address(3, 10) == network.partition("0.0/")[0] + "3.10"


QUOTA = "[[tenants]]\nnumber = 7\nreserved_percent = 60\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[[tenants]]\nmost_percent = 5",
            '1: tenants.number is missing; allowed are whole numbers from 0 to 4294967295 and "others"',
        ),
        (
            '[[tenants]]\nnumber = "7"',
            '2: tenants.number is "7"; allowed are whole numbers from 0 to 4294967295 and "others"',
        ),
        (
            "[[tenants]]\nnumber = 4294967296",
            '2: tenants.number is 4294967296; allowed are whole numbers from 0 to 4294967295 and "others"',
        ),
        (
            "[[tenants]]\nnumber = true",
            '2: tenants.number is true; allowed are whole numbers from 0 to 4294967295 and "others"',
        ),
        (QUOTA + "most_percent = 101", "4: tenants.most_percent is 101; allowed are whole numbers from 0 to 100"),
        (QUOTA + "most_percent = 59", "3: tenants.reserved_percent is 60, more than most_percent; allowed are 0 to 59"),
        (
            QUOTA + "[[tenants]]\nnumber = 8\nreserved_percent = 41",
            "6: tenants.reserved_percent is 41, and with those before 101; allowed are 0 to 40, 100 in all",
        ),
        (
            QUOTA + "[[tenants]]\nnumber = 7",
            "5: tenants.number is 7 for the second time; allowed is one table for each tenant",
        ),
        (
            '[[tenants]]\nnumber = "others"',
            '2: tenants.number is "others" alone; allowed is this beside a table of a tenant',
        ),
        (
            "".join(f"[[tenants]]\nnumber = {number}\n" for number in range(17)),
            "33: tenants has 17 tenants; allowed are 16, as a satellite has room",
        ),
    ],
)
def test_quotas_that_contradict_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    assert str(error.value).endswith(f"constellation.toml:{expected}")


def test_quotas_of_tenants(tmp_path: Path) -> None:
    assert Constellation().tenants == ()
    sky = load(tmp_path, QUOTA + '[[tenants]]\nnumber = "others"\nmost_percent = 30\n')
    assert [str(one) for one in sky.tenants] == ["7:60:100", "others:0:30"]
    assert sky.replace(cache={"servers": 9}).tenants == sky.tenants
    assert sky.replace(tenants=[{"number": 1}]).tenants[0].number == 1


def test_a_link_has_an_override_for_each_direction(tmp_path: Path) -> None:
    sky = load(tmp_path, LINK + "delay_us = 1\n" + BACK + "delay_us = 2\ncut = false")
    assert [sky.link_models[end][to].delay_us for end, to in (((3, 10), Direction.EAST), ((3, 11), Direction.WEST))] == [1, 2]


def test_smallest_packets_carry_the_largest_chunk() -> None:
    overhead = icd.PRIMARY_BYTES + icd.RESPONSE_SECONDARY_BYTES + icd.HEADER_BYTES + icd.TAG_BYTES + icd.PEC_BYTES
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
            assert re.match(rf"{tmp_path}/constellation.toml(:[1-9][0-9]*)?: .+", line)


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    lines = complaint(tmp_path, "[cache]\nservers = 0\n[network]\nport = 0\nmtu = 3")
    assert [line.split(":")[1] for line in lines] == ["2", "4", "5"]
    lines = complaint(tmp_path, LINK.replace("11", "12") + "[constellation]\nplanes = 4\n[cache]\ncentre = [9, 9]\nservers = 99")
    assert [line.split(":")[1] for line in lines] == ["3", "7", "8"]
    lines = complaint(tmp_path, LINK + "[constellation]\nplanes = 2")
    assert [line.split(":")[1].strip()[:12] for line in lines] == ["2", "3", "cache.centre"]  # what is not in the file comes last


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
    large = sky.replace(constellation={"planes": 60, "slots": 60}, cache={"servers": 1024, "parity": 0})
    with pytest.raises(ConfigError, match=r"^cache.servers is 1025; allowed are 1 to 1,024, as a satellite has room$"):
        large.replace(cache={"servers": 1025})


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
    models = sky.link_models
    assert sky.link_models is models  # each satellite of thousands asks for its part of the whole
    assert set(models) == set(sky.torus.satellites())
    assert all(model.ideal for links in models.values() for model in links.values())
    assert all(sky.ground_model(*satellite).ideal for satellite in sky.torus.satellites())


def test_geometry_gives_the_papers_delays() -> None:
    sky = Constellation().replace(links={"model": "geometry", "delay_us": 100, "loss_ppm": 7})
    links = sky.link_models[Satellite(2, 5)]
    assert links[Direction.EAST] == links[Direction.WEST] == LinkModel(7700, 0, 0, 7)  # 2,278 km
    assert links[Direction.NORTH].delay_us == 14_368  # 4,277 km
    assert sky.ground_model(3, 10).delay_us == 1_935  # 550 km
    assert sky.ground_model(3, 11).delay_us == pytest.approx(7_918, abs=1)  # sqrt(2278^2 + 550^2) km


def test_the_largest_delay_with_geometry_is_one_that_satellites_take(tmp_path: Path) -> None:
    sky = load(tmp_path, '[links]\nmodel = "geometry"\ndelay_us = 9925866')
    longest = max(sky.ground_model(*satellite).delay_us for satellite in sky.torus.satellites())
    assert defaults.MOST_DELAY_US - 5 <= longest <= defaults.MOST_DELAY_US


def test_overrides_change_one_direction_of_one_link() -> None:
    change = {"from": [3, 10], "to": [3, 11], "delay_us": 5}
    sky = Constellation().replace(links={"jitter_us": 9, "override": [change]})
    models = sky.link_models
    assert models[Satellite(3, 10)][Direction.EAST] == LinkModel(5, 9)
    assert models[Satellite(3, 11)][Direction.WEST] == LinkModel(0, 9)


def test_a_link_that_is_cut_is_cut_for_both_ends() -> None:
    overrides = [
        {"from": [3, 11], "to": [3, 10], "loss_ppm": 7},
        {"from": [3, 10], "to": [3, 11], "delay_us": 5, "cut": True},
    ]
    models = Constellation().replace(links={"jitter_us": 9, "override": overrides}).link_models
    assert models[Satellite(3, 10)][Direction.EAST] == LinkModel(5, 9, 0, 0, True)
    assert models[Satellite(3, 11)][Direction.WEST] == LinkModel(0, 9, 0, 7, True)
    assert str(models[Satellite(3, 10)][Direction.EAST]) == "delay_us=5,jitter_us=9,rate_kbps=0,loss_ppm=0,cut=1"
    assert sum(model.cut for links in models.values() for model in links.values()) == 2


def test_cut_seam_has_no_links() -> None:
    models = Constellation().replace(constellation={"seam": "cut"}).link_models
    assert Direction.NORTH not in models[Satellite(1, 4)]
    assert Direction.SOUTH not in models[Satellite(5, 4)]
    assert len(models[Satellite(3, 4)]) == 4
