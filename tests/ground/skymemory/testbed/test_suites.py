"""The security suites in use, as satellites granted them, wherever people look for them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from skymemory.agent.watch.survey import Survey
from skymemory.cli.status_report import collect
from skymemory.link.control import ControlPlane
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, host_file
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.store.results import Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation

StartSky = Callable[..., LocalConstellation]
KEY = b"k" * 32
KEYED = {"secured": True, "generations": [{"valid": [1], "satellites": 15}], "keys_refused": 0}
"""What `status` tells of 15 satellites with keys."""
NONE_YET = "secured: no satellite has made an association yet"


@pytest.fixture
def keyed(tmp_path: Path, start_sky: StartSky) -> Constellation:
    """The constellation of a host of satellites with keys."""
    begin_mission(tmp_path / "keys", 3, 5, HostRecord(name="host", tenants=(0,)))
    local = start_sky(security={"keyring": str(tmp_path / "keys" / "mission.json")})
    return local.constellation.replace(security={"keyring": str(host_file(tmp_path / "keys", 1, "host"))})


@pytest.mark.parametrize("suite", ["blake2b_header", "blake2b_packet"])
def test_everybody_sees_the_suite_that_was_asked_for(keyed: Constellation, suite: str) -> None:
    sky = keyed.replace(security={"suite": suite})
    assert collect(sky)["security"] == KEYED | {"asked": suite, "suites": [suite]}
    with SkyStore(sky) as store:
        assert store.suites() == frozenset()
        assert store.put([(KEY, b"x" * 20_000)])[0].status is Status.DONE
        assert store.suites() == {suite}
        survey = Survey(store)
        assert survey.sky()["security"] == NONE_YET
        before = survey.version
        survey.take()
        assert survey.sky()["security"] == f"secured: {suite}"
        assert survey.version > before  # so the page asks again
        now = survey.version
        survey.take()
        assert survey.version == now


def test_the_default_is_named_as_it_was_granted(keyed: Constellation) -> None:
    with ControlPlane(keyed) as control:
        assert control.suites() == frozenset()
        control.ping([Route(place, place) for place in keyed.torus.satellites()], 5.0)
        (suite,) = control.suites()
    assert suite in {"gmac_header", "blake2b_header"}
    assert collect(keyed)["security"] == KEYED | {"asked": "auto", "suites": [suite]}


def test_without_a_keyring_there_is_none(start_sky: StartSky) -> None:
    sky = start_sky().constellation
    none = {"secured": False, "asked": None, "suites": [], "generations": [], "keys_refused": 0}
    assert collect(sky)["security"] == none
    with SkyStore(sky) as store:
        survey = Survey(store)
        survey.take()
        assert survey.sky()["security"] == "not secured: no keyring"
