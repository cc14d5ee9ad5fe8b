"""Settings of the agent from a file, the environment and flags. If several set an option, the last of these counts."""

import difflib
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from skymemory.common.toml_lines import find_line
from skymemory.sky.constellation import ConfigError

ENVIRONMENT: Final = "SKYMEM_AGENT"
"""Prefix of each setting's variable; an underscore and the name in capitals follow."""


@dataclass(frozen=True)
class AgentSettings:
    """Settings of one agent; names are those of the file."""

    socket: Path
    """Path of the engines' socket."""
    constellation: Path | None = None
    """Constellation file; None: the constellation that `skymem up` started, as it comes and goes."""
    replay: Path | None = None
    """State folder whose `skymem replay` the window follows; None: this user's."""
    resp_port: int | None = None
    """Port of Redis clients; None: not served."""
    lmcache_port: int | None = None
    """Port of LMCache 0.5's client; None: not served."""
    resp_host: str = "127.0.0.1"
    """Address of Redis clients and LMCache."""
    resp_password: str | None = None
    """Password of Redis clients and LMCache; None: none."""
    resp_users: Path | None = None
    """File of further users of Redis clients; None: none."""
    tenant_secret_file: Path | None = None
    """File of the tenant secret; None: the constellation's default secret of this user."""
    http_port: int | None = None
    """Port of health, metrics and the page; None: not served."""
    http_host: str = "127.0.0.1"
    log_level: str = "info"
    """Least level that is logged."""
    log_json: bool = False
    """One JSON object in each line of the log."""


def load_file(path: Path) -> dict[str, Any]:
    """Return the settings that a TOML file names. Values are checked where flags are.

    Raises:
        ConfigError: No TOML, or a setting that does not exist; with the file and its line.
        OSError: The file cannot be read.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    known = [field.name for field in fields(AgentSettings)]
    mistakes = []
    for name, value in found.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            mistakes.append(f"{path}:{find_line(text, (name,))}: {name} is unknown{hint}; allowed are {', '.join(known)}")
        elif isinstance(value, bool) != (name == "log_json") or not isinstance(value, str | int):
            allowed = "not true or false" if name == "log_json" else "no text and no whole number"
            mistakes.append(f"{path}:{find_line(text, (name,))}: {name} is {allowed}")
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return found
