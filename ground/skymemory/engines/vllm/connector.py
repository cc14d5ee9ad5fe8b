"""`SkyMemoryConnector`: the KV connector of vLLM (interface V1, as in vLLM 0.32).

    vllm serve MODEL --block-size 128 --kv-transfer-config '{"kv_connector":"SkyMemoryConnector",
        "kv_connector_module_path":"skymemory.engines.vllm","kv_role":"kv_both","kv_load_failure_policy":"recompute"}'

vLLM makes one for its scheduler and one in each worker. Loads go on beside the engine's steps, and blocks that do not come are
computed. Saves are copied out within the step and sent after it. Nothing here waits for the sky.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import vllm
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorWorkerMetadata,
)

from skymemory.agent.client import AgentClient, EngineInfo
from skymemory.common.machine import memory_bytes
from skymemory.engines.framing import BlockFormat
from skymemory.engines.tenant import engine_secret
from skymemory.engines.vllm import identity
from skymemory.engines.vllm.adapters import Adapters, watch_loads
from skymemory.engines.vllm.events import BlockEvents
from skymemory.engines.vllm.plans import Identity, Layout, Saved, StepPlan
from skymemory.engines.vllm.scheduler import AgentSession, SchedulerSide
from skymemory.engines.vllm.settings import ConnectorSettings, UnsupportedError, check
from skymemory.engines.vllm.statistics import SkyMemoryMetrics, SkyMemoryStatistics
from skymemory.engines.vllm.tally import Tally
from skymemory.engines.vllm.transfer_room import TransferRoom, room_for
from skymemory.engines.vllm.worker import WorkerSide
from skymemory.engines.weights import files_digest, weight_files

_log = logging.getLogger(__name__)
_vllm_log = logging.getLogger("vllm.skymemory")
"""Logger below vLLM's own: of other loggers vLLM shows only warnings."""

_ASKING_ARENA_BYTES = 1 << 16
"""Arena of the scheduler's client, which fetches nothing."""


@dataclass
class StepMetadata(KVConnectorMetadata):  # type: ignore[misc]  # vLLM is not installed where types are checked
    """Message from the scheduler to the workers, in each step."""

    plan: StepPlan


@dataclass
class WorkerReport(KVConnectorWorkerMetadata):  # type: ignore[misc]  # vLLM is not installed where types are checked
    """Message from the workers to the scheduler, after a step.

    Layouts come this way, not by vLLM's handshake of connectors. Of several connectors `MultiConnector` takes the handshake of
    one only, and gives it to all.
    """

    saved: Saved = field(default_factory=Saved)
    layouts: dict[int, Layout] = field(default_factory=dict)
    """Layout of each worker's part of a block, by rank, in steps whose plan asks for it."""

    def aggregate(self, other: KVConnectorWorkerMetadata) -> WorkerReport:
        """Add the message of another worker to this one, and return it."""
        self.saved.add(other.saved)
        self.layouts |= other.layouts
        return self


class SkyMemoryConnector(KVConnectorBase_V1):  # type: ignore[misc]  # vLLM is not installed where types are checked
    """KV connector of the scheduler or of a worker, as `role` says."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        """Check how vLLM was started, and make the side that `role` names.

        Raises:
            UnsupportedError: VLLM was started in a way that cannot be served; the message names the option.
            WeightsError: The model is not in files of this machine.
        """
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        check(vllm_config, kv_cache_config)
        self._settings = ConnectorSettings.of(self._kv_transfer_config.kv_connector_extra_config)
        self._tally = Tally()
        self._events = BlockEvents()
        told = vllm_config.kv_events_config
        self._publishes = told is not None and told.enable_kv_cache_events
        self._replicas = max(1, getattr(kv_cache_config, "kv_tp_replicas", 1))
        self._tensor_parallel = vllm_config.parallel_config.tensor_parallel_size
        self._shards = self._tensor_parallel // self._replicas
        self._scheduler: SchedulerSide | None = None
        self._worker: WorkerSide | None = None
        self._errors: set[int] = set()
        if role == KVConnectorRole.WORKER:
            from vllm.distributed.parallel_state import get_tensor_model_parallel_rank

            self._rank = get_tensor_model_parallel_rank()
            self._worker = WorkerSide(
                rank=self._rank,
                shards=self._shards,
                replicas=self._replicas,
                blocks=kv_cache_config.num_blocks,
                block_tokens=vllm_config.cache_config.block_size,
                layout_name=str(kv_cache_config.kv_cache_layout),
                open_client=self._open_client,
                room_for=self._room,
                load_timeout_s=self._settings.load_timeout_s,
                codec=self._settings.codec,
                tally=self._tally,
            )
            return
        if self._kv_transfer_config.kv_load_failure_policy != "recompute":
            _log.warning(
                'kv_load_failure_policy is "%s": a block that does not come fails its request; with "recompute" it is computed',
                self._kv_transfer_config.kv_load_failure_policy,
            )
        if self._settings.codec != "raw":
            _vllm_log.warning(
                "SkyMemory: codec %s: blocks that come from the sky are not those that were computed to the last bit, and tokens "
                "may differ from those without a cache; such blocks never meet exact ones",
                self._settings.codec,
            )
        model, load = vllm_config.model_config, vllm_config.load_config
        dummy = str(load.load_format) == "dummy"
        weights = [] if dummy else weight_files(model.model, model.revision, load.download_dir)
        self._secret = engine_secret(self._settings.tenant_secret_file, self._settings.socket)
        self._layouts: dict[int, Layout] = {}
        self._opening: Future[AgentSession] = Future()
        self._digests = ThreadPoolExecutor(1, thread_name_prefix="skymemory-digest")
        self._weights_digest = self._digests.submit(files_digest, weights)
        self._scheduler = self._made_scheduler()

    # --- worker ---------------------------------------------------------------------------------------------------------------

    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        """Take the paged cache."""
        assert self._worker is not None
        self._worker.register(kv_caches)

    def bind_connector_metadata(self, connector_metadata: KVConnectorMetadata) -> None:
        """Begin a step."""
        super().bind_connector_metadata(connector_metadata)
        assert self._worker is not None
        self._worker.begin(connector_metadata.plan)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Begin this step's loads."""
        assert self._worker is not None
        self._worker.load()

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Do nothing: a request is computed only after all its blocks have come."""

    def save_kv_layer(self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **kwargs: Any) -> None:
        """Copy out a layer of the blocks that this step has filled."""
        assert self._worker is not None
        self._worker.layer(layer_name)

    def wait_for_save(self) -> None:
        """End the step: all layers are copied out, and the rest goes on beside the next steps."""
        assert self._worker is not None
        # vLLM calls this as well after the step has raised; then the contents of the blocks are unknown.
        self._worker.end(computed=sys.exc_info()[0] is None)

    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str] | None, set[str] | None]:
        """Return the requests whose loads have ended. Those of finished requests, which were aborted, end at once."""
        assert self._worker is not None
        self._worker.abort(finished_req_ids)
        finished, self._errors = self._worker.loaded()
        return None, finished or None

    def get_block_ids_with_load_errors(self) -> set[int]:
        """Return the blocks that did not come; called after `get_finished` in each step."""
        errors, self._errors = self._errors, set()
        return errors

    def build_connector_worker_meta(self) -> WorkerReport | None:
        """Return what became of blocks that were to be stored, and this worker's layout if the step asks for it."""
        assert self._worker is not None
        saved = self._worker.saved()
        layouts = {self._rank: self._worker.layout} if self._worker.is_layout_wanted else {}
        return WorkerReport(saved or Saved(), layouts) if saved or layouts else None

    # --- scheduler ------------------------------------------------------------------------------------------------------------

    @property
    def requires_kv_delivery(self) -> bool:
        """Return False: a block that is not stored is only a miss later."""
        return False

    def on_new_request(self, request: Any) -> None:
        """Begin to track a request."""
        assert self._scheduler is not None
        self._scheduler.add(request)

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int | None, bool]:
        """See `SchedulerSide.matched`."""
        assert self._scheduler is not None
        return self._scheduler.matched(request, num_computed_tokens)

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """Plan a load."""
        assert self._scheduler is not None
        self._scheduler.allocated(request, blocks.get_block_ids()[0], num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> StepMetadata:
        """Return the tasks of the workers in this step."""
        assert self._scheduler is not None
        state = scheduler_output.kv_connector_block_state

        def places(request: str) -> list[int] | None:
            block_ids = state.get_block_ids(request) if state is not None else None
            return None if block_ids is None else block_ids[0]

        return StepMetadata(self._scheduler.plan(scheduler_output.num_scheduled_tokens, places))

    def update_connector_output(self, connector_output: Any) -> None:
        """Take in what the workers did."""
        assert self._scheduler is not None
        report = connector_output.kv_connector_worker_meta
        if report is not None:
            self._learn_layouts(report.layouts)
            self._scheduler.saved(report.saved)
        self._scheduler.loaded(connector_output.finished_recving or (), connector_output.invalid_block_ids)

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        """Let the request's memory go at once: its blocks were copied out."""
        assert self._scheduler is not None
        self._scheduler.remove(request, request.num_computed_tokens)
        return False, None

    def reset_cache(self) -> bool:
        """Start new keys, for this engine alone: the weights have changed, or old blocks are not to be found."""
        assert self._scheduler is not None
        self._scheduler.forget(os.urandom(32))
        return True

    # --- both -----------------------------------------------------------------------------------------------------------------

    def get_kv_connector_stats(self) -> SkyMemoryStatistics | None:
        """Return counts and times since the last call."""
        data = self._tally.take()
        return SkyMemoryStatistics(data=data) if data else None

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> SkyMemoryStatistics:
        """Return statistics that were taken elsewhere."""
        return SkyMemoryStatistics(data=data or {})

    @classmethod
    def build_prom_metrics(
        cls, vllm_config: Any, metric_types: Any, labelnames: list[str], per_engine_labelvalues: dict[int, list[object]]
    ) -> SkyMemoryMetrics:
        """Return the metrics for vLLM's own /metrics."""
        return SkyMemoryMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)

    def shutdown(self) -> None:
        """Leave the agent."""
        if self._worker is not None:
            self._worker.close()
        if self.role == KVConnectorRole.SCHEDULER:
            self._digests.shutdown(wait=False, cancel_futures=True)
            if self._opening.done() and self._opening.exception() is None:
                self._opening.result().client.close()

    def _made_scheduler(self) -> SchedulerSide:
        adapters = Adapters(self._digests)
        if self._vllm_config.lora_config is not None:
            from vllm.v1.engine.core import EngineCore  # EngineCore makes this object

            watch_loads(EngineCore, adapters)
        transfer = self._kv_transfer_config
        return SchedulerSide(
            block_tokens=self._vllm_config.cache_config.block_size,
            prompt_tokens_max=self._vllm_config.model_config.max_model_len,
            shards=self._shards,
            loads=transfer.is_kv_consumer,
            saves=transfer.is_kv_producer,
            always_fetch=self._settings.always_fetch,
            lookup_timeout_s=self._settings.lookup_timeout_s,
            open_session=self._opening,
            adapter_digest=adapters.digest,
            tally=self._tally,
            events=self._events,
        )

    def _learn_layouts(self, layouts: dict[int, Layout]) -> None:
        """Begin to open the session once the layouts of all workers are known."""
        assert self._scheduler is not None
        self._layouts |= layouts
        if self._scheduler.room is not None or len(self._layouts) < self._tensor_parallel:
            return
        known = [self._layouts[rank] for rank in sorted(self._layouts)]
        room = self._scheduler.room = self._room(known[0].format.block_bytes)
        if any(layout.format != known[0].format for layout in known):
            self._fail(
                UnsupportedError(
                    f"SkyMemoryConnector: --tensor-parallel-size {self._tensor_parallel} gives the workers unequal parts of a "
                    "block; supported are equal parts"
                )
            )
            return
        _vllm_log.info(
            "SkyMemory: blocks of %.1f MB; %d MiB of memory a worker, for %d of them on their way to the sky; a step fills %d",
            room.block_bytes / 1e6,
            room.arena_bytes >> 20,
            room.saves,
            room.step_blocks,
        )
        if room.lack:
            _vllm_log.warning("SkyMemory: %s", room.lack)
        self._digests.submit(self._open_session, known[0].format, [layout.facts for layout in known])

    def _open_session(self, block_format: BlockFormat, workers: list[Any]) -> None:
        try:
            known = identity.facts(self._vllm_config, self._kv_cache_config, vllm.__version__, workers)
            root = identity.root_key(block_format, known, self._weights_digest.result(), self._secret)
            tokens, dtype = block_format.share(self._shards)
            who = Identity(root, str(self._vllm_config.model_config.model), tokens, dtype)
            self._opening.set_result(AgentSession(who, self._open_client(who, block_format.block_bytes, _ASKING_ARENA_BYTES)))
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        _log.error("SkyMemory could not be opened, and the engine goes on without it", exc_info=error)
        self._opening.set_exception(error)

    def _room(self, block_bytes: int) -> TransferRoom:
        """Return the memory of each worker for blocks of so many bytes. Workers and scheduler compute the same."""
        parallel = self._vllm_config.parallel_config
        return room_for(
            block_bytes,
            self._vllm_config.cache_config.block_size,
            self._vllm_config.scheduler_config.max_num_batched_tokens,
            workers=getattr(parallel, "local_world_size", parallel.tensor_parallel_size),
            arena_mib=self._settings.arena_mib,
            memory_bytes=memory_bytes(),
        )

    def _open_client(self, who: Identity, block_bytes: int, arena_bytes: int) -> AgentClient:
        info = EngineInfo(
            name="vllm",
            model=who.model,
            root=who.root,
            block_tokens=who.block_tokens,
            block_bytes=block_bytes,
            dtype=who.dtype,
        )
        path = Path(self._settings.socket) if self._settings.socket is not None else None
        return AgentClient(path, engine=info, arena_bytes=arena_bytes)

    def take_events(self) -> Iterable[Any]:
        """Return the blocks that came to the sky or went, for followers of vLLM's KV events (`--kv-events-config`)."""
        taken = self._events.take()
        return self._events.for_vllm(taken, self._vllm_config.cache_config.block_size) if taken and self._publishes else ()


with suppress(ValueError):  # the name is known already
    # MultiConnector finds the class by its name when it reads statistics.
    KVConnectorFactory.register_connector(SkyMemoryConnector.__name__, "skymemory.engines.vllm", SkyMemoryConnector.__name__)
