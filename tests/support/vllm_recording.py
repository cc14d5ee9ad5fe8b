"""The connector, and a file that tells under which keys it stores: for tests that put something else there."""

import os
from pathlib import Path
from typing import Any

from skymemory.engines.vllm import connector
from skymemory.engines.vllm.identity import shard_key

RECORD = "VLLM_RECORD"


class SkyMemoryConnector(connector.SkyMemoryConnector):
    """One key in hexadecimal digits a line, in the order of the tokens; of all workers, each in this order."""

    def bind_connector_metadata(self, connector_metadata: Any) -> None:
        with Path(os.environ[RECORD]).open("a", encoding="ascii") as file:
            for plan in connector_metadata.plan.saves:
                print(shard_key(plan.key, self._worker._shard).hex(), file=file)
        super().bind_connector_metadata(connector_metadata)
