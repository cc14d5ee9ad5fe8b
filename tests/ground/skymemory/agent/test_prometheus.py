"""The rules for Prometheus: they can be read, and each metric in them is one that an agent has."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.agents import AgentProcess, tell_up
from support.waiting import wait_until

RULES = Path(__file__).parents[4] / "ground" / "prometheus" / "skymemory.rules.yml"
PROMTOOL = shutil.which("promtool")


def alerts() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool here (Debian: prometheus)")
def test_prometheus_understands_the_rules() -> None:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_says_what_it_is_and_what_to_do() -> None:
    names = [one["alert"] for one in alerts()]
    assert len(names) == len(set(names)) > 0
    for one in alerts():
        assert set(one) <= {"alert", "expr", "for", "labels", "annotations"}
        assert one["labels"]["severity"] in ("critical", "warning", "info")
        assert set(one["annotations"]) == {"summary", "description"}
        for path in re.findall(r"docs/\w+\.md", str(one["annotations"])):
            assert (RULES.parents[2] / path).is_file(), path


def test_an_agent_has_each_metric_of_the_rules_and_they_tell_of_losses(
    start_agent: Callable[..., AgentProcess], start_sky: Callable[..., LocalConstellation]
) -> None:
    agent = start_agent()
    local = start_sky()
    tell_up(agent.folder, local)
    agent.wait_ready()
    wait_until(lambda: agent.metric('skymem_sky_satellites{state="answering"}') == 15)
    told = agent.get("/metrics")[1].decode()
    known = {re.sub("_total$", "", name) for name in re.findall(r"^# TYPE (\w+)", told, re.MULTILINE)}
    used = {re.sub("_total$", "", name) for one in alerts() for name in re.findall(r"\bskymem_\w+", one["expr"])}
    assert used <= known, used - known
    assert (agent.metric("skymem_window_servers"), agent.metric("skymem_window_parity")) == (9, 2)
    assert (agent.metric("skymem_window_servers_lost"), agent.metric("skymem_other_version_satellites")) == (0, 0)
    assert agent.metric("skymem_sky_store_bytes") > 0
    assert agent.metric("skymem_sky_used_bytes") == agent.metric("skymem_sky_chunks") == 0
    assert agent.ready() == agent.ready() | {"ready": True, "degraded": False}
    lost = [Satellite(2, slot) for slot in (2, 3, 4)]
    for count, place in enumerate(lost, start=1):
        os.kill(local.processes[place].pid, signal.SIGKILL)
        wait_until(lambda count=count: agent.metric("skymem_window_servers_lost") == count)
        window = agent.ready()["window"]
        assert (window["state"], window["lost"]) == (
            "gone" if count > 2 else "degraded",
            [list(one) for one in sorted(lost[:count])],
        )
        assert agent.get("/readyz")[0] == 200
    assert agent.ready()["degraded"] is True
    assert f"GONE: 3 of 9 servers are lost: {', '.join(map(str, sorted(lost)))}" in agent.log.read_text()
