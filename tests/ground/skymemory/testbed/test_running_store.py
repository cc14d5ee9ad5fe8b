"""A store on the constellation that is up on this machine."""

from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.run_record import Running, RunRecord, StateError
from skymemory.testbed.running_store import running_store


def test_a_store_on_the_constellation_that_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    with pytest.raises(StateError, match="no constellation is up"):
        running_store()
    sky = Constellation().replace(network={"network": "198.18.0.0/16"})
    RunRecord().save(Running("docker", sky, {}))
    with running_store() as store:
        assert store.constellation == sky
    RunRecord().save(Running("local", sky, {}))  # all its processes are gone
    with pytest.raises(StateError, match="no constellation is up"):
        running_store()
    RunRecord().path.write_text("{")
    with pytest.raises(StateError, match="is damaged"):
        running_store()
