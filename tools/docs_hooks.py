"""Hooks of MkDocs for `make docs`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parent.parent
_OUT = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Show a link to a file outside the documents as the file's name: the site does not have that file.

    Raises:
        PluginError: The file does not exist.
    """

    def name(link: re.Match[str]) -> str:
        if not ROOT.joinpath(link[2]).exists():
            raise PluginError(f"{page.file.src_uri}: {link[0]}: there is no such file")
        return link[1] if link[1] != link[2] else f"`{link[2]}`"

    return _OUT.sub(name, markdown)
