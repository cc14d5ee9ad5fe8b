"""The command `skymem`."""

from skymemory.cli.main import main

__all__ = ["main"]
