"""`skymem keys load`, `activate` and `forget`, from the outside, with real satellites."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.link.ask import Ask
from skymemory.link.association_keys import keys_from
from skymemory.link.control import ControlPlane
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, load_mission, rotate, satellites_folder
from skymemory.security.wrapped_keys import load_payload
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from support.other_satellites import OtherSatellites
from support.waiting import PATIENCE_S

Stopped = Callable[..., AbstractContextManager[None]]
GRID = "[constellation]\nplanes = 2\nslots = 2\n[cache]\nservers = 2\nparity = 0\ncentre = [1, 1]\n"


def skymem(*words: object, status: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words], prog_name="skymem")
    assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    begin_mission(tmp_path / "keys", 2, 2, HostRecord(name="host", tenants=(0,)))
    return tmp_path / "keys"


@pytest.fixture
def local(keys: Path, start_sky: Callable[..., LocalConstellation]) -> LocalConstellation:
    return start_sky(
        constellation={"planes": 2, "slots": 2},
        cache={"servers": 2, "parity": 0, "centre": [1, 1]},
        security={"keyring": str(satellites_folder(keys, 1))},
    )


@pytest.fixture
def file(local: LocalConstellation, tmp_path: Path) -> Path:
    """A file of the constellation, for tools of the mission, which name their keyring themselves."""
    port = local.constellation.network.port
    (path := tmp_path / "sky.toml").write_text(f"{GRID}[network]\nport = {port}\n")
    return path


def test_the_steps_of_a_change(file: Path, keys: Path) -> None:
    rotate(keys)
    given = (keys, "--constellation", file)
    assert skymem("keys", "load", *given).output == (
        f"4 of 4 satellites have the keys of generation 2\nnext: `skymem keys activate {keys} --constellation {file}`\n"
    )
    assert skymem("keys", "activate", *given).output == (
        "4 of 4 satellites serve generation 2\nnext: give hosts their keyrings of generation 2 (`skymem agent` and "
        "`skymem serve` take them while they run, other programs when they start again), then "
        f"`skymem keys forget {keys} --constellation {file}`\n"
    )
    told = json.loads(skymem("keys", "forget", keys / "mission.json", "--constellation", file, "--json").output)
    assert told == {
        "command": "forget", "generation": 2, "old": 1, "satellites": 4, "done": 4, "refused": [], "silent": [],
        "forgotten": [1],
    }  # fmt: skip
    assert skymem("keys", "forget", *given).output == (
        "4 of 4 satellites serve generation 2, and 1 no more\n"
        "done: satellites that start again need their key files of generation 2\n"
    )


def test_who_did_not_do_it_is_named(file: Path, keys: Path, local: LocalConstellation, stopped: Stopped) -> None:
    rotate(keys)
    given = (keys, "--constellation", file)
    chosen = ("--satellite", "1,1", "--satellite", "2,1", "--satellite", "1,1")
    told = skymem("keys", "activate", *given, *chosen, status=1)
    assert told.stdout == "0 of 2 satellites serve generation 2\n"
    assert told.stderr.splitlines() == [
        "satellite [1, 1] has no key of generation 1, or did not load that of 2: `skymem keys load` first",
        "satellite [2, 1] has no key of generation 1, or did not load that of 2: `skymem keys load` first",
        "Error: 2 of 2 satellites did not do it; the command may be repeated",
    ]
    with stopped(local, Satellite(2, 1)):
        told = skymem("keys", "load", *given, *chosen, status=1)
        assert told.stdout == "1 of 2 satellites have the keys of generation 2\n"
        assert told.stderr.startswith("satellite [2, 1] does not answer\n")
        silent = skymem("keys", "load", *given, "--satellite", "2,1", "--json", status=4)
        assert json.loads(silent.stdout)["silent"] == [[2, 1]]
        assert silent.stderr == "Error: none of the satellites answers; the command may be repeated\n"
    assert skymem("keys", "load", *given, *chosen).output == (
        "2 of 2 satellites have the keys of generation 2\n"
        f"next: `skymem keys load {keys} --constellation {file}`, for the 2 other satellites, unless it was done\n"
    )


def test_nobody_forgets_before_all_have_the_new_keys(file: Path, keys: Path, local: LocalConstellation, stopped: Stopped) -> None:
    rotate(keys)
    given, lost = (keys, "--constellation", file), ("--lost", "2,1")
    told = skymem("keys", "forget", *given, status=1)
    assert told.stdout == ""
    assert told.stderr.splitlines()[:4] == [
        f"satellite {place} serves generation 1, and not 2" for place in local.constellation.torus.satellites()
    ]
    assert "4 of 4 satellites have not shown that they serve generation 2, so none was told to forget 1" in told.stderr
    skymem("keys", "load", *given)
    skymem("keys", "activate", *given)
    with stopped(local, Satellite(2, 1)):
        for chosen in ((), ("--satellite", "1,1")):  # its links would be cut, too
            told = skymem("keys", "forget", *given, *chosen, status=1)
            assert told.stderr.startswith("satellite [2, 1] does not answer\nError: 1 of 4 satellites have not shown that")
        with stopped(local):
            told = skymem("keys", "forget", *given, status=4)
            assert told.output.startswith("Error: none of the satellites answers, so none was told to forget 1; ")
    with stopped(local, Satellite(2, 1)):
        assert skymem("keys", "forget", *given, *lost).output.startswith("3 of 3 satellites serve generation 2, and 1 no more\n")
    told = skymem("keys", "forget", *given, *lost, "--satellite", "2,1", status=2)
    assert told.output == "Error: --lost 2,1 is also a --satellite; allowed is one of the two\n"
    all_lost = [word for place in local.constellation.torus.satellites() for word in ("--lost", f"{place.plane},{place.slot}")]
    told = skymem("keys", "forget", *given, *all_lost, status=2)
    assert told.output == "Error: --lost names all satellites; allowed are fewer\n"
    assert skymem("keys", "forget", *given).output.startswith("4 of 4 satellites serve generation 2, and 1 no more\n")


def generations(file: Path, keys: Path, generation: int) -> list[list[int]]:
    """What each satellite says of its valid keys when it is asked under those of a generation."""
    mission = load_mission(keys).changed(generation=generation)
    constellation = Constellation.load(file, "none")
    with ControlPlane(constellation, keys=keys_from(mission, constellation)) as control:
        stats = control.link_stats([Route(place, place) for place in mission.satellites()], PATIENCE_S)
    assert len(stats) == 4
    return [one.generations for one in stats.values()]


def test_all_older_keys_are_forgotten(file: Path, keys: Path) -> None:
    """The one that was skipped, too, which is not the one before the mission's."""
    rotate(keys)
    rotate(keys)
    sky = ("--constellation", file)
    for step, then in (("load", "activate"), ("activate", "forget")):
        told = skymem("keys", step, keys, *sky, "--old", "1").output
        assert f"`skymem keys {then} {keys} --old 1 --constellation {file}`" in told
    assert generations(file, keys, 3) == [[1, 3]] * 4
    assert skymem("keys", "forget", keys, *sky, "--satellite", "1,2").output.startswith(
        "1 of 1 satellites serve generation 3, and 1 and 2 no more\n"
    )
    assert sorted(generations(file, keys, 3)) == [[1, 3]] * 3 + [[3]]
    told = json.loads(skymem("keys", "forget", keys, *sky, "--json").output)
    assert (told["done"], told["forgotten"]) == (4, [1])
    assert generations(file, keys, 3) == [[3]] * 4


def test_two_keys_that_are_not_the_missions_leave_a_way_out(file: Path, keys: Path) -> None:
    """Forgetting was put off, and then a host was revoked: satellites have no room for a third generation."""
    given = (keys, "--constellation", file)
    rotate(keys)
    for step in ("load", "activate"):
        skymem("keys", step, *given)
    rotate(keys, "host")
    skymem("keys", "load", *given)
    way_out = f"`skymem keys forget {keys} --old 1 --constellation {file}`"
    told = skymem("keys", "activate", *given, status=1)
    assert told.stderr.splitlines()[:4] == [
        f"satellite [{place}] serves generations 1 and 2, and has no room for another: {way_out} makes room"
        for place in ("1, 1", "1, 2", "2, 1", "2, 2")
    ]
    told = skymem("keys", "forget", *given, status=1)
    assert told.stderr.startswith("satellite [1, 1] serves generations 1 and 2, and not 3\n")
    assert f" {way_out} forgets 1 under generation 2, which all serve. " in told.stderr
    assert generations(file, keys, 2) == [[1, 2]] * 4
    assert skymem("keys", "forget", *given, "--old", "1").output == (
        f"4 of 4 satellites serve generation 2, and 1 no more\nnext: `skymem keys load {keys} --constellation {file}`, then "
        f"`skymem keys activate {keys} --constellation {file}`: satellites have room for generation 3 now\n"
    )
    assert generations(file, keys, 2) == [[2]] * 4
    for step in ("load", "activate", "forget"):
        skymem("keys", step, *given)
    assert generations(file, keys, 3) == [[3]] * 4


def test_nobody_forgets_before_all_have_their_keys_with_each_other(file: Path, keys: Path) -> None:
    """A satellite got its master key alone, and would be cut off."""
    rotate(keys)
    given, late = (keys, "--constellation", file), Satellite(1, 2)
    mission, constellation = load_mission(keys), Constellation.load(file, "none")
    first = mission.changed(generation=1)
    with ControlPlane(constellation, keys=keys_from(first, constellation)) as control:
        payload = load_payload(mission, first, late)
        (answer,) = control.exchange([Ask(Route(late, late), icd.OP_REKEY, icd.APID_ISL, payload=payload)], PATIENCE_S)
    assert answer is not None
    assert answer.ok
    for place in ("1,1", "2,1", "2,2"):
        skymem("keys", "load", *given, "--satellite", place)
    lonely = "satellite [1, 2] has no keys of generation 2 with other satellites yet\n"
    load = f"`skymem keys load {keys} --constellation {file}`"
    told = skymem("keys", "activate", *given, status=1)
    assert told.stdout == "4 of 4 satellites serve generation 2\n"
    assert told.stderr == (
        f"{lonely}Error: 1 of 4 satellites cannot ask others under generation 2 yet; {load} gives them the keys for that\n"
    )
    told = skymem("keys", "activate", *given, "--json", status=1)
    assert json.loads(told.stdout)["without_peer_keys"] == [[1, 2]]
    told = skymem("keys", "forget", *given, status=1)
    assert told.stderr == (
        f"{lonely}Error: 1 of 4 satellites cannot ask others under generation 2 yet, so none was told to forget 1: those would "
        f"lose their links. {load} gives them the keys for that\n"
    )
    assert generations(file, keys, 2) == [[1, 2]] * 4
    for step in ("load", "activate", "forget"):
        skymem("keys", step, *given)
    assert generations(file, keys, 2) == [[2]] * 4


def test_an_old_copy_of_the_mission_forgets_nothing(file: Path, keys: Path, tmp_path: Path) -> None:
    """Satellites have gone further than the keyring that is given: they would keep what it does not know."""
    rotate(keys)
    (copy := tmp_path / "copy.json").write_bytes((keys / "mission.json").read_bytes())
    copy.chmod(0o600)
    sky = ("--constellation", file)
    for step in ("load", "activate", "forget"):
        skymem("keys", step, keys, *sky)
    rotate(keys)
    for step in ("load", "activate"):
        skymem("keys", step, keys, *sky, "--satellite", "2,1")
    told = skymem("keys", "forget", copy, *sky, status=1)
    assert told.stdout == ""
    assert told.stderr.splitlines() == [
        "satellite [2, 1] also serves generation 3",
        "Error: 1 of 4 satellites serve a generation later than 2, so none was told to forget 1; allowed is the keyring of the "
        "mission's newest generation",
    ]
    assert sorted(generations(file, keys, 2)) == [[2]] * 3 + [[2, 3]]


def test_keys_of_another_mission(file: Path, tmp_path: Path) -> None:
    begin_mission(tmp_path / "others", 2, 2, HostRecord(name="host", tenants=(0,)))
    rotate(tmp_path / "others")
    told = skymem("keys", "load", tmp_path / "others", "--constellation", file, status=1)
    assert (
        told.stderr.splitlines()[0]
        == "satellite [1, 1] has other keys than those of this mission's generations 1 and 2; --old names another one"
    )


def test_wrong_words(file: Path, keys: Path, tmp_path: Path) -> None:
    given = (keys, "--constellation", file)
    told = skymem("keys", "load", *given, status=2).output
    assert told == f"Error: {keys} is at generation 1, the first; `skymem keys rotate` makes the next one\n"
    rotate(keys)
    for old in (2, 3):
        told = skymem("keys", "load", *given, "--old", old, status=2).output
        assert told == f"Error: --old is {old}; allowed are generations before that of the mission, 2\n"
    told = skymem("keys", "load", *given, "--satellite", "3,1", status=2).output
    assert told == "Error: --satellite 3,1: planes are 1 to 2, slots 1 to 2\n"
    host = keys / "generation-2" / "hosts" / "host.json"
    assert "is the keyring of host host; allowed is the mission's" in skymem("keys", "forget", host, status=2).output
    begin_mission(tmp_path / "others", 2, 3, HostRecord(name="host", tenants=(0,)))
    rotate(tmp_path / "others")
    told = skymem("keys", "load", tmp_path / "others", "--constellation", file, status=2).output
    assert "others/mission.json is for 2 planes x 3 slots; allowed is a keyring for 2 planes x 2 slots" in told


def test_status_shows_the_generations_of_keys(file: Path, keys: Path, tmp_path: Path) -> None:
    def told(generation: int) -> tuple[list[str], list[object]]:
        keyring = keys / f"generation-{generation}" / "hosts" / "host.json"
        (sky := tmp_path / "host.toml").write_text(f'{file.read_text()}[security]\nkeyring = "{keyring}"\n')
        lines = skymem("status", "--constellation", sky).output.splitlines()
        report = json.loads(skymem("status", "--constellation", sky, "--json").output)
        each = [one["generations"] for one in report["satellites"]]
        assert sum(group["satellites"] for group in report["security"]["generations"]) == len(each)
        return [line for line in lines if "keys" in line], each

    assert told(1) == (["keys of generation 1 on 4 satellites"], [[1]] * 4)
    rotate(keys)
    given = (keys, "--constellation", file)
    first = ("--satellite", "1,1")
    skymem("keys", "load", *given)
    assert told(1) == (["keys of generation 1 on 4 satellites"], [[1]] * 4)  # what waits is not used
    skymem("keys", "activate", *given, *first)
    lines, each = told(1)
    assert lines == ["keys of generation 1 on 3 satellites", "keys of generations 1 and 2 on 1 satellite: [1, 1]"]
    assert each == [[1, 2], [1], [1], [1]]
    skymem("keys", "activate", *given)
    skymem("keys", "forget", *given)
    assert told(2) == (["keys of generation 2 on 4 satellites"], [[2]] * 4)


def test_another_version_is_named(file: Path, keys: Path, local: LocalConstellation) -> None:
    rotate(keys)
    given, place = (keys, "--constellation", file), Satellite(2, 1)
    local.kill(place)
    with OtherSatellites(local.constellation, [place], 1):
        told = skymem("keys", "load", *given, status=1).stderr.splitlines()
        assert told[0] == "satellite [2, 1] speaks version 1 of the packets"
        assert told[1].startswith("1 satellite speaks version 1 of the packets, and this program version 3")
        told = skymem("keys", "load", *given, "--satellite", "2,1", status=1).stderr.splitlines()
        assert told[-1].startswith("Error: 1 satellite speaks version 1 of the packets, and this program version 3")
        told = skymem("keys", "forget", *given, status=1).stderr.splitlines()
        assert "satellite [2, 1] speaks version 1 of the packets" in told
