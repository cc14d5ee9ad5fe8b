"""The stack for Swarm and the manifests for Kubernetes are those of docker/five-hosts.toml, and what their readers accept."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from skymemory.agent.gateway.memory import MEMORY_BYTES
from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.engines.vllm.transfer_room import room_for
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, rotate
from skymemory.sky.constellation import ConfigError, Constellation
from skymemory.sky.tenant_secret import secret_of
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.several_machines import AGENT, AGENT_SECRET, LMCACHE_PORT, RESP_PORT, kubernetes_file, stack_file

ROOT = Path(__file__).resolve().parents[4]
FILE = ROOT / "docker" / "five-hosts.toml"
SKY = Constellation.load(FILE)
FOR_NOBODY = {"uid": "65534", "gid": "65534", "mode": 0o400}
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
    assert made["secrets"]["agent"] == {"external": True, "name": AGENT_SECRET}
    agent = made["services"]["agent"]
    assert {"source": "agent", "target": "agent.toml", **FOR_NOBODY} in agent["secrets"]
    assert agent["command"][agent["command"].index("--config") + 1] == "/run/secrets/agent.toml"


def test_nobody_in_the_swarm_is_root() -> None:
    """sky-net is, until it has routes: it then becomes nobody, unless SKY_USER says otherwise."""
    for service in stack()["services"].values():
        assert "SKY_USER" not in service.get("environment", {})
        assert all(FOR_NOBODY.items() <= one.items() for one in service.get("secrets", []))


def test_all_agents_have_one_tenant_secret() -> None:
    made = stack()
    assert made["secrets"]["tenant"] == {"file": "tenant.secret"}
    agent = made["services"]["agent"]
    assert {"source": "tenant", "target": "tenant.secret", **FOR_NOBODY} in agent["secrets"]
    assert agent["environment"]["SKYMEM_TENANT_SECRET_FILE"] == "/run/secrets/tenant.secret"
    pod = manifests()[-1]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["env"] == [{"name": "SKYMEM_TENANT_SECRET_FILE", "value": "/etc/skymemory-tenant/tenant.secret"}]
    assert {"name": "tenant", "mountPath": "/etc/skymemory-tenant", "readOnly": True} in container["volumeMounts"]
    assert {"name": "tenant", "secret": {"secretName": "skymemory-tenant", "defaultMode": 0o400}} in pod["volumes"]


@pytest.mark.parametrize("form", ["swarm", "kubernetes"])
def test_the_command_makes_the_tenant_secret(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_VARIABLE)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    words = ["compose", f"--{form}", "--constellation", str(FILE), "--output", str(tmp_path / "made")]
    assert skymem(*words).returncode == 0
    file = tmp_path / "tenant.secret"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_bytes() == secret_of(SKY)  # what this user's own commands take
    assert skymem(*words).returncode == 0  # once more: it stays
    assert file.read_bytes() == secret_of(SKY)
    file.write_bytes(b"of another constellation")
    (tmp_path / "made").unlink()
    done = skymem(*words)
    assert done.returncode == 1
    assert f"{file} has another tenant secret than this user's" in done.stderr
    assert file.read_bytes() == b"of another constellation"
    assert not (tmp_path / "made").exists()
    monkeypatch.setenv(SECRET_VARIABLE, str(file))
    assert skymem(*words).returncode == 0
    assert skymem(*words[:-2]).returncode == 0  # on standard output: nothing is made beside it
    file.chmod(0o644)
    assert "has mode 0644" in skymem(*words).stderr


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
    assert agent["livenessProbe"]["httpGet"] == {"path": "/healthz", "host": "127.0.0.1", "port": 8090}
    assert agent["readinessProbe"]["httpGet"] == {"path": "/readyz", "host": "127.0.0.1", "port": 8090}
    assert {"name": "socket", "hostPath": {"path": "/run/skymemory", "type": "DirectoryOrCreate"}} in pod["volumes"]
    words = " ".join(agent["args"])
    assert "--constellation /etc/skymemory/constellation.toml --socket /run/skymemory/agent.sock" in words


def test_nothing_is_open_without_a_password() -> None:
    """Redis clients need the secret's; health and the page, which have none, are for the machine alone."""
    published = [port["target"] for port in stack()["services"]["agent"]["ports"]]
    assert published == [RESP_PORT, LMCACHE_PORT]
    (agent,) = manifests()[-1]["spec"]["template"]["spec"]["containers"]
    for words in (stack()["services"]["agent"]["command"], agent["args"]):
        assert words[words.index("--config") + 1] == "/run/secrets/agent.toml"
        assert words[words.index("--http-host") + 1] == "127.0.0.1"
    volumes = {volume["name"]: volume for volume in manifests()[-1]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["settings"]["secret"] == {"secretName": AGENT_SECRET, "defaultMode": 0o400}
    mounts = {mount["name"]: mount["mountPath"] for mount in agent["volumeMounts"]}
    assert mounts["settings"] == "/run/secrets"


def test_no_container_is_privileged_and_each_has_what_it_needs_alone() -> None:
    for document in manifests():
        if document["kind"] not in ("StatefulSet", "DaemonSet"):
            continue
        pod = document["spec"]["template"]["spec"]
        assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
        for container in [*pod["initContainers"], *pod["containers"]]:
            context = container["securityContext"]
            assert "privileged" not in context
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"]["drop"] == ["ALL"]
            added = context["capabilities"].get("add", [])
            assert added == (["NET_ADMIN"] if container["name"] == "sky-net" else [])
            assert context.get("runAsNonRoot", False) == container["name"].startswith("sat-")


def test_pods_exceed_the_level_baseline_by_what_the_page_says_alone() -> None:
    """After the Pod Security Standards of Kubernetes: what `baseline` forbids, and these pods have."""
    exceeding: dict[str, set[str]] = {}
    for document in manifests():
        if document["kind"] not in ("StatefulSet", "DaemonSet"):
            continue
        pod = document["spec"]["template"]["spec"]
        folders = {one["name"]: one["hostPath"]["path"] for one in pod.get("volumes", []) if "hostPath" in one}
        assert set(folders.values()) <= {"/run/skymemory"}
        assert not {"hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"} & set(pod)
        assert "sysctls" not in pod["securityContext"]
        for container in [*pod["initContainers"], *pod["containers"]]:
            assert not any("hostPort" in port for port in container.get("ports", []))
            assert not {"privileged", "procMount", "seLinuxOptions", "appArmorProfile", "seccompProfile"} & set(
                container["securityContext"]
            )
            kind = "satellites" if container["name"].startswith("sat-") else container["name"]
            mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
            exceeding.setdefault(kind, set()).update(
                ["network"] * pod["hostNetwork"],
                container["securityContext"]["capabilities"].get("add", []),
                (path for name, path in folders.items() if name in mounted),
            )
    assert exceeding == {
        "sky-net": {"network", "NET_ADMIN"},
        "satellites": {"network"},
        "agent": {"network", "/run/skymemory"},
    }


def test_agents_take_the_options_that_they_are_given() -> None:
    (agent,) = manifests()[-1]["spec"]["template"]["spec"]["containers"]
    command = stack()["services"]["agent"]["command"]
    told = skymem("agent", "--help").stdout
    for word in [*agent["args"], *command[command.index("agent") :]]:
        assert not word.startswith("--") or f"{word} " in told


# ---- keys ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def secured(tmp_path: Path) -> Path:
    """A constellation file whose keyring is the mission's."""
    begin_mission(tmp_path / "keys", 5, 19, HostRecord(name="host", tenants=(0,)))
    (file := tmp_path / "sky.toml").write_text(FILE.read_text().replace("insecure = true", 'keyring = "keys/mission.json"'))
    return file


def made_of(file: Path, form: str) -> str:
    done = skymem("compose", f"--{form}", "--constellation", str(file), "--output", str(file.parent / "made"))
    assert done.returncode == 0, done.stderr
    return (file.parent / "made").read_text()


def test_a_service_of_the_swarm_has_its_planes_keys_only(secured: Path) -> None:
    rotate(secured.parent / "keys")
    made = yaml.safe_load(made_of(secured, "swarm"))
    for plane in range(1, 6):
        service = made["services"][f"plane-{plane}"]
        assert [(one["source"], one["target"]) for one in service["secrets"]] == [
            (f"keys-{plane}-{slot}", f"{plane}-{slot}.key") for slot in range(1, 20)
        ]
        assert all((one["uid"], one["gid"], one["mode"]) == ("65534", "65534", 0o400) for one in service["secrets"])
        assert all(f" --keys /run/secrets/{plane}-{slot}.key" in service["command"][3 + slot] for slot in range(1, 20))
    assert made["secrets"]["keys-2-7"] == {"file": "keys/generation-2/satellites/2-7.key", "name": "skymemory-keys-2-7-2"}
    assert made["secrets"]["keyring"] == {"external": True, "name": "skymemory-keyring-2"}
    agent = made["services"]["agent"]
    assert {"source": "keyring", "target": "keyring.json", **FOR_NOBODY} in agent["secrets"]
    assert agent["environment"]["SKYMEM_KEYRING"] == "/run/secrets/keyring.json"


def test_a_container_of_a_pod_has_its_own_keys_only(secured: Path) -> None:
    text = made_of(secured, "kubernetes")
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    sets = [document for document in documents if document["kind"] == "StatefulSet"]
    for plane, document in enumerate(sets, start=1):
        pod = document["spec"]["template"]["spec"]
        assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 65534}
        assert {volume["name"]: volume["secret"] for volume in pod["volumes"]} == {
            f"keys-{plane}-{slot}": {"secretName": f"keys-{plane}-{slot}-1", "defaultMode": 0o400} for slot in range(1, 20)
        }
        for slot, container in enumerate(pod["containers"], start=1):
            assert container["args"][-2:] == ["--keys", "/run/secrets/satellite.key"]
            assert container["volumeMounts"] == [{"name": f"keys-{plane}-{slot}", "mountPath": "/run/secrets", "readOnly": True}]
    pod = documents[-1]["spec"]["template"]["spec"]
    (agent,) = pod["containers"]
    assert agent["env"][1:] == [{"name": "SKYMEM_KEYRING", "value": "/etc/skymemory-keyring/keyring.json"}]
    assert {"name": "keyring", "secret": {"secretName": "skymemory-keyring-1", "defaultMode": 0o400}} in pod["volumes"]
    for path in (secured.parent / "keys").rglob("*.json"):
        fields = json.loads(path.read_text())
        assert (fields.get("root") or fields["pair_keys"]) not in text


@pytest.mark.parametrize("form", ["swarm", "kubernetes"])
def test_satellites_on_machines_need_a_keyring_or_a_decision(form: str, tmp_path: Path) -> None:
    (file := tmp_path / "sky.toml").write_text(FILE.read_text().replace("insecure = true", ""))
    done = skymem("compose", f"--{form}", "--constellation", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert 'allowed are security.keyring = "FILE"' in done.stderr
    assert "security.insecure = true" in done.stderr


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
