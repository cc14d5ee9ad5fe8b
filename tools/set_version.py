#!/usr/bin/env python3
"""Write the version of pyproject.toml into every other file that has to carry it.

usage: tools/set_version.py [--check]

The flight software is built without Python, Compose files name images by their tag, and people paste commands from the
documents: these cannot ask pyproject.toml. --check changes nothing and fails if a file has another version.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_VERSION = r"\d+\.\d+\.\d+(?:\.?(?:a|b|rc|dev)\d+)?"
_PLACES = {
    "fsw_apps/sky/fsw/inc/sky_release.h": rf'(?<=#define SKY_RELEASE "){_VERSION}',
    "CITATION.cff": rf"(?<=\nversion: ){_VERSION}",
    **dict.fromkeys(
        ("docs/**/*.md", "docker/*", "docker/kubernetes/*"),
        rf"(?:(?<=skymemory-satellite:)|(?<=skymemory-satellite-python:)|(?<=skymemory-plane:)|(?<=skymemory-agent:)){_VERSION}",
    ),
}
"""Files below the root, and the pattern of the version in them."""


def version(root: Path = ROOT) -> str:
    """Return the version that pyproject.toml states."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    stated: str = project["version"]
    return stated


def updated(root: Path) -> dict[Path, str]:
    """Return the new text of each file that has another version than pyproject.toml."""
    wanted = version(root)
    texts = {}
    for pattern, place in _PLACES.items():
        for path in sorted(path for path in root.glob(pattern) if path.is_file()):
            text = path.read_text()
            changed = re.sub(place, wanted, text)
            if changed != text:
                texts[path] = changed
    return texts


def main() -> int:
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    texts = updated(ROOT)
    for path, text in texts.items():
        if sys.argv[1:]:
            print(f"{path.relative_to(ROOT)}: not of version {version()}; run tools/set_version.py", file=sys.stderr)
        else:
            path.write_text(text)
    return 1 if sys.argv[1:] and texts else 0


if __name__ == "__main__":
    sys.exit(main())
