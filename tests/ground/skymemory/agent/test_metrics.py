"""What a real agent's /metrics says after traffic, by the rules of the field; and that the Grafana dashboard asks for it."""

import json
import random
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from skymemory.agent.client import AgentClient
from skymemory.common.fit import FEW
from skymemory.segments.evidence import Point, PromptSize, Sample
from skymemory.segments.gate import Gate
from skymemory.segments.gate_file import GateFile
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up
from support.waiting import wait_until

DASHBOARD = Path(__file__).parents[4] / "docs/grafana/skymemory.json"
BLOCK = 100_000
BLOCKS = 4
GETS = 5
StartAgent = Callable[..., AgentProcess]
StartSky = Callable[..., LocalConstellation]


def scrape(agent: AgentProcess) -> dict[str, Metric]:
    """Families by name."""
    status, text = agent.get("/metrics")
    assert status == 200
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def traffic(agent: AgentProcess) -> dict[str, Metric]:
    """Blocks go up, are found, and come down; one that nobody has is asked for; the engine says how fast it computes.

    Of an engine that has stored something the agent stores a record of its own, a little later.
    """
    keys = [random.randbytes(32) for _ in range(BLOCKS)]
    with agent.client(block_bytes=BLOCK) as client:
        assert client.wait_connected(60)
        move(client.put, client, keys)
        for _ in range(GETS):
            client.prefilled(1000, 1000.0)  # so slow that all is fetched, however long a busy machine takes
            found = client.find(keys).result(60)
            assert (found.blocks, found.fetch) == (BLOCKS, BLOCKS)
            move(client.get, client, keys)
        wait_until(lambda: client.find(keys).result(60).fetch_s is not None, "it has learned how long gets take")
        found = client.find(keys).result(60)
        assert found.recompute_s == pytest.approx(BLOCKS * 16, rel=0.1)
        lease = client.lease(BLOCK)
        assert lease is not None
        assert client.get([(random.randbytes(32), lease)]).result(60)[0].status == "miss"
        for _ in range(10):
            client.prefilled(100_000, 1e-3)
        wait_until(lambda: client.find(keys).result(60).fetch == 0, "it computes rather than fetches")
        if "redis" in agent.addresses:
            redis_traffic(*agent.addresses["redis"].split("://")[-1].rsplit(":", 1))
        return scrape(agent)


def redis_traffic(host: str, port: str) -> None:
    """A command that is one, and one that is none."""
    with socket.create_connection((host, int(port))) as link:
        for command, answer in ((b"PING", b"+"), (b"DANCE", b"-")):
            link.sendall(command + b"\r\n")
            assert link.recv(1000).startswith(answer)


def move(call: Callable[..., Any], client: AgentClient, keys: list[bytes]) -> None:
    leases = [client.lease(BLOCK) for _ in keys]
    outcomes = call(list(zip(keys, leases, strict=True))).result(60)
    assert all(outcome.ok for outcome in outcomes)
    for lease in leases:
        assert lease is not None
        lease.release()


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory, full_sky: LocalConstellation) -> dict[str, Metric]:
    folder = tmp_path_factory.mktemp("agent")
    tell_up(folder, full_sky)
    gate = Gate("here")
    gate.checked(Point("ab" * 32, "raw", "lego:8", 1), Sample(0.5, 0.75), PromptSize(6, 32, 197))
    GateFile(folder / "gate-1.json", "ab" * 32).keep(gate)
    (folder / "gate-2.json").write_bytes(b"damaged")
    with AgentProcess(folder, "--resp-port", "0") as agent:
        agent.wait_ready()
        wait_until(lambda: agent.metric('skymem_sky_satellites{state="answering"}') == 95)
        return traffic(agent)


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    """Of one sample."""
    samples = [sample for family in families.values() for sample in family.samples if sample.name == name]
    found = [sample.value for sample in samples if labels.items() <= sample.labels.items()]
    assert found, f"{name} {labels} is not there"
    return sum(found)


def test_traffic_is_counted(families: dict[str, Metric]) -> None:
    assert value(families, "skymem_store_blocks_total", operation="put", status="done") in (BLOCKS, BLOCKS + 1)
    assert value(families, "skymem_store_blocks_total", operation="get", status="done") >= GETS * BLOCKS
    assert value(families, "skymem_store_blocks_total", operation="get", status="miss") >= 1
    assert value(families, "skymem_store_bytes_total", operation="put") >= BLOCKS * BLOCK
    assert value(families, "skymem_store_bytes_total", operation="get") >= GETS * BLOCKS * BLOCK
    assert value(families, "skymem_store_chunks_total", operation="get") >= GETS * BLOCKS * 17
    assert value(families, "skymem_store_corrupt_chunks_total") == 0
    assert value(families, "skymem_store_decoded_chunks_total") >= 0  # on a busy machine any satellite may be late
    assert value(families, "skymem_store_seconds_count", operation="get") >= GETS
    assert value(families, "skymem_store_seconds_count", operation="find") >= GETS
    assert value(families, "skymem_index_entries") in (BLOCKS, BLOCKS + 1)
    assert value(families, "skymem_store_questions_total") >= 1
    assert value(families, "skymem_build_info") == 1


def test_decisions_and_estimates_are_there(families: dict[str, Metric]) -> None:
    assert value(families, "skymem_fetch_decisions_total", decision="explore") >= 1  # the first ones
    assert value(families, "skymem_fetch_decisions_total", decision="fetch") >= 1
    assert value(families, "skymem_fetch_decisions_total", decision="recompute") >= 1
    assert value(families, "skymem_fetch_estimate_seconds_count") >= 2
    assert value(families, "skymem_recompute_estimate_seconds_count") >= 2
    assert value(families, "skymem_fetch_estimate_ratio_count") >= 2
    assert value(families, "skymem_recompute_estimate_ratio_count") == GETS + 10 - FEW


def test_the_gate_of_the_host_is_told(families: dict[str, Metric]) -> None:
    point = {"model": "ab" * 8, "codec": "raw", "strategy": "lego:8", "switch_layer": "1"}
    assert value(families, "skymem_gate_open", **point) == 0
    assert value(families, "skymem_gate_prompts", kind="check", **point) == 1
    assert value(families, "skymem_gate_agreement_ratio", kind="check", **point) == 0.75
    assert value(families, "skymem_gate_kl_nats", kind="check", **point) == 0.5
    assert value(families, "skymem_gate_prompts", kind="canary", **point) == 0
    assert 0 < value(families, "skymem_gate_agreement_bound_ratio", **point) < 0.75


def test_satellites_are_told_apart_while_they_serve(
    start_agent: StartAgent, start_sky: StartSky, stopped: Callable[..., Any]
) -> None:
    local = start_sky(cache={"deadline_ms": 3000})
    agent = start_agent(local)
    families = traffic(agent)
    known = families["skymem_satellite_rtt_seconds"].samples
    assert 9 <= len(known) <= 15  # the servers, and some others for comparison
    assert all(0 < sample.value < 10 for sample in known)
    assert value(families, "skymem_satellite_lost") == 0
    victim = local.constellation.cache.centre
    with stopped(local, victim), agent.client(block_bytes=BLOCK) as client:
        assert client.wait_connected(60)
        lease = client.lease(BLOCK)
        assert lease is not None
        client.put([(random.randbytes(32), lease)]).result(60)
        labels = {"plane": str(victim.plane), "slot": str(victim.slot)}
        lost = f'skymem_satellite_lost{{plane="{victim.plane}",slot="{victim.slot}"}}'
        wait_until(lambda: agent.metric(lost) == 1, "it is lost")
        families = scrape(agent)
        assert labels not in [sample.labels for sample in families["skymem_satellite_rtt_seconds"].samples]
        assert value(families, "skymem_store_satellites_lost_total") >= 1


# ---- the rules of the field (prometheus.io/docs/practices/naming) -----------------------------------------------------


UNITS = ("seconds", "bytes", "ratio", "info", "total", "celsius", "volts")
WRONG = ("milliseconds", "ms", "us", "minutes", "hours", "kilobytes", "megabytes", "kb", "mb", "percent")
LABEL_VALUES = 30


def ours(families: dict[str, Metric]) -> Iterator[Metric]:
    return (family for name, family in families.items() if name.startswith("skymem_"))


def test_names_follow_the_conventions(families: dict[str, Metric]) -> None:
    assert len(list(ours(families))) > 15
    for family in ours(families):
        assert re.fullmatch(r"skymem_[a-z][a-z0-9_]*[a-z0-9]", family.name), family.name
        assert "__" not in family.name
        words = family.name.split("_")
        assert not set(words) & set(WRONG), f"{family.name}: base units only"
        assert family.type not in words, f"{family.name}: the type is no part of the name"
        assert family.documentation.endswith("."), f"{family.name} says what it is"
        for sample in family.samples:
            if family.type == "counter":
                assert sample.name.endswith(("_total", "_created")), sample.name
            elif family.type == "gauge":
                assert not sample.name.endswith(("_total", "_count", "_sum", "_bucket")), sample.name
            elif family.type == "histogram":
                assert words[-1] in UNITS, f"{family.name}: a unit"
            for label, text in sample.labels.items():
                assert re.fullmatch(r"[a-z][a-z_]*", label), label
                assert len(text) <= 40, f"{family.name}: {label} is no key and no name of a user"


def test_labels_have_few_values(families: dict[str, Metric]) -> None:
    for family in ours(families):
        values: dict[str, set[str]] = {}
        for sample in family.samples:
            for label, text in sample.labels.items():
                values.setdefault(label, set()).add(text)
        for label, texts in values.items():
            assert len(texts) <= LABEL_VALUES, f"{family.name}: {label}"


def test_buckets_are_where_the_values_are(families: dict[str, Metric]) -> None:
    """Of gets on this machine and of decisions none is beyond the last bucket; how far off estimates are is up to the machine."""
    for name in ("skymem_store_seconds", "skymem_fetch_estimate_seconds", "skymem_fetch_estimate_ratio"):
        buckets = [sample for sample in families[name].samples if sample.name.endswith("_bucket")]
        bounds = {float(sample.labels["le"]) for sample in buckets}
        assert len(bounds) >= 10, name
        if not name.endswith("_ratio"):
            assert value(families, f"{name}_bucket", le="10.0") == value(families, f"{name}_count")


# ---- the dashboard ---------------------------------------------------------------------------------------------------


def dashboard() -> dict[str, Any]:
    return dict(json.loads(DASHBOARD.read_text()))


def panels() -> list[dict[str, Any]]:
    return [inner for panel in dashboard()["panels"] for inner in [panel, *panel.get("panels", [])]]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", [])]


def test_the_dashboard_can_be_imported() -> None:
    board = dashboard()
    assert board["schemaVersion"] >= 39
    assert board["id"] is None
    assert board["uid"]
    assert board["title"]
    names = [variable["name"] for variable in board["templating"]["list"]]
    assert {variable["type"] for variable in board["templating"]["list"] if variable["name"] == "datasource"} == {"datasource"}
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    assert len(queries()) > 10
    for panel in panels():
        place = panel["gridPos"]
        assert 0 <= place["x"] <= place["x"] + place["w"] <= 24
        if panel["type"] == "row":
            continue
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"]
        assert "unit" in panel["fieldConfig"]["defaults"]
    used = set(re.findall(r"\$\{?(\w+)", " ".join(queries()))) - {"__rate_interval", "__range"}
    assert used <= set(names)


def test_panels_do_not_overlap() -> None:
    cells: dict[tuple[int, int], str] = {}
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in cells, f"{panel['title']} is on {cells.get((x, y))}"
                cells[x, y] = panel["title"]


def names_in(query: str) -> set[str]:
    """Of the metrics that a PromQL query asks for."""
    bare = re.sub(r'"[^"]*"', "", query)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring|group_left)\s*\([^)]*\)", "", bare)
    words = re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\s*\()\b", bare)
    return set(words) - {"and", "or", "unless", "bool", "offset", "by", "without"}


def test_the_dashboard_asks_for_what_is_there(families: dict[str, Metric]) -> None:
    there = {sample.name for family in families.values() for sample in family.samples}
    labels: dict[str, set[str]] = {}
    for family in families.values():
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    for query in queries():
        asked = names_in(query)
        assert asked, query
        assert asked <= there, f"{query}: {asked - there} is not there"
        by = {label.strip() for part in re.findall(r"\bby\s*\(([^)]*)\)", query) for label in part.split(",")}
        matched = {label for part in re.findall(r"\{([^}]*)\}", query) for label in re.findall(r"(\w+)\s*[=!]", part)}
        known = set().union(*(labels[name] for name in asked)) | {"instance", "job"}
        assert by | matched <= known, f"{query}: labels {by | matched - known}"
        for counter in re.findall(r"(\w+_(?:total|bucket|sum|count))\b", re.sub(r"(?:rate|increase)\([^)]*\)", "", query)):
            assert counter not in there, f"{query}: of a counter a rate is shown"


def test_of_what_the_agent_tells_most_is_on_the_dashboard(families: dict[str, Metric]) -> None:
    shown = {name for query in queries() for name in names_in(query)}
    told = {family.name for family in ours(families) if not shown & {sample.name for sample in family.samples}}
    hidden = {name for name in told if not name.endswith("_created")}
    assert len(hidden) <= 3, hidden
