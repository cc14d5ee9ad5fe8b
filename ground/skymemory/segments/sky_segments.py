"""`SkySegments`: segments in the sky, which any host of the tenant can link into its prompts.

    segments = SkySegments(store, SegmentModel(fingerprint, geometry, vocabulary), codec="raw")
    put = segments.put(tokens, lambda: linker.compute(tokens), ttl_s=3600)
    with segments.fetch([segments.get(put.id)]) as fetch:
        [parts] = fetch.parts                    # sources of layers
    segments.expire(put.id)

The manifest is stored last. So a put that ended in the middle left blocks that the next one finds.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from skymemory.common.progress import Progress, no_progress
from skymemory.prompt.blocks import dtype_name
from skymemory.prompt.codecs import Codec, CodecError, get_codec
from skymemory.prompt.statistics import ExpectReport
from skymemory.segments.directory import Held, SegmentDirectory, check_stored, checked_name, put_all
from skymemory.segments.errors import HiddenSegmentError, OtherModelError, SegmentError, SilentSkyError
from skymemory.segments.groups import layer_groups, layout_of
from skymemory.segments.host_list import Segment
from skymemory.segments.keys import SegmentKeys, segment_root
from skymemory.segments.manifest import BEHIND_MAX, SINKS_MAX, TOKENS_MAX, VARIANTS_MAX, Manifest, Variant
from skymemory.segments.remembered import RememberedManifests
from skymemory.segments.segment_blocks import SegmentCoder
from skymemory.segments.segment_fetch import SegmentFetch, WantedSegment
from skymemory.store.block_store import BlockStore
from skymemory.store.keyvalue import now_unix_ms
from skymemory.store.results import FindResult, Status
from skymemory.store.versions import Versions

if TYPE_CHECKING:
    from torch import Tensor

    from skymemory.prompt.huggingface import Geometry

_log = logging.getLogger(__name__)

_RUN_BYTES: Final = 1 << 24
"""Bytes of blocks that go to the store in one run, which bounds the memory that a put needs."""
_ATTEMPTS: Final = 6
"""Attempts to store blocks that other hosts put with other bits."""
_WAIT_S: Final = 0.05
"""Seconds, at most, that the second attempt waits; the following ones wait up to 3, 7, ... times as long."""


@dataclass(frozen=True, slots=True)
class SegmentModel:
    """All of a model that segments depend on."""

    fingerprint: Callable[[], bytes]
    """Returns the digest of model and tokenizer, 32 bytes, as they are now; raises ValueError if it cannot be told."""
    geometry: Geometry
    """Shape and dtype of keys and values."""
    vocabulary: int
    """Number of token ids, which start at 0."""


@dataclass(frozen=True, slots=True)
class Context:
    """Context behind which a variant of a segment was computed."""

    before: Sequence[int]
    """Token ids of all that stood before it."""
    segments: Sequence[str]
    """Ids of the segments among them, in order."""


class SkySegments:
    """Segments of one model in a store. Thread-safe."""

    def __init__(
        self,
        store: BlockStore,
        model: SegmentModel,
        *,
        codec: str | Codec | None = None,
        block_tokens: int | None = None,
        tenant_secret: bytes | None = None,
        scope: bytes = b"",
        folder: Path | None = None,
        versions: Versions | None = None,
        clock: Callable[[], int] = now_unix_ms,
    ) -> None:
        """Use a store, which the caller closes.

        Args:
            store: The store.
            model: The model.
            codec: A codec or its name; the store's setting by default.
            block_tokens: Tokens of a block; the store's setting by default.
            tenant_secret: Secret of the tenant; the store's by default.
            scope: Name of one of several users of a tenant, who never find each other's segments.
            folder: Folder of the host's list; the state folder by default.
            versions: Versions that this host knows; by default those of its list.
            clock: Returns the time in milliseconds since 1970.

        Raises:
            ValueError: The model has one layer, there is no such codec, or it cannot take the model's tensors.
            SecretFileError: The store has no tenant secret, and none can be made.
        """
        self._store = store
        self._model = model
        chosen = store.settings.codec if codec is None else codec
        self._codec = get_codec(chosen) if isinstance(chosen, str) else chosen
        self._block_tokens = store.settings.block_tokens if block_tokens is None else block_tokens
        if self._block_tokens < 1:
            raise ValueError(f"block_tokens is {self._block_tokens}; allowed are 1 and more")
        self._groups = layer_groups(model.geometry.layers)
        self._codec.layer_bytes(model.geometry.block_shape(1), model.geometry.dtype)
        self._clock = clock
        self.directory = SegmentDirectory(
            store, tenant_secret=tenant_secret, scope=scope, folder=folder, versions=versions, clock=clock
        )
        self._remembered = RememberedManifests()

    def put(
        self,
        tokens: Sequence[int],
        tensors: Tensor | Callable[[], Tensor],
        *,
        sinks: int = 0,
        context: Context | None = None,
        ttl_s: float | None = None,
        display_name: str | None = None,
        progress: Progress = no_progress,
    ) -> Segment:
        """Store a segment, or a variant of it. What the sky has of it is not stored twice.

        A segment that is there, because another host or an earlier call put it, keeps its name unless another is given, and
        expires at the later of both times. If it has as many variants as it may have, another one is not stored.

        Args:
            tokens: Token ids.
            tensors: Tensor [layers - 1, 2, kv_heads, tokens, head_dim] of layers 1 and up: keys before rotation, and values.
                Instead a function that returns it, which is called only if the sky lacks some of it.
            sinks: Tokens BOS before the segment when it was computed.
            context: Context of a variant; None for the segment that was computed alone.
            ttl_s: Seconds until it expires; it never does by default.
            display_name: A name for people.
            progress: Called with the number of blocks stored and of blocks to store, each of one group of layers.

        Raises:
            SilentSkyError: Nobody answered.
            SegmentError: An argument is out of range, the sky cannot hold the segment, or the model was changed meanwhile.
            ValueError: The model cannot be digested now.
        """
        self._check(tokens, sinks)
        expires_unix_ms = self.directory.expiry(ttl_s)
        name = None if display_name is None else checked_name(display_name)
        fingerprint = self._model.fingerprint()
        [keys] = self._keys([tokens], sinks, fingerprint)
        self.directory.sweep()
        [before] = self._known([keys.id])
        size, variants = (0, []) if before is None else (before.size_bytes, before.variants)
        if context is None:
            size = self._put_blocks(keys, self._found(keys.id, keys.all), tensors, fingerprint, progress)
        else:
            variants = self._put_variant(keys, variants, context, tensors, fingerprint)
        return self._put_manifest(keys, before, size, variants, fingerprint, sinks, expires_unix_ms, name)

    def put_all(
        self,
        contents: Sequence[Sequence[int]],
        tensors: Callable[[int], Tensor],
        *,
        sinks: int = 0,
        ttl_s: float | None = None,
        progress: Progress = no_progress,
    ) -> list[Segment]:
        """Store several segments as `put` does each. What the sky has of all of them is looked up at once.

        Args:
            contents: Token ids of each segment.
            tensors: Function that returns the tensor of a segment, given its number; it is called as in `put`.
            sinks: Tokens BOS before each segment when it was computed.
            ttl_s: Seconds until they expire; they never do by default.
            progress: Called with the number of segments stored and of all.

        Raises:
            SilentSkyError: Nobody answered.
            SegmentError: As from `put`. The segments before the one at fault are stored.
            ValueError: The model cannot be digested now.
        """
        for tokens in contents:
            self._check(tokens, sinks)
        expires_unix_ms = self.directory.expiry(ttl_s)
        fingerprint = self._model.fingerprint()
        each = self._keys(contents, sinks, fingerprint)
        numbers = {keys.id: number for number, keys in reversed(list(enumerate(each)))}  # equal ones are stored once
        different = [each[number] for number in sorted(numbers.values())]
        if not different:
            return []
        self.directory.sweep()
        known = self._known([keys.id for keys in different])
        looked_up = self._found(different[0].id, [key for keys in different for key in keys.all])
        found = {one.key: one for one in looked_up}
        stored: dict[str, Segment] = {}
        for keys, before in zip(different, known, strict=True):
            tensor = partial(tensors, numbers[keys.id])
            size = self._put_blocks(keys, [found[key] for key in keys.all], tensor, fingerprint, no_progress)
            variants = [] if before is None else before.variants
            stored[keys.id] = self._put_manifest(keys, before, size, variants, fingerprint, sinks, expires_unix_ms, None)
            progress(len(stored), len(different))
        return [stored[keys.id] for keys in each]

    def _put_manifest(
        self,
        keys: SegmentKeys,
        before: Manifest | None,
        size: int,
        variants: list[Variant],
        fingerprint: bytes,
        sinks: int,
        expires_unix_ms: int,
        name: str | None,
    ) -> Segment:
        if before is not None:
            expires_unix_ms = (
                0 if 0 in (before.expires_unix_ms, expires_unix_ms) else max(before.expires_unix_ms, expires_unix_ms)
            )
            name = before.display_name if name is None else name
        manifest = Manifest(
            id=keys.id,
            fingerprint=fingerprint,
            layout=layout_of(self._groups),
            codec=self._codec.name,
            block_tokens=self._block_tokens,
            groups=len(self._groups),
            sinks=sinks,
            tokens=list(keys.tokens),
            size_bytes=size,
            variants=variants,
            created_unix_ms=self._clock(),
            expires_unix_ms=expires_unix_ms,
            display_name=name or "",
        )
        segment = self.directory.put(manifest)
        self._remembered.add(manifest)
        return segment

    def put_variant(self, manifest: Manifest, tensors: Callable[[], Tensor], context: Context) -> Segment | None:
        """Store a variant of a segment that is there; its name and expiry stay.

        Args:
            manifest: The segment.
            tensors: Function that returns keys and values of the variant, as `put` takes them.
            context: Context of the variant.

        Returns:
            The segment; None if it has this variant, or as many as it may have.

        Raises:
            OtherModelError: The segment is of another model, tokenizer, codec or block size.
            SegmentError: As from `put`.
        """
        self._check_model(manifest)
        keys = self.directory.keys(manifest)
        variants = self._put_variant(keys, manifest.variants, context, tensors, manifest.fingerprint)
        if len(variants) == len(manifest.variants):
            return None
        changed = msgspec.structs.replace(manifest, variants=variants)
        segment = self.directory.put(changed)
        self._remembered.add(changed)
        return segment

    def get(self, segment: str) -> Manifest:
        """Return the manifest of an id. If the sky is silent, one that was seen before counts.

        Raises:
            OtherModelError: The segment is of another model, tokenizer, codec or block size.
            SegmentError: As from `SegmentDirectory.get`.
        """
        return self.get_all([segment])[segment]

    def get_all(self, segments: Collection[str]) -> dict[str, Manifest]:
        """Return the manifests of some ids as `get` does. The sky is asked for all at once, which saves round trips."""
        manifests = {}
        for segment, found in self.look_up(segments).items():
            if isinstance(found, SegmentError):
                raise found
            manifests[segment] = found
        return manifests

    def look_up(self, segments: Collection[str]) -> dict[str, Manifest | SegmentError]:
        """Return the manifests of some ids, or the errors of `get` in their places. The sky is asked for all at once."""
        ids = list(segments)
        manifests: dict[str, Manifest | SegmentError] = {}
        for segment, found in zip(ids, self.directory.get_all(ids), strict=True):
            try:
                manifests[segment] = manifest = self._known_or_raise(segment, found)
                self._check_model(manifest)
                self._remembered.add(manifest)
            except SegmentError as error:
                manifests[segment] = error
        return manifests

    def remembered(self, segments: Collection[str]) -> dict[str, Manifest]:
        """Return what this program has seen of some ids, as far as it can be used now. The sky is not asked."""
        found = {}
        for segment in segments:
            manifest = self._remembered.get(segment)
            with suppress(ValueError):
                if manifest is not None and not manifest.is_over(self._clock()):
                    self._check_model(manifest)
                    found[segment] = manifest
        return found

    def segment(self, segment: str) -> Segment:
        """Return the segment of an id, without its tokens.

        Raises:
            SegmentError: As from `get`.
        """
        held = self.directory.get(segment)
        self._check_model(held.manifest)
        self._remembered.add(held.manifest)
        return self.directory.entry(held)

    def listed(self) -> list[Segment]:
        """Return this host's segments (`SegmentDirectory.listed`)."""
        return self.directory.listed()

    def update(
        self, segment: str, *, ttl_s: float | None = None, expires_unix_s: float | None = None, display_name: str | None = None
    ) -> Segment:
        """Change when a segment expires, or its name (`SegmentDirectory.update`)."""
        changed = self.directory.update(segment, ttl_s=ttl_s, expires_unix_s=expires_unix_s, display_name=display_name)
        self._remembered.forget(segment)
        return changed

    def expire(self, segment: str) -> bool:
        """Delete a segment, and return True if all satellites confirmed (`SegmentDirectory.expire`)."""
        confirmed = self.directory.expire(segment)
        self._remembered.forget(segment)
        return confirmed

    def find(self, manifest: Manifest) -> list[bool]:
        """Return for each block whether the sky has it. Only the first group of layers is asked for.

        Raises:
            OtherModelError: The segment is of another model, tokenizer, codec or block size.
        """
        self._check_model(manifest)
        found = self._store.find(self.directory.keys(manifest).of_group(0))
        return [one.entry is not None for one in found]

    def fetch(
        self,
        manifests: Sequence[Manifest],
        *,
        variants: Sequence[bytes] = (),
        first_layer: int = 1,
        deadlines_s: Mapping[int, float] | None = None,
    ) -> SegmentFetch:
        """Begin to fetch segments, group by group of layers, all segments of a group before the next group.

        Failures of the sky do not raise: what does not come is missing in the result.

        Args:
            manifests: The segments in the order in which they stand in a prompt.
            variants: Name of the variant of each that is wanted, empty if it was computed alone; by default all were.
            first_layer: Lowest layer that is needed.
            deadlines_s: Seconds from now to wait for a group of layers, by its number; by default until the store gives it up.

        Raises:
            OtherModelError: A segment is of another model, tokenizer, codec or block size.
        """
        wanted = []
        for manifest, variant in zip(manifests, variants or [b""] * len(manifests), strict=True):
            self._check_model(manifest)
            keys = self.directory.keys(manifest, variant)
            wanted.append(WantedSegment(keys, SegmentCoder(keys, self._model.geometry, self._groups, self._codec)))
        return SegmentFetch(self._store, wanted, self._groups, first_layer, deadlines_s or {})

    def expect(self, manifests: Sequence[Manifest], at_s: float) -> list[ExpectReport]:
        """Place manifests and blocks of segments, with those of variants, where they are in the window when they are needed.

        Args:
            manifests: The segments.
            at_s: Unix time at which they are needed.

        Returns:
            Numbers of blocks of each segment. A block is in place if all groups of its layers are.

        Raises:
            ValueError: The time is past.
        """
        of_segments = [self.directory.all_keys(manifest) for manifest in manifests]
        wanted = [self.directory.key_of(manifest.id) for manifest in manifests]
        wanted += [key for of_one in of_segments for keys in of_one for key in keys.all]
        statuses: dict[bytes, Status] = dict.fromkeys(wanted, Status.UNANSWERED)
        try:
            statuses |= {result.key: result.status for result in self._store.prefetch(list(statuses), at_s)}
        except OSError as error:
            _log.warning("segments could not be placed for the time when they are needed: %s", error)
        return [_placed(of_one, statuses) for of_one in of_segments]

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _root(self, fingerprint: bytes, sinks: int) -> bytes:
        return segment_root(
            fingerprint=fingerprint,
            layout=layout_of(self._groups),
            codec=self._codec.name,
            block_tokens=self._block_tokens,
            sinks=sinks,
            tenant_secret=self.directory.tenant_secret,
            scope=self.directory.scope,
        )

    def _check(self, tokens: Sequence[int], sinks: int) -> None:
        if not 1 <= len(tokens) <= TOKENS_MAX:
            raise SegmentError(f"the segment has {len(tokens):,} tokens; allowed are 1 to {TOKENS_MAX:,}")
        for index, token in enumerate(tokens):
            if not 0 <= token < self._model.vocabulary:
                raise SegmentError(f"token {index} is {token}; the model has tokens 0 to {self._model.vocabulary - 1}")
        if not 0 <= sinks <= SINKS_MAX:
            raise SegmentError(f"the segment has {sinks} sinks; allowed are 0 to {SINKS_MAX}")

    def _check_model(self, manifest: Manifest) -> None:
        for what, found, wanted in (
            ("codec", manifest.codec, self._codec.name),
            ("number of tokens of a block", manifest.block_tokens, self._block_tokens),
            ("model or tokenizer", manifest.fingerprint[:4].hex(), self._model.fingerprint()[:4].hex()),
            ("layout", manifest.layout, layout_of(self._groups)),
            ("number of groups of layers", manifest.groups, len(self._groups)),
        ):
            if found != wanted:
                raise OtherModelError(
                    f"segment {manifest.id} cannot be used here: its {what} is {found}, and here it is {wanted}"
                )

    def _known_or_raise(self, segment: str, found: Held | SegmentError) -> Manifest:
        """Return the manifest that was found, or if the sky is silent, one that was seen before."""
        if isinstance(found, SilentSkyError):
            remembered = self._remembered.get(segment)
            if remembered is None or remembered.is_over(self._clock()):
                raise found
            return remembered
        if isinstance(found, SegmentError):
            self._remembered.forget(segment)
            raise found
        return found.manifest

    def _keys(self, contents: Sequence[Sequence[int]], sinks: int, fingerprint: bytes) -> list[SegmentKeys]:
        root = self._root(fingerprint, sinks)
        return [SegmentKeys(root, list(tokens), self._block_tokens, len(self._groups)) for tokens in contents]

    def _known(self, segments: Sequence[str]) -> list[Manifest | None]:
        """Return the manifests that the sky has; None: none that can be used, so a new one takes its place."""
        found = self.directory.get_all(segments)
        for one in found:
            if isinstance(one, SilentSkyError) and not isinstance(one, HiddenSegmentError):
                raise one
        return [None if isinstance(one, SegmentError) else one.manifest for one in found]

    def _found(self, segment: str, keys: Sequence[bytes]) -> list[FindResult]:
        """Return what the sky has of blocks of some segments, of which the first is named in the error."""
        found = self._store.find(keys, fresh=True)
        if self._store.silent:
            raise SilentSkyError(f"segment {segment} is not stored: nobody answers")
        return found

    def _put_variant(
        self,
        keys: SegmentKeys,
        variants: list[Variant],
        context: Context,
        tensors: Tensor | Callable[[], Tensor],
        fingerprint: bytes,
    ) -> list[Variant]:
        """Store a variant of a segment, if there is room for one more, and return all of them."""
        name = keys.variant_name(context.before)
        is_known = any(one.name == name for one in variants)
        if len(variants) == VARIANTS_MAX and not is_known:
            return variants
        of_variant = keys.of_variant(name)
        size = self._put_blocks(of_variant, self._found(keys.id, of_variant.all), tensors, fingerprint, no_progress)
        if is_known:
            return variants
        behind = list(context.segments)[-BEHIND_MAX:]
        return [*variants, Variant(name=name, behind=behind, size_bytes=size)]

    def _put_blocks(
        self,
        keys: SegmentKeys,
        found: Sequence[FindResult],
        tensors: Tensor | Callable[[], Tensor],
        fingerprint: bytes,
        progress: Progress,
    ) -> int:
        """Store the blocks that were not found, and return the bytes of all."""
        lacking = {one.key for one in found if one.entry is None}
        size = sum(one.entry.block_len for one in found if one.entry is not None)
        if not lacking:
            return size
        computed = self._checked(tensors() if callable(tensors) else tensors, len(keys.tokens))
        if self._model.fingerprint() != fingerprint:
            raise SegmentError("the model was changed while the segment was computed; put it again")
        coder = SegmentCoder(keys, self._model.geometry, self._groups, self._codec)
        items: list[tuple[bytes, bytearray]] = []
        done = 0
        for block in range(keys.blocks):
            for group in range(keys.groups):
                if (key := keys.of_group(group)[block]) in lacking:
                    try:
                        items.append((key, coder.pack(computed, block, group)))
                    except CodecError as error:
                        raise SegmentError(f"segment {keys.id} cannot be encoded: {error}") from error
                    if sum(len(data) for _, data in items) >= _RUN_BYTES:
                        size += self._put_run(keys.id, items)
                        done += len(items)
                        progress(done, len(lacking))
                        items = []
        if items:
            size += self._put_run(keys.id, items)
            progress(done + len(items), len(lacking))
        return size

    def _put_run(self, segment: str, items: list[tuple[bytes, bytearray]]) -> int:
        """Store blocks, and return their bytes.

        Another host may have put other bits under their keys, as its processor computes them. If they are whole, they count. Else
        they are purged. If both hosts are at it now, one waits longer than the other.
        """
        left = items
        for attempt in range(_ATTEMPTS):
            results = put_all(self._store, left)
            bad = {result.key for result in results if result.status is Status.BAD_KEY}
            check_stored(segment, [result for result in results if result.key not in bad])
            if bad:
                time.sleep(random.uniform(0, _WAIT_S * (2**attempt - 1)))
                bad -= {one.key for one in self._store.find(list(bad), fresh=True) if one.entry is not None}
            if not bad:
                return sum(len(data) for _, data in items)
            self._store.purge(list(bad))
            left = [(key, data) for key, data in left if key in bad]
        raise SegmentError(f"segment {segment} is not stored: other hosts put other bits of it again and again")

    def _checked(self, tensors: Tensor, tokens: int) -> Tensor:
        geometry = self._model.geometry
        wanted = (geometry.layers - 1, 2, geometry.kv_heads, tokens, geometry.head_dim)
        if tuple(tensors.shape) != wanted or tensors.dtype != geometry.dtype:
            raise SegmentError(
                f"the segment's tensor is {list(tensors.shape)} of {tensors.dtype}; wanted is {list(wanted)} of "
                f"{dtype_name(geometry.dtype)}"
            )
        return tensors.cpu()


def _placed(of_segment: list[SegmentKeys], statuses: Mapping[bytes, Status]) -> ExpectReport:
    blocks = [
        {statuses[keys.of_group(group)[block]] for group in range(keys.groups)}
        for keys in of_segment
        for block in range(keys.blocks)
    ]
    placed = sum(found == {Status.DONE} for found in blocks)
    missing = sum(Status.MISS in found for found in blocks)
    return ExpectReport(len(blocks), placed, len(blocks) - placed - missing)
