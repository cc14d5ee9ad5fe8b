"""A connector beside ours, as NIXL's is: it sends a handshake of its own, and takes no other. It has no blocks."""

from dataclasses import dataclass
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorHandshakeMetadata,
    KVConnectorMetadata,
)


@dataclass
class Handshake(KVConnectorHandshakeMetadata):
    """Message from each worker to the scheduler, once."""

    port: int


class NeighbourConnector(KVConnectorBase_V1):
    """KV connector of the scheduler or of a worker."""

    def get_handshake_metadata(self) -> Handshake:
        """Return what another engine needs to fetch blocks from this worker."""
        return Handshake(port=1)

    def set_xfer_handshake_metadata(self, metadata: dict[int, KVConnectorHandshakeMetadata]) -> None:
        """Check that all messages are its own."""
        if strangers := [one for one in metadata.values() if not isinstance(one, Handshake)]:
            raise ValueError(f"NeighbourConnector expects a Handshake, not {strangers[0]}")

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Do nothing."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def wait_for_save(self) -> None:
        """Do nothing."""

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int | None, bool]:
        """Return that there are none."""
        return 0, False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Do nothing."""

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        """Return an empty message."""
        return KVConnectorMetadata()
