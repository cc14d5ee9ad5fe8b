"""vLLM: `--kv-transfer-config '{"kv_connector_module_path":"skymemory.engines.vllm", ...}'`, see `connector`."""

from typing import Any

__all__ = ["SkyMemoryConnector"]


def __getattr__(name: str) -> Any:
    if name == "SkyMemoryConnector":  # vLLM takes seconds to import, and most modules here do without
        from skymemory.engines.vllm.connector import SkyMemoryConnector

        return SkyMemoryConnector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
