"""A source of one constellation, for an agent's sky in the test's own process."""

from skymemory.agent.source import Serving
from skymemory.config import Constellation


class FixedSource:
    def __init__(self, constellation: Constellation) -> None:
        self._serving = Serving(constellation, None)
        self._loaded = False

    def changed(self) -> bool:
        return not self._loaded

    def load(self) -> Serving:
        self._loaded = True
        return self._serving

    def missing(self) -> str:
        return ""
