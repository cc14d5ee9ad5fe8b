"""The connector with a file of the keys under which it stores, for tests that replace those blocks."""

import os
from pathlib import Path
from typing import Any

from skymemory.engines.vllm import connector
from skymemory.engines.vllm.identity import shard_key

RECORD = "VLLM_RECORD"


class SkyMemoryConnector(connector.SkyMemoryConnector):
    """A connector that writes one key a line in hexadecimal digits: keys of all workers, each in the order of the tokens."""

    def bind_connector_metadata(self, connector_metadata: Any) -> None:
        with Path(os.environ[RECORD]).open("a", encoding="ascii") as file:
            for plan in connector_metadata.plan.saves:
                print(shard_key(plan.key, self._worker.shard).hex(), file=file)
        super().bind_connector_metadata(connector_metadata)
