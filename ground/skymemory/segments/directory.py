"""Manifests of segments in a store, and the list of those that this host put.

The manifest is deleted last. So an expiry that ended in the middle can be repeated.
"""

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, NoReturn

import msgspec

from skymemory.common.state_folder import default_folder
from skymemory.segments.errors import (
    ExpiredSegmentError,
    HiddenSegmentError,
    SegmentError,
    SilentSkyError,
    UnknownSegmentError,
)
from skymemory.segments.host_list import HostList, Segment
from skymemory.segments.keys import SegmentKeys, is_segment_id
from skymemory.segments.manifest import MANIFEST_BYTES_MAX, NAME_CHARACTERS_MAX, Manifest, ManifestKeys, shown_time
from skymemory.store.block_store import BlockStore
from skymemory.store.deletions import is_old
from skymemory.store.keyvalue import now_unix_ms
from skymemory.store.results import REPLACED, SILENCE, GetResult, PutResult, Status
from skymemory.store.versions import Versions
from skymemory.wire.envelope import BlockError

_log = logging.getLogger(__name__)

TTL_S_MAX: Final = 366 * 86_400
"""Most seconds until a segment expires."""
_SWEPT_MAX: Final = 4
"""Expired segments that one sweep looks at, at most."""


class Held(NamedTuple):
    """A manifest and its version."""

    manifest: Manifest
    version: int


class SegmentDirectory:
    """The manifests of one tenant, or of one scope of it. Thread-safe. No model is needed."""

    def __init__(
        self,
        store: BlockStore,
        *,
        tenant_secret: bytes | None = None,
        scope: bytes = b"",
        folder: Path | None = None,
        versions: Versions | None = None,
        clock: Callable[[], int] = now_unix_ms,
    ) -> None:
        """Use a store, which the caller closes.

        Args:
            store: The store.
            tenant_secret: Secret of the tenant; the store's by default.
            scope: Name of one of several users of a tenant, who never find each other's segments.
            folder: Folder of the host's list; the state folder by default.
            versions: Versions that this host knows; by default those of its list.
            clock: Returns the time in milliseconds since 1970.

        Raises:
            SecretFileError: The store has no tenant secret, and none can be made.
        """
        self._store = store
        self._clock = clock
        self.tenant_secret = store.tenant_secret if tenant_secret is None else tenant_secret
        self.scope = scope
        self._keys = ManifestKeys(self.tenant_secret, scope)
        self._list = HostList((folder or default_folder()) / f"segments-{self._keys.public_name[:8].hex()}.json")
        self._sweeping = Lock()
        self._versions = Versions() if versions is None else versions
        for segment in self._list.read():
            self._versions.stored(self._keys.key_of(segment.id), segment.version)

    def keys(self, manifest: Manifest, variant: bytes = b"") -> SegmentKeys:
        """Return the keys of a segment's blocks, or of those of the variant of a name."""
        return manifest.keys(self.tenant_secret, self.scope, variant)

    def all_keys(self, manifest: Manifest) -> list[SegmentKeys]:
        """Return the keys of all that the sky has of a segment: of itself, if it was computed alone, and of its variants."""
        names = [*([b""] if manifest.is_alone else []), *(variant.name for variant in manifest.variants)]
        return [self.keys(manifest, name) for name in names]

    def key_of(self, segment: str) -> bytes:
        """Return the key of the manifest of an id, 32 bytes."""
        return self._keys.key_of(segment)

    def listed(self) -> list[Segment]:
        """Return the segments that this host put and that have not expired by its clock. The sky is not asked."""
        return [segment for segment in self._list.read() if not segment.is_over(self._clock())]

    def get(self, segment: str) -> Held:
        """Return the manifest of an id.

        Raises:
            UnknownSegmentError: The sky has none, or only one that is damaged or older than one that this host knows.
            ExpiredSegmentError: The segment has expired by this host's clock. Nothing is purged, for the clock may be wrong.
            SilentSkyError: Nobody answered.
            HiddenSegmentError: Satellites that may have one do not answer. The segment stays in this host's list.
            SegmentError: The manifest is longer than is allowed, or cannot be fetched for another reason.
        """
        [found] = self.get_all([segment])
        if isinstance(found, SegmentError):
            raise found
        return found

    def get_all(self, segments: Sequence[str]) -> list[Held | SegmentError]:
        """Return the manifests of several ids, or the errors of `get` in their places. The sky is asked for all at once."""
        asked = [segment for segment in segments if is_segment_id(segment)]
        results = dict(zip(asked, self._fetched(asked), strict=True))
        found: list[Held | SegmentError] = []
        for segment in segments:
            try:
                found.append(self._valid(segment, self._held(segment, results.get(segment))))
            except SegmentError as error:
                found.append(error)
        return found

    def entry(self, held: Held) -> Segment:
        """Return all of a segment but its tokens."""
        manifest = held.manifest
        return Segment(
            id=manifest.id,
            tokens=len(manifest.tokens),
            size_bytes=manifest.size_bytes + sum(variant.size_bytes for variant in manifest.variants),
            sinks=manifest.sinks,
            codec=manifest.codec,
            created_unix_ms=manifest.created_unix_ms,
            expires_unix_ms=manifest.expires_unix_ms,
            display_name=manifest.display_name,
            beginning=beginning_of(self.keys(manifest)),
            version=held.version,
            fingerprint=manifest.fingerprint.hex(),
        )

    def put(self, manifest: Manifest) -> Segment:
        """Store a manifest in place of an older one, and list the segment.

        Raises:
            SilentSkyError: Nobody answered.
            SegmentError: The manifest could not be stored; the message says why.
        """
        version = self._put(manifest.id, lambda version: self._packed(manifest, version))
        segment = self.entry(Held(manifest, version))
        self._list.add(segment)
        return segment

    def update(
        self, segment: str, *, ttl_s: float | None = None, expires_unix_s: float | None = None, display_name: str | None = None
    ) -> Segment:
        """Change when a segment expires, or its name. What is None stays.

        Args:
            segment: The id.
            ttl_s: Seconds from now until it expires; infinity if it never shall.
            expires_unix_s: Unix time at which it expires, instead of `ttl_s`.
            display_name: A name for people.

        Raises:
            SegmentError: As from `get` and `put`, or an argument is out of range.
        """
        if ttl_s is not None and expires_unix_s is not None:
            raise SegmentError("both ttl_s and expires_unix_s are given; allowed is one of them")
        if expires_unix_s is not None:
            ttl_s = expires_unix_s - self._clock() / 1000
            if not ttl_s > 0:
                raise SegmentError(f"the time of expiry {expires_unix_s:g} is past; allowed are Unix times from now on")
        changes: dict[str, object] = {}
        if ttl_s is not None:
            changes["expires_unix_ms"] = self.expiry(ttl_s)
        if display_name is not None:
            changes["display_name"] = checked_name(display_name)
        held = self.get(segment)
        return self.put(msgspec.structs.replace(held.manifest, **changes))

    def expire(self, segment: str) -> bool:
        """Delete the manifest of a segment and purge its blocks, also of one that has expired or is of another model.

        Blocks that it has in common with other segments of this host's list stay.

        Returns:
            True if all satellites confirmed that the blocks are purged. Else they are at all others, and a silent one may come
            back with chunks, which are of no use to anybody.

        Raises:
            UnknownSegmentError: The sky has no such segment.
            SilentSkyError: Nobody answered.
            SegmentError: The manifest could not be deleted; the message says why.
        """
        manifest = self._read(segment).manifest
        others = self._shared(segment, beginning_of(self.keys(manifest)))
        keys = [key for keys in self.all_keys(manifest) for key in keys.all]
        blocks = self._store.purge([key for key in keys if key not in others])
        if self._store.silent:
            raise SilentSkyError(f"segment {segment} may still be there: nobody answers; try again")
        self._put(segment, partial(self._keys.pack_deletion, segment), "deleted")
        self._list.remove(segment)
        return blocks.confirmed

    def sweep(self) -> int:
        """Expire some of the segments of this host's list that are over by its clock, and return their number.

        Each takes some round trips, so a call looks at four at most, and does nothing while another one goes on. Whether another
        host has prolonged one is looked up first. Errors are logged and do not raise.
        """
        if not self._sweeping.acquire(blocking=False):
            return 0
        try:
            return self._sweep([one for one in self._list.read() if one.is_over(self._clock())][:_SWEPT_MAX])
        finally:
            self._sweeping.release()

    def _sweep(self, over: list[Segment]) -> int:
        swept = 0
        for listed in over:
            try:
                held = self._read(listed.id)
                if held.manifest.is_over(self._clock()):
                    self.expire(listed.id)
                    swept += 1
                else:
                    self._list.add(self.entry(held))
            except UnknownSegmentError:
                if self._store.knows_absence:
                    self._list.remove(listed.id)
            except SegmentError as error:
                _log.info("a segment that has expired stays for now: %s", error)
        return swept

    def expiry(self, ttl_s: float | None) -> int:
        """Return the time at which what is put now expires, in milliseconds since 1970; 0 if it never does.

        Args:
            ttl_s: Seconds until then; None or infinity for never.

        Raises:
            SegmentError: The time is out of range.
        """
        if ttl_s is None or ttl_s == math.inf:
            return 0
        if not 0 < ttl_s <= TTL_S_MAX:
            raise SegmentError(
                f"the time to live is {ttl_s:,.12g} s; allowed are more than 0 and up to {TTL_S_MAX:,} s, or infinity"
            )
        return self._clock() + math.ceil(ttl_s * 1000)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _valid(self, segment: str, held: Held) -> Held:
        now_unix_ms = self._clock()
        if held.manifest.is_over(now_unix_ms):
            raise ExpiredSegmentError(
                f"segment {segment} expired at {shown_time(held.manifest.expires_unix_ms)}; this host's clock says "
                f"{shown_time(now_unix_ms)}"
            )
        return held

    def _fetched(self, segments: Sequence[str]) -> list[GetResult]:
        keys = [self._keys.key_of(segment) for segment in segments]
        return self._store.get(keys, block_bytes_max=MANIFEST_BYTES_MAX) if keys else []

    def _read(self, segment: str) -> Held:
        """Return the manifest of an id, also of a segment that has expired."""
        return self._held(segment, self._fetched([segment])[0] if is_segment_id(segment) else None)

    def _held(self, segment: str, result: GetResult | None) -> Held:
        """Return the manifest of an id from what was fetched, also of a segment that has expired."""
        if result is None:
            raise UnknownSegmentError(f"{segment[:80]!r} is no id of a segment")
        key = result.key
        if result.status is Status.BAD_LENGTH:  # another host has replaced it by a longer or shorter one
            [found] = self._store.find([key], fresh=True)
            [result] = self._store.get([found.entry or key], block_bytes_max=MANIFEST_BYTES_MAX)
        if result.data is None:
            self._raise_missing(segment, result)
        opened = self._store.opened(result, lambda data: self._unpacked(segment, data))
        if opened is None:
            self._store.purge([key])
            raise UnknownSegmentError(f"the manifest of segment {segment} was damaged and is purged; put the segment again")
        manifest, version = opened
        if not self._versions.seen(key, version):
            raise UnknownSegmentError(
                f"an older manifest of segment {segment} came than this host knows: it was put back, and is not used"
            )
        if manifest is None:
            if is_old(version, 1000 * self._clock()):
                self._store.forget([result])
            self._raise_absent(segment)
        return Held(manifest, version)

    def _raise_missing(self, segment: str, result: GetResult) -> NoReturn:
        if result.status in SILENCE:
            raise SilentSkyError(f"segment {segment} cannot be looked up: nobody answers ({result.status})")
        if result.status is Status.TOO_LARGE:
            self._store.purge([result.key])  # nobody of the tenant made it
            raise SegmentError(f"the manifest of segment {segment} had more than {MANIFEST_BYTES_MAX:,} bytes, and is purged")
        if result.status is not Status.MISS:
            raise SegmentError(f"the manifest of segment {segment} cannot be fetched: {result.status}")
        if not self._knows_absence(segment, result.key):
            raise HiddenSegmentError(f"segment {segment} cannot be looked up: satellites that may hold it do not answer")
        self._raise_absent(segment)

    def _raise_absent(self, segment: str) -> NoReturn:
        self._list.remove(segment)
        raise UnknownSegmentError(f"the sky has no segment {segment}: it has expired or was evicted, or there never was one")

    def _knows_absence(self, segment: str, key: bytes) -> bool:
        """Return True if a manifest that was not found is not there, and not merely where nobody answers."""
        if any(one.id == segment for one in self._list.read()):
            self._store.find([key], fresh=True)  # before this host forgets what it put, it asks who answers now
        return self._store.knows_absence

    def _unpacked(self, segment: str, data: bytearray) -> tuple[Manifest | None, int] | None:
        """Return the manifest in a block, or None if it was deleted, and its version. None: the block is damaged."""
        try:
            manifest, version = self._keys.unpack(segment, data)
        except BlockError as error:
            _log.info("the manifest of segment %s cannot be used: %s", segment, error)
            return None
        if manifest is not None and self.keys(manifest).id != segment:
            _log.warning("the manifest of segment %s is of other tokens", segment)
            return None
        return manifest, version

    def _packed(self, manifest: Manifest, version: int) -> bytearray:
        block = self._keys.pack(manifest, version)
        if len(block) > MANIFEST_BYTES_MAX:
            raise SegmentError(f"the manifest has {len(block):,} bytes; allowed are {MANIFEST_BYTES_MAX:,}")
        return block

    def _put(self, segment: str, pack: Callable[[int], bytearray], done: str = "stored") -> int:
        """Store the block that `pack` returns for a version, in place of an older one, and return the version.

        Raises:
            SilentSkyError: Nobody answered.
            SegmentError: It could not be stored; the message says why.
        """
        key = self._keys.key_of(segment)
        version = self._versions.choose(key)
        [result] = put_all(self._store, [(key, pack(version))])
        if result.status in REPLACED and (above := self._versions.choose_above(key, result.held_version)) is not None:
            version = above
            [result] = put_all(self._store, [(key, pack(version))])
        check_stored(segment, [result], done)
        self._versions.stored(key, version)
        return version

    def _shared(self, segment: str, beginning: str) -> set[bytes]:
        """Return the keys of blocks of other segments of this host's list that begin like a segment."""
        shared: set[bytes] = set()
        for other in self.listed():
            if other.beginning == beginning and other.id != segment:
                try:
                    manifest = self._read(other.id).manifest
                    shared.update(key for keys in self.all_keys(manifest) for key in keys.all)
                except SegmentError as error:
                    _log.info("a segment that begins like %s is not spared: %s", segment, error)
        return shared


def beginning_of(keys: SegmentKeys) -> str:
    """Return a name for a segment's first block, which segments that share blocks have in common."""
    return keys.of_group(0)[0][:8].hex()


def checked_name(display_name: str) -> str:
    """Return a display name.

    Raises:
        SegmentError: It is too long, or has a control character, which would reach the terminals of others.
    """
    if not display_name.isprintable():
        raise SegmentError("the display name has a character that cannot be printed, such as a line break")
    if len(display_name) > NAME_CHARACTERS_MAX:
        raise SegmentError(f"the display name has {len(display_name)} characters; allowed are {NAME_CHARACTERS_MAX}")
    return display_name


def put_all(store: BlockStore, items: list[tuple[bytes, bytearray]]) -> list[PutResult]:
    """Store blocks.

    Raises:
        SegmentError: The store cannot hold one of them.
    """
    try:
        return store.put(items)
    except ValueError as error:
        raise SegmentError(f"the sky cannot hold the segment: {error}") from error


def check_stored(segment: str, results: list[PutResult], done: str = "stored") -> None:
    """Check that blocks were stored. `done` says what they stand for.

    Raises:
        SilentSkyError: Nobody answered.
        SegmentError: One could not be stored for another reason.
    """
    failed = [result.status for result in results if not result.ok]
    if failed and set(failed) <= SILENCE:
        raise SilentSkyError(f"segment {segment} is not {done}: nobody answers ({failed[0]})")
    if failed:
        raise SegmentError(f"segment {segment} is not {done}: {next(one for one in failed if one not in SILENCE)}")
