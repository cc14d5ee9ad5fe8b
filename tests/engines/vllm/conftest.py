"""An agent over real satellites, and vLLM engines. All of a test module share the sky and the agent."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from skymemory.testbed.local import LocalConstellation
from support.vllm_engine import BLOCK_TOKENS, CONNECTOR, Agent, Engine, as_toml


@pytest.fixture(scope="module")
def agent(sky: LocalConstellation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent over `sky`."""
    folder = tmp_path_factory.mktemp("agent")
    file = folder / "constellation.toml"
    file.write_text(as_toml(sky.constellation.model_dump(mode="json", by_alias=True, exclude_none=True)))
    agent = Agent(file, folder)
    agent.start()
    yield agent
    agent.stop()


@pytest.fixture(scope="module")
def start_engine(model: Path, agent: Agent) -> Iterator[Callable[..., Engine]]:
    """Start a vLLM: `start_engine(block_size=64, extra={...})`, arguments of `LLM` and of kv_connector_extra_config.

    Scheduler and worker are processes of their own, as users have them. An engine that others are compared with is one process.
    """
    with ExitStack() as stack:

        def start(
            *, extra: dict[str, Any] | None = None, recording: bool = False, is_one_process: bool = False, **settings: Any
        ) -> Engine:
            # What is shown here does not depend on how busy the machine is, and so small a model computes fast
            patient = {"always_fetch": True, "lookup_timeout_s": 60, "load_timeout_s": 120}
            connector = {**CONNECTOR, "kv_connector_extra_config": patient | (extra or {})}
            if recording:
                connector["kv_connector_module_path"] = "support.vllm_recording"
            given = {
                "model": str(model),
                "dtype": "float32",
                "max_model_len": 1024,
                "block_size": BLOCK_TOKENS,
                "enforce_eager": True,
                "disable_log_stats": False,
                "num_gpu_blocks_override": 16,
                "kv_transfer_config": connector,
                **settings,
            }
            engine = Engine(agent.folder, given, is_one_process)
            stack.callback(engine.close)
            engine.wait()
            return engine

        yield start
