"""Words that tell this machine from others, and this boot of it. Needs only the standard library."""

import os
from pathlib import Path
from typing import Final

_MACHINE_ID: Final = ("etc/machine-id", "var/lib/dbus/machine-id")
_HOST_NAME_FILE: Final = "/etc/hostname"
"""File that container engines mount from a folder of the container."""


def boot_id() -> str:
    """Return the id of this boot of the kernel, which containers have in common with their machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def machine_identity(root: Path = Path("/")) -> str:
    """Return words that no other machine or container has, and that this one has again after a restart.

    Machines may have one host name, and those that were cloned one machine id. Containers of an image have its machine id, and
    may have one host name.

    Args:
        root: Folder above /etc and /proc.
    """
    found = (_text(root / one).strip() for one in _MACHINE_ID)
    return "\0".join((os.uname().nodename, next((one for one in found if one), ""), _container(root)))


def _container(root: Path) -> str:
    """Return the engine's path of this container's host name; '' outside of containers."""
    for line in _text(root / "proc/self/mountinfo").splitlines():
        _, _, _, source, target, *_ = line.split(" ")
        if target == _HOST_NAME_FILE:
            return source
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
