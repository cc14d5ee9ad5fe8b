"""The stack for Swarm and the manifests for Kubernetes are those of docker/five-hosts.toml, and what their readers accept."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from skymemory.agent.gateway.memory import MEMORY_BYTES
from skymemory.engines.vllm.transfer_room import room_for
from skymemory.sky.constellation import ConfigError, Constellation
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.several_machines import AGENT, AGENT_SECRET, kubernetes_file, stack_file

ROOT = Path(__file__).resolve().parents[4]
FILE = ROOT / "docker" / "five-hosts.toml"
SKY = Constellation.load(FILE)
KINDS = ["Namespace", "ConfigMap", *["Service", "StatefulSet"] * 5, "DaemonSet"]


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "docker" / "kubernetes" / "skymemory.yaml").read_text()))


def stack() -> dict[str, Any]:
    text = (ROOT / "docker" / "stack.yaml").read_text()
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def skymem(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("form", "name"), [("swarm", "stack.yaml"), ("kubernetes", "kubernetes/skymemory.yaml")])
def test_the_files_that_are_checked_in_are_up_to_date(form: str, name: str, tmp_path: Path) -> None:
    out = tmp_path / "made"
    done = skymem("compose", f"--{form}", "--constellation", str(FILE), "--output", str(out))
    assert done.returncode == 0, done.stderr
    made = out.read_text().replace(os.path.relpath(FILE, tmp_path), os.path.relpath(FILE, (ROOT / "docker" / name).parent))
    again = f"skymem compose --{form} --constellation docker/five-hosts.toml --output docker/{name}"
    assert (ROOT / "docker" / name).read_text() == made, f"run: {again}"


@pytest.mark.parametrize(
    ("engines", "token_bytes", "step_tokens"), [(5, 131_072, 8_192), (1, 327_680, 16_384)], ids=["8B models", "a 70B model"]
)
def test_an_agent_has_memory_for_what_its_clients_may_have_on_the_way(engines: int, token_bytes: int, step_tokens: int) -> None:
    room = room_for(16 * token_bytes, 16, step_tokens, workers=1, arena_mib=None, memory_bytes=1 << 40)
    assert not room.lack
    assert AGENT.memory_mib << 20 >= MEMORY_BYTES + engines * room.arena_bytes
    agent = manifests()[-1]["spec"]["template"]["spec"]["containers"][0]
    assert agent["resources"]["limits"]["memory"] == f"{AGENT.memory_mib}Mi"
    assert stack()["services"]["agent"]["deploy"]["resources"]["limits"]["memory"] == f"{AGENT.memory_mib}M"


# ---- Swarm --------------------------------------------------------------------------------------------------------------


def test_a_service_a_plane_where_its_label_is() -> None:
    services = stack()["services"]
    assert set(services) == {"agent", *(f"plane-{plane}" for plane in range(1, 6))}
    for plane in range(1, 6):
        service = services[f"plane-{plane}"]
        assert service["deploy"]["placement"] == {"constraints": [f"node.labels.plane-{plane} == true"]}
        assert service["deploy"]["endpoint_mode"] == "dnsrr"
        network, planes, here, program, *satellites = service["command"]
        assert (network, planes, here, program) == ("198.18.0.0", "5", str(plane), "sky-plane")
        places = [place for place in SKY.torus.satellites() if place.plane == plane]
        assert [words.split() for words in satellites] == [skysat.arguments(SKY, place) for place in places]


def test_packets_fit_the_overlay() -> None:
    assert stack()["networks"]["sky"]["driver_opts"] == {"com.docker.network.driver.mtu": str(1422 + 28 + 50)}
    jumbo = yaml.safe_load(stack_file(SKY.replace(network={"mtu": 8922}), source="a.toml"))
    assert jumbo["networks"]["sky"]["driver_opts"] == {"com.docker.network.driver.mtu": "9000"}


def test_links_of_the_file_are_links_of_the_stack() -> None:
    cut = [{"from": [2, 3], "to": [2, 4], "cut": True}]
    made = yaml.safe_load(stack_file(SKY.replace(links={"delay_us": 5, "override": cut}), source="a.toml"))
    third = made["services"]["plane-2"]["command"][4 + 2]
    assert " --link east:delay_us=5,jitter_us=0,rate_kbps=0,loss_ppm=0,cut=1 " in third


def test_redis_clients_of_other_machines_need_the_password_of_a_secret() -> None:
    made = stack()
    assert made["secrets"] == {"agent": {"external": True, "name": AGENT_SECRET}}
    agent = made["services"]["agent"]
    assert agent["secrets"] == [{"source": "agent", "target": "agent.toml", "mode": 0o400}]
    assert agent["command"][agent["command"].index("--config") + 1] == "/run/secrets/agent.toml"


# ---- Kubernetes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.30", "1.33", kubernetes_validate.latest_version()])
def test_manifests_are_valid(version: str) -> None:
    documents = manifests()
    assert [document["kind"] for document in documents] == KINDS
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_a_stateful_set_a_plane_with_a_container_a_satellite() -> None:
    sets = [document for document in manifests() if document["kind"] == "StatefulSet"]
    services = {document["metadata"]["name"]: document["spec"] for document in manifests() if document["kind"] == "Service"}
    found = {}
    for plane, document in enumerate(sets, start=1):
        spec = document["spec"]
        pod = spec["template"]["spec"]
        labels = spec["template"]["metadata"]["labels"]
        assert spec["selector"]["matchLabels"] == labels == services[spec["serviceName"]]["selector"]
        assert services[spec["serviceName"]]["clusterIP"] == "None"
        assert pod["nodeSelector"] == {f"skymemory/plane-{plane}": "true"}
        assert pod["hostNetwork"]
        assert pod["initContainers"][0]["args"] == ["198.18.0.0", "5", str(plane)]
        found.update({container["name"]: container["args"] for container in pod["containers"]})
        for container in pod["containers"]:
            assert container["securityContext"]["runAsUser"] == 65534
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert found == {f"sat-{place.plane}-{place.slot}": skysat.arguments(SKY, place) for place in SKY.torus.satellites()}


def test_agents_have_the_constellation_and_probes(tmp_path: Path) -> None:
    documents = manifests()
    (config,) = (document for document in documents if document["kind"] == "ConfigMap")
    (copy := tmp_path / "copy.toml").write_text(config["data"]["constellation.toml"])
    assert Constellation.load(copy) == SKY
    pod = documents[-1]["spec"]["template"]["spec"]
    (agent,) = pod["containers"]
    assert agent["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": 8090}
    assert agent["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 8090}
    assert {"name": "socket", "hostPath": {"path": "/run/skymemory", "type": "DirectoryOrCreate"}} in pod["volumes"]
    words = " ".join(agent["args"])
    assert "--constellation /etc/skymemory/constellation.toml --socket /run/skymemory/agent.sock" in words


def test_agents_take_the_options_that_they_are_given() -> None:
    (agent,) = manifests()[-1]["spec"]["template"]["spec"]["containers"]
    command = stack()["services"]["agent"]["command"]
    told = skymem("agent", "--help").stdout
    for word in [*agent["args"], *command[command.index("agent") :]]:
        assert not word.startswith("--") or f"{word} " in told


# ---- what cannot be --------------------------------------------------------------------------------------------------------


def test_addresses_of_this_machine_are_refused() -> None:
    for make in (lambda sky: stack_file(sky, source="a"), lambda sky: kubernetes_file(sky, "", source="a")):
        with pytest.raises(ConfigError, match=r"network\.network is 127\.18\.0\.0/16, this machine's own; several machines need"):
            make(Constellation())


@pytest.mark.parametrize(("mtu", "swarm", "kubernetes"), [(8922, True, True), (8972, False, True), (8973, False, False)])
def test_packets_that_fit_no_frame_are_refused(mtu: int, swarm: bool, kubernetes: bool) -> None:
    sky = SKY.replace(network={"mtu": mtu})
    for make, fits in ((lambda: stack_file(sky, source="a"), swarm), (lambda: kubernetes_file(sky, "", source="a"), kubernetes)):
        if fits:
            make()
        else:
            with pytest.raises(ConfigError, match=f"network.mtu is {mtu}; allowed are up to 89.2 with frames of 9000 bytes"):
                make()


def test_ground_hosts_need_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = skymem("compose", "--swarm")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: --swarm: ground hosts need the constellation file; name one with --constellation\n"
