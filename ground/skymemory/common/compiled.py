"""The package's compiled libraries: their paths, and their functions through ctypes."""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

NATIVE_DIR_VARIABLE: Final = "SKYMEM_NATIVE_DIR"
"""Variable that names the folder of a build, whose libraries are used instead of the installed ones (development)."""
FOLDER: Final = Path(__file__).resolve().parents[1] / "_native"
"""Folder of the libraries that were installed with this package."""

Signatures = Mapping[str, tuple[Any, list[Any]]]
"""For each function the type of its result and the types of its arguments."""


def library_path(name: str) -> Path:
    """Return the path of a library.

    Raises:
        FileNotFoundError: The library is missing.
    """
    path = Path(os.environ.get(NATIVE_DIR_VARIABLE) or FOLDER) / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: the package was not built; `pip install .` builds it,"
            f" or {NATIVE_DIR_VARIABLE} names the folder of a build"
        )
    return path


def load(path: Path, signatures: Signatures) -> ctypes.CDLL:
    """Load a library.

    Raises:
        OSError: The library is not for this machine.
        AttributeError: The library is of another version, without one of these functions.
    """
    loaded = ctypes.CDLL(str(path))
    for name, (result, arguments) in signatures.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded
