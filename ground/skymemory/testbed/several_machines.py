"""A constellation on several machines: a stack for Docker Swarm, manifests for Kubernetes; each plane is on one machine.

Neither gives containers addresses of our choice, so planes claim theirs: docker/sky-net routes them (docs/multi-host.md).
"""

import json
from collections.abc import Iterator
from ipaddress import IPv4Network

from skymemory.sky.constellation import ConfigError, Constellation
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.compose import PROJECT, SATELLITE, UDP_OVERHEAD, Image
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
"""Secret of the swarm: settings of agents with the password of Redis clients; ports that Swarm publishes are open to all
machines."""
SECRET_FILE = "/run/secrets/agent.toml"


def check(constellation: Constellation, overhead: int) -> None:
    """Check that other machines can be satellites of it.

    Args:
        overhead: Bytes of a frame that are not for packets.

    Raises:
        ConfigError: Machines cannot be reached at these addresses, or packets do not fit any frame.
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


def stack_file(constellation: Constellation, *, source: str) -> str:
    """Return the text of stack.yaml for `docker stack deploy`: a service a plane, and the agent on machines of ground hosts.

    Args:
        source: Path of the constellation file as seen from the folder of this one; ground hosts get it.

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
        words = [json.dumps(" ".join(skysat.arguments(constellation, Satellite(plane, slot)))) for slot in range(1, slots + 1)]
        lines.append(",\n".join(f"      {word}" for word in words) + "]")
    lines += [
        "  agent:",
        f"    image: {AGENT.name}",
        "    entrypoint: [sky-net]",
        f'    command: ["{network.base}", "{constellation.planes}", "", "skymem", "agent", "--config", "{SECRET_FILE}",',
        f'      "--constellation", "{AGENT_FILE}",',
        '      "--socket", "/run/skymemory/agent.sock", "--resp-host", "0.0.0.0", "--http-host", "0.0.0.0",',
        f'      "--resp-port", "{RESP_PORT}", "--lmcache-port", "{LMCACHE_PORT}", "--http-port", "{HTTP_PORT}"]',
        "    environment: {SKY_USER: '0'}  # the socket is for engines of its user: here root",
        "    cap_drop: [ALL]",
        "    cap_add: [NET_ADMIN, SETUID, SETGID, SETPCAP]",
        "    networks: [sky]",
        f"    configs: [{{source: constellation, target: {AGENT_FILE}}}]",
        "    secrets: [{source: agent, target: agent.toml, mode: 0400}]",
        "    volumes: ['/run/skymemory:/run/skymemory']",
        "    ports:",
        f"      - {{target: {RESP_PORT}, published: {RESP_PORT}, mode: host}}",
        f"      - {{target: {LMCACHE_PORT}, published: {LMCACHE_PORT}, mode: host}}",
        f"      - {{target: {HTTP_PORT}, published: {HTTP_PORT}, mode: host}}",
        "    deploy:",
        "      mode: global",
        "      endpoint_mode: dnsrr",
        "      placement: {constraints: [node.labels.agent == true]}",
        f"      resources: {{limits: {{memory: {AGENT.memory_mib}M}}}}",
    ]
    return "\n".join([*lines, ""])


def kubernetes_file(constellation: Constellation, text: str, *, source: str) -> str:
    """Return the text of the manifests: a StatefulSet a plane with a container a satellite, the agent as a DaemonSet.

    Pods have the network of their machine: satellites' addresses are the machine's own, and reach as far as its frames.

    Args:
        text: Text of the constellation file; the agents get it.
        source: Path of that file, for the head.

    Raises:
        ConfigError: As from `check`.
    """
    check(constellation, 0)
    parts = [_namespace(text), *(part for p in range(1, constellation.planes + 1) for part in _plane(constellation, p))]
    head = f"# Made by `skymem compose --kubernetes` from {_shown(source)}. Do not edit.\n"
    return head + "---\n".join([*parts, _daemon_set(constellation)])


def _shown(source: str) -> str:
    return source if source.isprintable() else ascii(source)


def _namespace(text: str) -> str:
    indented = "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())
    return (
        f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {PROJECT}\n"
        "  labels: {pod-security.kubernetes.io/enforce: privileged}  # the machine's network, and NET_ADMIN in it\n"
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
    yield "            readOnlyRootFilesystem: true"
    yield "            allowPrivilegeEscalation: false"
    yield "            capabilities: {drop: [ALL], add: [NET_ADMIN]}"
    yield f"          resources: {{requests: {{cpu: 10m, memory: {ROUTES_MIB}Mi}}, limits: {{memory: {ROUTES_MIB}Mi}}}}"


def _plane(constellation: Constellation, plane: int) -> Iterator[str]:
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
        *_routes(constellation, str(plane), f"ip route show table local | grep -q '^local {prefix}.{plane}.0/24'"),
        "      containers:",
    ]
    for slot in range(1, constellation.slots + 1):
        words = ", ".join(f'"{word}"' for word in skysat.arguments(constellation, Satellite(plane, slot)))
        lines += [
            f"        - name: sat-{plane}-{slot}",
            f"          image: {SATELLITE.name}",
            f"          args: [{words}]",
            "          securityContext: {runAsUser: 65534, runAsGroup: 65534, readOnlyRootFilesystem: true, "
            "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}",
            f"          resources: {{requests: {{cpu: 10m, memory: {memory}Mi}}, limits: {{memory: {memory}Mi}}}}",
        ]
    yield "\n".join([*lines, ""])


def _daemon_set(constellation: Constellation) -> str:
    prefix = constellation.network.base.rsplit(".", 2)[0]
    words = [
        "--constellation", AGENT_FILE, "--socket", "/run/skymemory/agent.sock", "--resp-port", str(RESP_PORT),
        "--lmcache-port", str(LMCACHE_PORT), "--http-host", "0.0.0.0", "--http-port", str(HTTP_PORT),  # noqa: S104 (the kubelet asks, and browsers)
    ]  # fmt: skip
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
            f"      nodeSelector: {{{PROJECT}/agent: 'true'}}",
            *_routes(constellation, "", f"ip route show type unreachable | grep -q '{prefix}.0.0/16'"),
            "      containers:",
            "        - name: agent",
            f"          image: {AGENT.name}",
            f"          args: [{', '.join(json.dumps(word) for word in words)}]",
            f"          livenessProbe: {{httpGet: {{path: /healthz, port: {HTTP_PORT}}}, periodSeconds: 10}}",
            f"          readinessProbe: {{httpGet: {{path: /readyz, port: {HTTP_PORT}}}, periodSeconds: 5}}",
            "          securityContext:  # the socket is for engines of its user: here root",
            "            runAsUser: 0",
            "            readOnlyRootFilesystem: true",
            "            allowPrivilegeEscalation: false",
            "            capabilities: {drop: [ALL]}",
            f"          resources: {{requests: {{cpu: 100m, memory: 128Mi}}, limits: {{memory: {AGENT.memory_mib}Mi}}}}",
            "          volumeMounts:",
            "            - {name: constellation, mountPath: /etc/skymemory, readOnly: true}",
            "            - {name: socket, mountPath: /run/skymemory}",
            "      volumes:",
            "        - {name: constellation, configMap: {name: constellation}}",
            "        - {name: socket, hostPath: {path: /run/skymemory, type: DirectoryOrCreate}}",
            "",
        ]
    )
