"""Settings of the agent: a file, the environment and flags; of what several name the later one counts."""

import difflib
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from skymemory.config import ConfigError
from skymemory.toml_lines import find_line

ENVIRONMENT: Final = "SKYMEM_AGENT"
"""each setting's variable: this, an underscore, and its name in capitals"""


@dataclass(frozen=True)
class Settings:
    """How one agent runs. Names are those of the file."""

    socket: Path
    """of engines"""
    constellation: Path | None = None
    """constellation file; None: what `skymem up` started, followed as it comes and goes"""
    replay: Path | None = None
    """state folder whose `skymem replay` the window follows; None: this user's"""
    resp_port: int | None = None
    """of Redis clients; None: not served"""
    resp_host: str = "127.0.0.1"
    resp_password: str | None = None
    """that they have to say; None: none"""
    http_port: int | None = None
    """of health, metrics and the page; None: not served"""
    http_host: str = "127.0.0.1"


def load_file(path: Path) -> dict[str, Any]:
    """The settings that a TOML file names. Values are checked where flags are.

    Raises:
        ConfigError: no TOML, or a setting that does not exist; with the file and its line.
        OSError: it cannot be read.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    known = [field.name for field in fields(Settings)]
    mistakes = []
    for name, value in found.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            mistakes.append(f"{path}:{find_line(text, (name,))}: {name} is unknown{hint}; allowed are {', '.join(known)}")
        elif isinstance(value, bool) or not isinstance(value, str | int):
            mistakes.append(f"{path}:{find_line(text, (name,))}: {name} is no text and no whole number")
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return found
