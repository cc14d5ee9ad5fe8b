"""`skymem keys`, from the outside."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.security.keyring import load_keyring


def skymem(*words: object, status: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words], prog_name="skymem")
    assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    skymem("keys", "new", tmp_path / "keys", "--planes", 2, "--slots", 3)
    return tmp_path / "keys"


def test_a_mission_its_hosts_and_generations(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    told = skymem("keys", "new", keys, "--planes", 2, "--slots", 3).output
    assert told == (
        f"{keys}/mission.json: the mission's keyring; keep it from all others, and keep a copy\n"
        f"{keys}/generation-1/hosts: keyrings of hosts: host\n"
        f"{keys}/generation-1/satellites: key files of 6 satellites\n"
    )
    told = skymem("keys", "new", keys, "--host", "gpu-1", "--tenants", "7,0").output
    assert told == f"{keys}/generation-1/hosts/gpu-1.json: keyring of host gpu-1, generation 1\n"
    made = json.loads(skymem("keys", "rotate", keys, "--json").output)
    assert made["generation"] == 2
    assert made["hosts"] == {name: f"{keys}/generation-2/hosts/{name}.json" for name in ("host", "gpu-1")}
    told = skymem("keys", "revoke", keys, "host").output
    assert "keyrings of hosts: gpu-1\n" in told
    assert told.endswith(
        "satellites serve host until `skymem keys forget`\n"
        f"next: `skymem keys load {keys}`, which gives satellites that run generation 3 beside 2\n"
    )
    keyring = load_keyring(keys / "generation-3" / "hosts" / "gpu-1.json")
    assert (keyring.tenants, keyring.generation) == ((0, 7), 3)


def test_the_missions_file_stands_for_its_folder(keys: Path, tmp_path: Path) -> None:
    file = keys / "mission.json"
    told = skymem("keys", "new", file, "--host", "gpu-1").output
    assert told == f"{keys}/generation-1/hosts/gpu-1.json: keyring of host gpu-1, generation 1\n"
    told = skymem("keys", "rotate", file).output
    assert told.endswith(f"next: `skymem keys load {file}`, which gives satellites that run generation 2 beside 1\n")
    skymem("keys", "revoke", file, "gpu-1")
    assert load_keyring(file).generation == 3
    (copy := tmp_path / "copy.json").write_bytes(file.read_bytes())
    copy.chmod(0o600)
    told = skymem("keys", "rotate", copy, status=2).output
    assert told == f"Error: {copy} is no folder; allowed are the mission's folder, and mission.json in it\n"
    assert {path.name for path in tmp_path.iterdir()} == {"keys", "copy.json"}


def test_what_is_shown(keys: Path) -> None:
    skymem("keys", "new", keys, "--host", "gpu", "--tenants", "any")
    skymem("keys", "revoke", keys, "host")
    text = skymem("keys", "show", keys).output.splitlines()
    shown = json.loads(skymem("keys", "show", keys / "mission.json", "--json").output)
    assert text == [
        "mission mission, tenants any",
        f"generation 2, 2 planes x 3 slots, fingerprint {shown['fingerprint']}",
        "host gpu, tenants any",
        "revoked: host",
    ]
    assert shown == {
        "role": "mission", "name": "mission", "tenants": "any", "generation": 2, "planes": 2, "slots": 3,
        "fingerprint": shown["fingerprint"], "hosts": [{"name": "gpu", "tenants": "any"}], "revoked": ["host"],
    }  # fmt: skip
    host = keys / "generation-1" / "hosts" / "host.json"
    assert skymem("keys", "show", host).output.startswith("host host, tenants 0\ngeneration 1, 2 planes x 3 slots, fingerprint ")
    secret = json.loads(host.read_text())["pair_keys"]
    root = json.loads((keys / "mission.json").read_text())["root"]
    for file in (host, keys):
        for words in ((), ("--json",)):
            told = skymem("keys", "show", file, *words).output
            assert secret[:20] not in told
            assert root[:20] not in told


def test_the_size_of_a_constellation_file(tmp_path: Path) -> None:
    """Its keyring need not exist: this makes it."""
    (file := tmp_path / "sky.toml").write_text(
        "[constellation]\nplanes = 3\nslots = 2\n[cache]\nservers = 2\nparity = 0\ncentre = [1, 1]\ntenant = 9\n"
        '[security]\nkeyring = "keys/mission.json"\n'
    )
    skymem("keys", "new", tmp_path / "keys", "--constellation", file)
    keyring = load_keyring(tmp_path / "keys" / "generation-1" / "hosts" / "host.json")
    assert (keyring.planes, keyring.slots, keyring.tenants) == (3, 2, (9,))


def test_satellites_files(keys: Path, tmp_path: Path) -> None:
    told = skymem("keys", "satellites", keys, tmp_path / "two", "--satellite", "2,3", "--satellite", "1,1").output
    assert told == f"{tmp_path}/two: key files of 2 satellites, generation 1\n"
    assert {path.name for path in (tmp_path / "two").iterdir()} == {"1-1.key", "2-3.key"}
    made = json.loads(skymem("keys", "satellites", keys / "mission.json", tmp_path / "all", "--json").output)
    assert len(made["satellites"]) == len(list((tmp_path / "all").iterdir())) == 6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new", "{keys}"), "{keys} has a mission already; --host NAME without a size makes the keyring of a further host"),
        (("new", "{keys}", "--planes", "2", "--slots", "3"), "{keys} has a mission already"),
        (("new", "{keys}2", "--host", "a"), "{keys}2 has no mission.json; --planes and --slots, or --constellation, begin"),
        (("new", "{keys}2", "--planes", "2"), "--planes and --slots belong together"),
        (("new", "{keys}2", "--planes", "256", "--slots", "3"), "256 is not in the range 1<=x<=255"),
        (("new", "{keys}", "--host", "a" * 13), "allowed are 1 to 12 ASCII letters"),
        (("new", "{keys}2", "--planes", "2", "--slots", "3", "--host", "../a"), "allowed are 1 to 12 ASCII letters"),
        (("new", "{keys}", "--host", "a", "--tenants", "4294967296"), "tenant is 4294967296; allowed are 0 to 4294967295"),
        (("new", "{keys}", "--host", "a", "--tenants", "1,1"), "tenants are 1, 1; allowed is each once"),
        (("new", "{keys}", "--host", "a", "--tenants", "1,2,3,4,5,6,7,8,9"), "9 tenants; allowed are 1 to 8, or any"),
        (("new", "{keys}", "--host", "a", "--tenants", "-1"), "'-1' is no list of tenants; allowed are any, and numbers"),
        (("new", "{keys}", "--host", "host"), "host has its keyring: {keys}/generation-1/hosts/host.json"),
        (("revoke", "{keys}", "nobody"), "nobody is no host of this mission; allowed are host"),
        (("show", "{keys}2"), "{keys}2 cannot be read: No such file or directory"),
        (("rotate", "{keys}/generation-1"), "generation-1/mission.json cannot be read: No such file or directory"),
        (("satellites", "{keys}", "{keys}2", "--satellite", "3,1"), "--satellite 3,1: planes are 1 to 2, slots 1 to 3"),
        (
            ("satellites", "{keys}/generation-1/hosts/host.json", "{keys}2"),
            "is the keyring of host host; allowed is the mission's",
        ),
        (("satellites", "{keys}", "{keys}"), "{keys} exists; allowed is a folder that does not"),
    ],
)
def test_what_is_refused(keys: Path, words: tuple[str, ...], told: str) -> None:
    before = {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()}
    result = skymem("keys", *(word.format(keys=keys) for word in words), status=2)
    assert told.format(keys=keys) in result.output
    assert len(result.output.splitlines()) == 1
    assert {path: path.read_bytes() for path in keys.rglob("*") if path.is_file()} == before


def test_too_many_satellites_for_all_files(tmp_path: Path) -> None:
    told = skymem("keys", "new", tmp_path / "keys", "--planes", 255, "--slots", 254).output
    assert "64,770 satellites are too many for files of all; `skymem keys satellites --satellite` makes those" in told
    result = skymem("keys", "satellites", tmp_path / "keys", tmp_path / "all", status=2)
    assert "64,770 satellites are too many at once; allowed are 2,048" in result.output
