"""[security] of the constellation file: the keyring that it names, and what is said of one that does not fit."""

from pathlib import Path

import pytest

from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, host_file, rotate, satellites_folder
from skymemory.sky.constellation import KEYRING_VARIABLE, ConfigError, Constellation, KeyUse

GRID = "[constellation]\nplanes = 2\nslots = 3\n[cache]\nservers = 2\nparity = 0\ncentre = [1, 1]\n"
LINE = 1 + len(GRID.splitlines()) + 1
"""Line of the keyring."""


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    begin_mission(tmp_path / "keys", 2, 3, HostRecord(name="host", tenants=(0, 7)))
    return tmp_path / "keys"


def load(folder: Path, security: str, keys: KeyUse = "any", grid: str = GRID) -> Constellation:
    (path := folder / "sky.toml").write_text(f"{grid}[security]\n{security}\n")
    return Constellation.load(path, keys)


def complaint(folder: Path, security: str, keys: KeyUse = "any", grid: str = GRID) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, security, keys, grid)
    return str(caught.value).replace(f"{folder}/", "")


def test_a_keyring_is_seen_from_the_folder_of_the_file(keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    for use in ("any", "satellites", "none"):
        sky = load(tmp_path, 'keyring = "keys/mission.json"', use)  # type: ignore[arg-type]
        assert sky.security.keyring == str(keys / "mission.json")
        assert sky.security_words(()) == "secured: no satellite has made an association yet"
        assert sky.security_words(["blake2b_header", "gmac_header"]) == "secured: blake2b_header, gmac_header"
    assert sky.replace(cache={"servers": 1, "parity": 0}).security == sky.security


def test_a_hosts_keyring_is_for_hosts(keys: Path, tmp_path: Path) -> None:
    named = 'keyring = "keys/generation-1/hosts/host.json"'
    assert load(tmp_path, named).security.keyring == str(host_file(keys, 1, "host"))
    assert complaint(tmp_path, named, "satellites") == (
        f"sky.toml:{LINE}: security.keyring: keys/generation-1/hosts/host.json is the keyring of host host, which starts no "
        "satellites; allowed are the mission's keyring, or a folder of the satellites' key files"
    )


def test_a_folder_of_key_files_starts_satellites(keys: Path, tmp_path: Path) -> None:
    named = 'keyring = "keys/generation-1/satellites"'
    load(tmp_path, named, "satellites")
    folder = satellites_folder(keys, 1)
    (folder / "2-3.key").write_bytes((folder / "2-2.key").read_bytes())
    at = f"sky.toml:{LINE}: security.keyring: keys/generation-1/satellites"
    assert complaint(tmp_path, named, "satellites") == f"{at}/2-3.key is the file of satellite [2, 2]"
    (folder / "2-3.key").unlink()
    assert complaint(tmp_path, named, "satellites") == f"{at}/2-3.key cannot be read: No such file or directory"
    rotate(keys)
    (folder / "2-3.key").write_bytes((satellites_folder(keys, 2) / "2-3.key").read_bytes())
    (folder / "2-3.key").chmod(0o600)
    assert complaint(tmp_path, named, "satellites") == f"{at} has files of generations 1, 2; allowed is one"


def test_files_of_satellites_go_with_the_generation(keys: Path, tmp_path: Path) -> None:
    satellites_folder(keys, 1).rename(tmp_path / "elsewhere")
    told = complaint(tmp_path, 'keyring = "keys/mission.json"', "satellites")
    assert "keys/generation-1/satellites is missing, with the satellites' key files; `skymem keys satellites" in told
    rotate(keys)
    load(tmp_path, 'keyring = "keys/mission.json"', "satellites")


def test_keyrings_that_do_not_fit(keys: Path, tmp_path: Path) -> None:
    at = f"sky.toml:{LINE}: security.keyring: "
    named = 'keyring = "keys/mission.json"'
    assert complaint(tmp_path, 'keyring = "no"') == f"{at}no does not exist; `skymem keys new` makes keyrings"
    assert load(tmp_path, 'keyring = "no"', "none").security.keyring == str(tmp_path / "no")
    other = GRID.replace("slots = 3", "slots = 4")
    told = "keys/mission.json is for 2 planes x 3 slots; allowed is a keyring for 2 planes x 4 slots"
    assert complaint(tmp_path, named, grid=other) == at + told
    tenant = f"{GRID}tenant = 1\n"
    load(tmp_path, named, grid=tenant)
    told = "keys/generation-1/hosts/host.json is for other tenants than cache.tenant = 1; allowed are 0, 7"
    host = 'keyring = "keys/generation-1/hosts/host.json"'
    assert complaint(tmp_path, host, grid=tenant) == f"sky.toml:{LINE + 1}: security.keyring: {told}"
    (keys / "mission.json").chmod(0o644)
    assert complaint(tmp_path, named).startswith(
        f"{at}keys/mission.json has mode 0644, so that others may read or change it; allowed"
    )
    (keys / "mission.json").chmod(0o600)
    (keys / "mission.json").write_bytes((keys / "mission.json").read_bytes()[:-20])
    assert complaint(tmp_path, named) == f"{at}keys/mission.json is damaged: it is no keyring"


@pytest.mark.parametrize(
    ("security", "told"),
    [
        ("keyring = 3", 'security.keyring is 3; allowed are names of files, such as "keys/mission.json"'),
        (
            'suite = "aes"',
            'security.suite is "aes"; allowed are "auto", "gmac_header", "gmac_packet", "blake2b_header" and "blake2b_packet"',
        ),
        ("insecure = 1", "security.insecure is 1; allowed are true and false"),
        ('suite = "gmac_packet"', 'security.suite is "gmac_packet" without a keyring; allowed is "auto", or a keyring'),
        (
            'insecure = true\nkeyring = "a"',
            "security.insecure is true, and there is a keyring; allowed is one of the two",
        ),
        ('key = "a"', "security.key is unknown (did you mean keyring?); allowed in [security] are keyring, suite, insecure"),
    ],
)
def test_values_that_cannot_be(tmp_path: Path, security: str, told: str) -> None:
    assert complaint(tmp_path, security) == f"sky.toml:{LINE}: {told}"


def test_each_machine_may_have_a_keyring_of_its_own(keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(KEYRING_VARIABLE, "keys/generation-1/hosts/host.json")
    own = str(host_file(keys, 1, "host"))
    assert load(tmp_path, 'keyring = "not/here.json"').security.keyring == own
    (tmp_path / "plain.toml").write_text(GRID)
    assert Constellation.load(tmp_path / "plain.toml").security.keyring == own
    told = f"{KEYRING_VARIABLE}: {own} is for 2 planes x 3 slots; allowed is a keyring for 5 planes x 19 slots"
    with pytest.raises(ConfigError, match=f"^{told}$"):
        Constellation.default()
    monkeypatch.setenv(KEYRING_VARIABLE, "")
    assert Constellation.default().security.keyring == ""


@pytest.mark.parametrize("network", ["127.18.0.0/16", "127.0.0.0/8"])
def test_what_only_this_machine_reaches_needs_no_keyring(network: str) -> None:
    Constellation().replace(network={"network": network}).check_exposure()


@pytest.mark.parametrize("network", ["10.0.0.0/8", "198.18.0.0/16"])
def test_what_others_reach_needs_one(network: str) -> None:
    sky = Constellation().replace(network={"network": network})
    with pytest.raises(ConfigError, match=rf"network\.network is {network}, where other machines reach the satellites"):
        sky.check_exposure()
    sky.replace(security={"insecure": True}).check_exposure()
    sky.replace(security={"keyring": "/some/file"}).check_exposure()
    # A host goes on, because only who starts satellites can protect them, but it is told
    assert sky.is_exposed
    assert sky.security_words(()).startswith("not secured: no keyring, and whoever reaches the satellites' network reads")
    meant = sky.replace(security={"insecure": True})
    assert not meant.is_exposed
    assert meant.security_words(()) == Constellation().security_words(()) == "not secured: no keyring"
