"""Who has an address: this process, another one, nobody."""

import errno
import os
import socket
import subprocess
import sys

from skymemory.common.port_holder import holder, why_not_bound

LISTEN = """
import socket, sys
taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taken.bind(("127.0.0.1", 0))
print(taken.getsockname()[1], flush=True)
sys.stdin.read()
"""


def test_another_program_is_named_with_its_state_folder() -> None:
    environment = {**os.environ, "SKYMEM_STATE": "/somewhere/else"}
    command = [sys.executable, "-c", LISTEN]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        port = int(child.stdout.readline())
        who = holder("udp", "127.0.0.1", port)
        assert who.endswith(f"(pid {child.pid}, SKYMEM_STATE=/somewhere/else)")
        assert holder("udp", "127.0.0.2", port) == holder("tcp", "127.0.0.1", port) == ""
        taken = OSError(errno.EADDRINUSE, "Address already in use")
        assert why_not_bound(taken, "udp", "127.0.0.1", port) == f"Address already in use ({who} has it)"
        assert why_not_bound(OSError(errno.EACCES, "Permission denied"), "udp", "127.0.0.1", port) == "Permission denied"
        child.communicate()
    assert holder("udp", "127.0.0.1", port) == ""


def test_a_socket_for_all_addresses_has_each() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        assert f"(pid {os.getpid()}" in holder("tcp", "127.0.0.1", port)
        assert f"(pid {os.getpid()}" in holder("tcp", "0.0.0.0", port)
