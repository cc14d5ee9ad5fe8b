"""The package's compiled libraries: where they are, and their functions as ctypes sees them."""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

NATIVE_DIR_VARIABLE: Final = "SKYMEM_NATIVE_DIR"
"""names the folder of a build whose libraries are used instead of the installed ones (development)"""
FOLDER: Final = Path(__file__).resolve().parent / "_native"
"""of what was installed with this package"""

Signatures = Mapping[str, tuple[Any, list[Any]]]
"""of each function the type of its result, and those of its arguments"""


def library_path(name: str) -> Path:
    """Where a library is.

    Raises:
        FileNotFoundError: it is not there.
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
        OSError: it is not for this machine.
        AttributeError: it is of another version, without one of these functions.
    """
    loaded = ctypes.CDLL(str(path))
    for name, (result, arguments) in signatures.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded
