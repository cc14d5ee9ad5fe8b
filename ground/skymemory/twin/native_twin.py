"""The compiled twin, `libskymem_twin.so`. `skymemory.twin.structures` has its structures and functions, made from `twin.h`."""

import ctypes
from functools import cache
from typing import Final

from skymemory.common import compiled
from skymemory.twin.structures import SIGNATURES

_LIBRARY: Final = "libskymem_twin.so"


@cache
def library() -> ctypes.CDLL:
    """Load the library, once.

    Raises:
        FileNotFoundError: The package was not built.
    """
    return compiled.load(compiled.library_path(_LIBRARY), SIGNATURES)
