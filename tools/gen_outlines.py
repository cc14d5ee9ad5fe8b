#!/usr/bin/env python3
"""Make the outlines of all commands, from which `skymem --help` and completion are answered without importing the commands.

usage: tools/gen_outlines.py [--check]      --check: write nothing, exit 1 if the generated file differs
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "skymemory.cli"
GENERATED = ROOT / "ground" / "skymemory" / "cli" / "outlines.py"
NOTE = '''"""Outlines of all commands, for help and completion. Made by tools/gen_outlines.py from the commands; do not edit."""

from typing import Any, Final

OUTLINES: Final[dict[str, Any]] = '''


def generated() -> str:
    """Return the text of the generated module."""
    sys.path.insert(0, str(ROOT / "ground"))
    sys.modules[f"{PACKAGE}.outlines"] = SimpleNamespace(OUTLINES={})  # type: ignore[assignment]  # it may be missing, or broken
    lazy, sections = import_module(f"{PACKAGE}.lazy"), import_module(f"{PACKAGE}.main").SECTIONS
    places = {name: place.split(":") for section in sections.values() for name, place in section.items()}
    commands = {name: getattr(import_module(f"{PACKAGE}.{module}"), attribute) for name, (module, attribute) in places.items()}
    return NOTE + _literal({name: lazy.outline(one) for name, one in commands.items()}, "") + "\n"


def _literal(value: object, indent: str) -> str:
    """Return a value as Python has it, with one parameter of a command a line, so that changes of several people merge."""
    inner = indent + "    "
    if isinstance(value, dict) and "names" not in value:
        lines = [f"{inner}{json.dumps(name)}: {_literal(one, inner)},\n" for name, one in value.items()]
        return "{\n" + "".join(lines) + indent + "}"
    if isinstance(value, list) and value:
        return "[\n" + "".join(f"{inner}{_literal(one, inner)},\n" for one in value) + indent + "]"
    return json.dumps(value, ensure_ascii=False).replace(": true", ": True").replace(": null", ": None")


def main() -> int:
    """Write the generated module, or check it."""
    text = generated()
    if "--check" not in sys.argv[1:]:
        GENERATED.write_text(text)
        return 0
    if GENERATED.is_file() and GENERATED.read_text() == text:
        return 0
    print(f"{GENERATED.relative_to(ROOT)} is not what the commands say; run tools/gen_outlines.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
