"""`skymem ls`, from the outside: what this host put, and what the sky still has of it."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.agents import tell_up

StartSky = Callable[..., LocalConstellation]


@pytest.fixture
def skymem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command with the state folder `tmp_path`."""
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    return lambda *words, **more: CliRunner().invoke(main, words, **more)


def values(skymem: Callable[..., Result]) -> dict[str, tuple[int, bool | None]]:
    """Name, bytes and whether the sky has it, of each value that is listed."""
    result = skymem("ls", "--json")
    assert result.exit_code == 0, result.output
    return {one["name"]: (one["bytes"], one["in_sky"]) for one in json.loads(result.stdout)["values"]}


def test_values_that_were_put_from_here(skymem: Callable[..., Result], start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky()
    tell_up(tmp_path, local)
    assert "stored from this host: none" in skymem("ls").output
    for name, size in (("notes", 5), ("large", 50_000), ("notes", 7), ("bad \udcff \x1b[31m[red]", 0), ("gone", 3)):
        assert skymem("put", name, "-", input=bytes(size)).exit_code == 0
    assert skymem("del", "gone").exit_code == 0
    assert skymem("put", "deleted elsewhere", "-", input=b"text").exit_code == 0
    with SkyStore(local.constellation) as store:
        assert KeyValue(store).delete("deleted elsewhere")
    assert values(skymem).pop("deleted elsewhere") == (4, False)
    assert values(skymem) == {"large": (50_000, True), "notes": (7, True), "bad � \x1b[31m[red]": (0, True)}
    shown = skymem("ls", env={"COLUMNS": "100"}).output
    assert re.search(r"^large +50,000 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC +yes *$", shown, re.MULTILINE)
    assert "bad \ufffd ?[31m[red]" in shown
    assert "Not known here: names that Redis clients set" in shown
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.glob("values-*"))


def test_what_the_sky_has_no_longer_is_listed_once(
    skymem: Callable[..., Result],
    start_sky: StartSky,
    stopped: Callable[..., AbstractContextManager[None]],
    tmp_path: Path,
) -> None:
    local = start_sky(cache={"deadline_ms": 300})
    tell_up(tmp_path, local)
    skymem("put", "notes", "-", input=b"text")
    satellites = json.loads(skymem("status", "--json").stdout)["satellites"]
    with stopped(local, *(Satellite(one["plane"], one["slot"]) for one in satellites if one["chunks"])):
        assert values(skymem) == {"notes": (4, None)}  # stand-ins deny it, and those that have it are silent
    with stopped(local):
        assert values(skymem) == {"notes": (4, None)}  # silence is not absence
    assert values(skymem) == {"notes": (4, True)}
    for place in list(local.processes):
        local.kill(place)
        local.restart(place)
    tell_up(tmp_path, local)
    assert values(skymem) == {"notes": (4, False)}
    assert values(skymem) == {}
