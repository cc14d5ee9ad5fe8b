"""The package's compiled parts: paths of libraries, their functions through ctypes, and the extension module."""

import ctypes
import os
from collections.abc import Mapping
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
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


@cache
def extension(name: str) -> Any:
    """Return an extension module, which is loaded once.

    Raises:
        FileNotFoundError: The module is missing.
        ImportError: The module is not for this machine, or this Python.
    """
    spec = spec_from_file_location(f"skymemory._native.{name}", library_path(f"{name}.abi3.so"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
