"""An agent under satellites of another version says so: in /readyz, in its metrics and in its log."""

import json
import re
from collections.abc import Callable

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.run_record import Running, RunRecord
from skymemory.wire.address import Satellite
from support.agents import AgentProcess, tell_up
from support.other_satellites import OtherSatellites
from support.waiting import wait_until

WORDS = "speak version 2 of the packets, and this program version 3: see docs/upgrading.md"


def test_no_satellite_speaks_its_version(start_agent: Callable[..., AgentProcess]) -> None:
    planned = Constellation().replace(constellation={"planes": 3, "slots": 4}, cache={"servers": 6, "centre": [2, 2]})
    constellation = planned.replace(network={"port": free_port(planned)})
    with OtherSatellites(constellation, constellation.torus.satellites(), 2):
        agent = start_agent(None, "--log-json")
        RunRecord(agent.folder).save(Running("docker", constellation, {}))
        wait_until(lambda: WORDS in agent.ready().get("reason", ""), lambda: str(agent.ready()))
        assert agent.get("/readyz")[0] == 503
        assert agent.metric("skymem_other_version_satellites") == 6
        wait_until(lambda: WORDS in str(json.loads(agent.get("/api/now")[1]).get("why")))
    records = [json.loads(line) for line in agent.log.read_text().splitlines()]
    told = [one for one in records if WORDS in one["message"]]
    assert [(one["level"], one["logger"]) for one in told] == [("warning", "skymemory.agent.window_watch")]


def test_some_satellites_speak_another(
    start_agent: Callable[..., AgentProcess], start_sky: Callable[..., LocalConstellation]
) -> None:
    local = start_sky()
    other = [Satellite(2, 3), Satellite(2, 4)]
    for place in other:
        local.kill(place)
    with OtherSatellites(local.constellation, other, 2):
        agent = start_agent(None, "--log-level", "warning")
        tell_up(agent.folder, local)
        wait_until(lambda: f"2 satellites {WORDS}" in agent.ready().get("versions", ""), lambda: str(agent.ready()))
        agent.wait_ready()
        report = agent.ready()
        assert (report["degraded"], report["window"]["lost"]) == (True, [[2, 3], [2, 4]])
        lines = agent.log.read_text().splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (WARNING|ERROR) ", line) for line in lines), lines
    assert any(f"2 satellites {WORDS}" in line for line in lines)
