"""A constellation on several machines: a stack for Docker Swarm, manifests for Kubernetes; each plane is on one machine.

Neither gives containers addresses of our choice, so planes claim theirs: docker/sky-net routes them (docs/multi-host.md).
"""

import json
import os
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import NamedTuple

from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.security.constellation_keys import find_satellite_files
from skymemory.security.satellite_file import file_name, read_satellite_keys
from skymemory.sky.constellation import KEYRING_VARIABLE, ConfigError, Constellation
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.compose import KEY_FILE, PROJECT, SATELLITE, UDP_OVERHEAD, Image
from skymemory.wire.address import Satellite

PLANE = Image("plane", 8)
"""Satellites with the shell scripts that give them addresses; the memory is that of each satellite."""
AGENT = Image("agent", 16_384)
"""The agent of a ground host: its memory holds values of Redis clients, 1 GiB at most, and what it shares with engines
(docs/multi-host.md)."""
FRAME_MAX = 9000
"""Largest frame that all Ethernet switches forward."""
VXLAN_OVERHEAD = 50
RESP_PORT, LMCACHE_PORT, HTTP_PORT = 6390, 6391, 8090
ROUTES_MIB = 32
"""Memory of the process that routes addresses."""
AGENT_FILE = "/etc/skymemory/constellation.toml"
AGENT_SECRET = "skymemory-agent"
"""Secret of the swarm, or of Kubernetes: settings of agents with the password of Redis clients. Ports that Swarm publishes are
open to all machines, and those of a pod on its machine's network to all other pods there."""
SECRET_FILE = "/run/secrets/agent.toml"
AGENT_KEYRING = "skymemory-keyring"
"""Secret with the keyring of the agents, which are one host for the satellites. A number follows: that of its generation."""
KEYRING_FOLDER = "/etc/skymemory-keyring"
"""Folder of that keyring in a pod of Kubernetes."""
TENANT_FILE = "tenant.secret"
"""File of the tenant secret that all agents share: it lies beside the file that is made, and in the folder of secrets."""
TENANT_SECRET = "skymemory-tenant"
"""Secret of Kubernetes with that file."""
TENANT_FOLDER = "/etc/skymemory-tenant"
"""Folder of that secret in a pod of Kubernetes."""
NOBODY = 65_534
"""User of agents and satellites in a swarm, and of satellites in pods."""
_FOR_NOBODY = f"uid: '{NOBODY}', gid: '{NOBODY}', mode: 0400"


class KeyFiles(NamedTuple):
    """Key files of the satellites of one generation. Secrets cannot be changed, so their names have the generation."""

    folder: Path
    """Folder as seen from the folder of the file that is made."""
    generation: int

    @classmethod
    def find(cls, keyring: Path, seen_from: Path) -> "KeyFiles":
        """Return the files that belong to a keyring: the mission's, or a folder of key files.

        Raises:
            SecretFileError: There are none, or they cannot be read.
        """
        folder = find_satellite_files(keyring)
        generation = read_satellite_keys(folder / file_name(Satellite(1, 1))).generation
        return cls(Path(os.path.relpath(folder, seen_from)), generation)


def check(constellation: Constellation, overhead: int) -> None:
    """Check that other machines can be satellites of it.

    Args:
        overhead: Bytes of a frame that are not for packets.

    Raises:
        ConfigError: Machines cannot be reached at these addresses, packets do not fit any frame, or nothing protects
            the satellites.
    """
    network = IPv4Network(constellation.network.network)
    if network.is_loopback:
        raise ConfigError(
            f"network.network is {network}, this machine's own; several machines need addresses that nobody has, such as "
            '"198.18.0.0/16"'
        )
    most = FRAME_MAX - overhead - UDP_OVERHEAD
    if constellation.network.mtu > most:
        raise ConfigError(
            f"network.mtu is {constellation.network.mtu}; allowed are up to {most} with frames of {FRAME_MAX} bytes, "
            f"{1500 - overhead - UDP_OVERHEAD} with frames of 1500"
        )
    constellation.check_exposure()


def stack_file(constellation: Constellation, *, source: str, keys: KeyFiles | None = None) -> str:
    """Return the text of stack.yaml for `docker stack deploy`: a service a plane, and the agent on machines of ground hosts.

    Args:
        source: Path of the constellation file as seen from the folder of this one; ground hosts get it.
        keys: Key files of the satellites, of which a plane gets its own; None without a keyring.

    Raises:
        ConfigError: As from `check`.
    """
    check(constellation, VXLAN_OVERHEAD)
    network, slots = constellation.network, constellation.slots
    memory = slots * (constellation.satellite.store_mib + PLANE.memory_mib) + ROUTES_MIB
    listening = f"test $$(ss --no-header --listening --udp --numeric 'sport = :{network.port}' | wc -l) -eq {slots}"
    lines = [
        f"# Made by `skymem compose --swarm` from {_shown(source)}. Do not edit.",
        "# docs/multi-host.md says how machines get the labels that services ask for.",
        "",
        'version: "3.8"',
        "",
        "networks:",
        "  sky:",
        "    driver: overlay",
        "    attachable: true",
        "    driver_opts:",
        f"      com.docker.network.driver.mtu: '{network.mtu + UDP_OVERHEAD + VXLAN_OVERHEAD}'  # less VXLAN's 50",
        "",
        "configs:",
        "  constellation:",
        f"    file: {json.dumps(source, ensure_ascii=False)}",
        "",
        "secrets:",
        "  agent:  # settings with the password of Redis clients, made by hand: docs/multi-host.md",
        "    external: true",
        f"    name: {AGENT_SECRET}",
        f"  tenant: {{file: {TENANT_FILE}}}  # made beside this file, with mode 0600, by the same command",
        *_stack_secrets(constellation, keys),
        "",
        "x-plane: &plane",
        f"  image: {PLANE.name}",
        "  cap_drop: [ALL]",
        "  cap_add: [NET_ADMIN, SETUID, SETGID, SETPCAP]",
        "  read_only: true",
        "  networks: [sky]",
        "  logging: {driver: json-file, options: {max-size: 1m, max-file: '1'}}",
        f"  healthcheck: {{test: [CMD-SHELL, {json.dumps(listening)}], interval: 10s, start_period: 20s}}",
        "",
        "x-deploy: &deploy",
        "  replicas: 1",
        "  endpoint_mode: dnsrr  # the name stands for the container itself",
        f"  resources: {{limits: {{memory: {memory}M}}}}",
        "",
        "services:",
    ]
    for plane in range(1, constellation.planes + 1):
        lines += [
            f"  plane-{plane}:",
            "    <<: *plane",
            "    deploy:",
            "      <<: *deploy",
            f"      placement: {{constraints: [node.labels.plane-{plane} == true]}}",
            f'    command: ["{network.base}", "{constellation.planes}", "{plane}", "sky-plane",',
        ]
        places = [Satellite(plane, slot) for slot in range(1, slots + 1)]
        files = [None if keys is None else f"/run/secrets/{file_name(place)}" for place in places]
        words = [
            json.dumps(" ".join(skysat.arguments(constellation, place, file))) for place, file in zip(places, files, strict=True)
        ]
        lines.append(",\n".join(f"      {word}" for word in words) + "]")
        if keys is not None:
            lines.append("    secrets:")
            for place in places:
                name = f"source: keys-{place.plane}-{place.slot}, target: {file_name(place)}"
                lines.append(f"      - {{{name}, {_FOR_NOBODY}}}")
    lines += [
        "  agent:",
        f"    image: {AGENT.name}",
        "    entrypoint: [sky-net]",
        f'    command: ["{network.base}", "{constellation.planes}", "", "skymem", "agent", "--config", "{SECRET_FILE}",',
        f'      "--constellation", "{AGENT_FILE}",',
        '      "--socket", "/run/skymemory/agent.sock", "--resp-host", "0.0.0.0", "--http-host", "127.0.0.1",',
        f'      "--resp-port", "{RESP_PORT}", "--lmcache-port", "{LMCACHE_PORT}", "--http-port", "{HTTP_PORT}"]',
        "    environment:",
        f"      {SECRET_VARIABLE}: /run/secrets/{TENANT_FILE}",
        *([f"      {KEYRING_VARIABLE}: /run/secrets/keyring.json"] if keys is not None else []),
        "    cap_drop: [ALL]",
        "    cap_add: [NET_ADMIN, SETUID, SETGID, SETPCAP]",
        "    networks: [sky]",
        f"    configs: [{{source: constellation, target: {AGENT_FILE}}}]",
        "    secrets:",
        f"      - {{source: agent, target: agent.toml, {_FOR_NOBODY}}}",
        f"      - {{source: tenant, target: {TENANT_FILE}, {_FOR_NOBODY}}}",
        *([f"      - {{source: keyring, target: keyring.json, {_FOR_NOBODY}}}"] if keys is not None else []),
        "    volumes: ['/run/skymemory:/run/skymemory']",
        "    ports:",
        f"      - {{target: {RESP_PORT}, published: {RESP_PORT}, mode: host}}",
        f"      - {{target: {LMCACHE_PORT}, published: {LMCACHE_PORT}, mode: host}}",
        "    deploy:",
        "      mode: global",
        "      endpoint_mode: dnsrr",
        "      placement: {constraints: [node.labels.agent == true]}",
        f"      resources: {{limits: {{memory: {AGENT.memory_mib}M}}}}",
    ]
    return "\n".join([*lines, ""])


def _stack_secrets(constellation: Constellation, keys: KeyFiles | None) -> Iterator[str]:
    if keys is None:
        return
    yield "  keyring:  # of a host for the agents, made by hand: docs/multi-host.md"
    yield "    external: true"
    yield f"    name: {AGENT_KEYRING}-{keys.generation}"
    for place in constellation.torus.satellites():
        name = f"keys-{place.plane}-{place.slot}"
        file = json.dumps(str(keys.folder / file_name(place)), ensure_ascii=False).replace("$", "$$")
        yield f"  {name}: {{file: {file}, name: {PROJECT}-{name}-{keys.generation}}}"


def kubernetes_file(constellation: Constellation, text: str, *, source: str, generation: int | None = None) -> str:
    """Return the text of the manifests: a StatefulSet a plane with a container a satellite, the agent as a DaemonSet.

    Pods have the network of their machine: satellites' addresses are the machine's own, and reach as far as its frames.

    Args:
        text: Text of the constellation file; the agents get it.
        source: Path of that file, for the head.
        generation: Generation of the keys, which Secrets made by hand bring (docs/multi-host.md); None without a keyring.

    Raises:
        ConfigError: As from `check`.
    """
    check(constellation, 0)
    planes = range(1, constellation.planes + 1)
    parts = [_namespace(text), *(part for plane in planes for part in _plane(constellation, plane, generation))]
    head = f"# Made by `skymem compose --kubernetes` from {_shown(source)}. Do not edit.\n"
    return head + "---\n".join([*parts, _daemon_set(constellation, generation)])


def _shown(source: str) -> str:
    return source if source.isprintable() else ascii(source)


def _namespace(text: str) -> str:
    indented = "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())
    return (
        f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {PROJECT}\n"
        "  # No container is privileged. Only this level lets pods have what these need: docs/multi-host.md says why.\n"
        "  labels: {pod-security.kubernetes.io/enforce: privileged}\n"
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: constellation, namespace: {PROJECT}}}\n"
        f"data:\n  constellation.toml: |\n{indented}"
    )


def _routes(constellation: Constellation, planes: str, ready: str) -> Iterator[str]:
    """Yield the init container that goes on beside the others (Kubernetes 1.29 and later); they start when it is `ready`."""
    network = constellation.network
    yield "      initContainers:"
    yield "        - name: sky-net"
    yield f"          image: {PLANE.name}"
    yield f'          args: ["{network.base}", "{constellation.planes}", "{planes}"]'
    yield "          restartPolicy: Always"
    yield "          startupProbe:"
    yield f"            exec: {{command: [sh, -c, {json.dumps(ready)}]}}"
    yield "            periodSeconds: 1"
    yield "            failureThreshold: 60"
    yield "          securityContext:"
    yield "            runAsUser: 0  # other users get no capability that a manifest adds"
    yield "            readOnlyRootFilesystem: true"
    yield "            allowPrivilegeEscalation: false"
    yield "            capabilities: {drop: [ALL], add: [NET_ADMIN]}"
    yield f"          resources: {{requests: {{cpu: 10m, memory: {ROUTES_MIB}Mi}}, limits: {{memory: {ROUTES_MIB}Mi}}}}"


def _plane(constellation: Constellation, plane: int, generation: int | None) -> Iterator[str]:
    """Yield the headless service that gives a plane's machine its name, and the plane."""
    name = f"plane-{plane}"
    yield "\n".join(
        [
            "apiVersion: v1",
            "kind: Service",
            f"metadata: {{name: {name}, namespace: {PROJECT}}}",
            "spec:",
            "  clusterIP: None",
            "  publishNotReadyAddresses: true  # routes first",
            f"  selector: {{app: {PROJECT}, plane: '{plane}'}}",
            f"  ports: [{{name: isl, protocol: UDP, port: {constellation.network.port}}}]",
            "",
        ]
    )
    memory = constellation.satellite.store_mib + SATELLITE.memory_mib
    prefix = constellation.network.base.rsplit(".", 2)[0]
    lines = [
        "apiVersion: apps/v1",
        "kind: StatefulSet",
        f"metadata: {{name: {name}, namespace: {PROJECT}}}",
        "spec:",
        "  replicas: 1",
        f"  serviceName: {name}",
        f"  selector: {{matchLabels: {{app: {PROJECT}, plane: '{plane}'}}}}",
        "  template:",
        f"    metadata: {{labels: {{app: {PROJECT}, plane: '{plane}'}}}}",
        "    spec:",
        "      hostNetwork: true",
        "      dnsPolicy: ClusterFirstWithHostNet",
        "      automountServiceAccountToken: false",
        f"      nodeSelector: {{{PROJECT}/{name}: 'true'}}",
        "      securityContext: {seccompProfile: {type: RuntimeDefault}}"
        if generation is None
        else "      securityContext: {seccompProfile: {type: RuntimeDefault}, fsGroup: 65534}  # whom satellites' keys are for",
        *_routes(constellation, str(plane), f"ip route show table local | grep -q '^local {prefix}.{plane}.0/24'"),
        "      containers:",
    ]
    for slot in range(1, constellation.slots + 1):
        keys = None if generation is None else KEY_FILE
        words = ", ".join(f'"{word}"' for word in skysat.arguments(constellation, Satellite(plane, slot), keys))
        lines += [
            f"        - name: sat-{plane}-{slot}",
            f"          image: {SATELLITE.name}",
            f"          args: [{words}]",
            "          securityContext: {runAsNonRoot: true, runAsUser: 65534, runAsGroup: 65534, readOnlyRootFilesystem: true, "
            "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}",
            f"          resources: {{requests: {{cpu: 10m, memory: {memory}Mi}}, limits: {{memory: {memory}Mi}}}}",
        ]
        if generation is not None:
            mount = f"name: keys-{plane}-{slot}, mountPath: {os.path.dirname(KEY_FILE)}, readOnly: true"
            lines.append(f"          volumeMounts: [{{{mount}}}]")
    if generation is not None:
        lines.append("      volumes:")
        for slot in range(1, constellation.slots + 1):
            secret = f"secretName: keys-{plane}-{slot}-{generation}, defaultMode: 0400"
            lines.append(f"        - {{name: keys-{plane}-{slot}, secret: {{{secret}}}}}")
    yield "\n".join([*lines, ""])


def _daemon_set(constellation: Constellation, generation: int | None) -> str:
    prefix = constellation.network.base.rsplit(".", 2)[0]
    words = [
        "--config", SECRET_FILE, "--constellation", AGENT_FILE, "--socket", "/run/skymemory/agent.sock",
        "--resp-port", str(RESP_PORT), "--lmcache-port", str(LMCACHE_PORT),
        "--http-host", "127.0.0.1", "--http-port", str(HTTP_PORT),
    ]  # fmt: skip
    # The kubelet is on the same machine, whose network the pod has.
    probe = f"host: 127.0.0.1, port: {HTTP_PORT}"
    return "\n".join(
        [
            "apiVersion: apps/v1",
            "kind: DaemonSet",
            f"metadata: {{name: agent, namespace: {PROJECT}}}",
            "spec:",
            f"  selector: {{matchLabels: {{app: {PROJECT}-agent}}}}",
            "  template:",
            f"    metadata: {{labels: {{app: {PROJECT}-agent}}}}",
            "    spec:",
            "      hostNetwork: true",
            "      dnsPolicy: ClusterFirstWithHostNet",
            "      automountServiceAccountToken: false",
            "      securityContext: {seccompProfile: {type: RuntimeDefault}}",
            f"      nodeSelector: {{{PROJECT}/agent: 'true'}}",
            *_routes(constellation, "", f"ip route show type unreachable | grep -q '{prefix}.0.0/16'"),
            "      containers:",
            "        - name: agent",
            f"          image: {AGENT.name}",
            f"          args: [{', '.join(json.dumps(word) for word in words)}]",
            "          env:",
            f"            - {{name: {SECRET_VARIABLE}, value: {TENANT_FOLDER}/{TENANT_FILE}}}",
            *(
                []
                if generation is None
                else [f"            - {{name: {KEYRING_VARIABLE}, value: {KEYRING_FOLDER}/keyring.json}}"]
            ),
            f"          livenessProbe: {{httpGet: {{path: /healthz, {probe}}}, periodSeconds: 10}}",
            f"          readinessProbe: {{httpGet: {{path: /readyz, {probe}}}, periodSeconds: 5}}",
            "          securityContext:  # files of secrets and the folder of the machine are root's",
            "            runAsUser: 0",
            "            readOnlyRootFilesystem: true",
            "            allowPrivilegeEscalation: false",
            "            capabilities: {drop: [ALL]}",
            f"          resources: {{requests: {{cpu: 100m, memory: 128Mi}}, limits: {{memory: {AGENT.memory_mib}Mi}}}}",
            "          volumeMounts:",
            "            - {name: constellation, mountPath: /etc/skymemory, readOnly: true}",
            "            - {name: settings, mountPath: /run/secrets, readOnly: true}",
            f"            - {{name: tenant, mountPath: {TENANT_FOLDER}, readOnly: true}}",
            "            - {name: socket, mountPath: /run/skymemory}",
            *([] if generation is None else [f"            - {{name: keyring, mountPath: {KEYRING_FOLDER}, readOnly: true}}"]),
            "      volumes:",
            "        - {name: constellation, configMap: {name: constellation}}",
            f"        - {{name: settings, secret: {{secretName: {AGENT_SECRET}, defaultMode: 0400}}}}",
            f"        - {{name: tenant, secret: {{secretName: {TENANT_SECRET}, defaultMode: 0400}}}}",
            "        - {name: socket, hostPath: {path: /run/skymemory, type: DirectoryOrCreate}}",
            *([] if generation is None else [f"        - {{name: keyring, secret: {{{_keyring_secret(generation)}}}}}"]),
            "",
        ]
    )


def _keyring_secret(generation: int) -> str:
    return f"secretName: {AGENT_KEYRING}-{generation}, defaultMode: 0400"
