"""The commands of a document, as a reader pastes them."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path


def commands(document: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each command in the code of a document: lines with four blanks, and fences marked `sh`."""
    fence: str | None = None
    begun: tuple[int, str] | None = None
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if (mark := re.match(r"\s*```(\w*)", line)) is not None:
            fence = mark[1] if fence is None else None
            continue
        is_code = fence == "sh" if fence is not None else line.startswith("    ")
        text = line if fence is not None else line[4:]
        if begun is None and not (is_code and text.strip()):
            continue
        begun = (number, text) if begun is None else (begun[0], f"{begun[1]}\n{text}")
        if is_whole(begun[1]):
            yield begun
            begun = None
    assert begun is None, f"{document.name}:{begun}"


def is_whole(text: str) -> bool:
    """Return True if a shell does not wait for more lines."""
    return (
        not text.endswith("\\") and subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0
    )
