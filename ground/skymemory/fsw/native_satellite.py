"""The compiled satellite, `libskymem_fsw.so`. `skymemory.fsw.structures` has its functions, made from `testbed/skysat/skyx.h`.

ctypes releases the interpreter's lock during each call, so a thread that waits on a pipe stops no other.
"""

import ctypes
from functools import cache
from pathlib import Path

from skymemory.fsw.structures import SIGNATURES

LIBRARY = Path(__file__).resolve().parent.parent / "_native" / "libskymem_fsw.so"


@cache
def library() -> ctypes.CDLL:
    """Load the library, once.

    Raises:
        FileNotFoundError: The package was not built.
    """
    if not LIBRARY.exists():
        raise FileNotFoundError(f"{LIBRARY} is missing: the package was not built; `pip install .` builds it")
    loaded = ctypes.CDLL(str(LIBRARY))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded
