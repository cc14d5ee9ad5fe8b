#!/usr/bin/env python3
"""Put monocypher.c and monocypher.h into a folder: the build's source of BLAKE2b and ChaCha20-Poly1305.

usage: tools/fetch_monocypher.py DIRECTORY

They come from the source package of pymonocypher on PyPI. Their digests are pinned here. Files that are there already and have
these digests are kept, so only the first build needs a network.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
import tempfile
from pathlib import Path

from pypi_file import INDEX, FetchError, fetch

PROJECT = "pymonocypher"
PACKAGE = "pymonocypher-4.0.3.5"
PACKAGE_SHA256 = "b6f96c4fa56212a7c13aee8fc27a89d7531b622ce8aabbd6e82a9d2e93071d71"
FILES = {
    "monocypher.c": "57eb914fc88136119bd41655cccb8c250048bf54d470540625186f8ab16f64be",
    "monocypher.h": "c494da712122da7ff679fdcf318a5317e84972b6c950fe9d896212947797facd",
}
"""SHA-256 of the files, by name."""


def is_right(path: Path) -> bool:
    """Return true if a file is there with the digest that is pinned for its name."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == FILES[path.name]


def put(folder: Path, index: str = INDEX) -> bool:
    """Put the files into a folder; return false if they were there.

    Builds that run at once may do so for one folder: each file appears as a whole.

    Raises:
        FetchError: The package cannot be fetched, or is another one.
        OSError: The folder cannot be written.
    """
    if all(is_right(folder / name) for name in FILES):
        return False
    package = fetch(PROJECT, f"{PACKAGE}.tar.gz", PACKAGE_SHA256, index)
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for name in FILES:
            member = archive.extractfile(f"{PACKAGE}/{name}")
            assert member is not None, "the digest of the package says what is in it"
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
                part.write(member.read())
            Path(part.name).chmod(0o644)
            os.replace(part.name, folder / name)
            assert is_right(folder / name), "the digest of the package says what is in it"
    return True


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        put(Path(sys.argv[1]))
    except (FetchError, OSError) as error:
        print(f"fetch_monocypher: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
