"""Fetch one file of a project on PyPI with nothing but a Python interpreter, by the index's page of the project."""

from __future__ import annotations

import hashlib
import re
import urllib.parse
import urllib.request

INDEX = "https://pypi.org/simple/"
TIMEOUT_S = 60


class FetchError(Exception):
    """A file that the index does not list, or whose content is another than it should be."""


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:
            return bytes(reply.read())
    except OSError as error:
        raise FetchError(f"{url} cannot be read: {error}") from error


def fetch(project: str, name: str, sha256: str | None = None, index: str = INDEX) -> bytes:
    """Return the content of a file.

    Args:
        project: Name of the project, as the index spells it.
        name: Name of the file.
        sha256: Digest that the content must have, in hexadecimal; None for the digest that the index names.
        index: Address of the index.

    Raises:
        FetchError: The index does not list the file, or the content has another digest.
    """
    page = f"{index}{project}/"
    link = re.search(rf'href="([^"#]*/{re.escape(name)})#sha256=([0-9a-f]{{64}})"', _get(page).decode())
    if link is None:
        raise FetchError(f"{page} does not list {name}")
    url = urllib.parse.urljoin(page, link[1])
    data = _get(url)
    if hashlib.sha256(data).hexdigest() != (sha256 or link[2]):
        raise FetchError(f"{url} does not have the digest that {'is pinned here' if sha256 else f'{page} names'}")
    return data
