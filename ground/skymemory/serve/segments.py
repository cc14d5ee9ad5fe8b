"""Segments of the served model, in the constellation that is up. Those of each API key are apart."""

from __future__ import annotations

import logging
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock
from typing import Final

from blake3 import blake3

from skymemory.prompt.huggingface import UnsupportedModelError
from skymemory.prompt.manager import KVCManager
from skymemory.segments.errors import (
    CancelledLinkError,
    CancelledSegmentError,
    ExpiredSegmentError,
    OtherModelError,
    SilentSkyError,
    UnknownSegmentError,
)
from skymemory.segments.host_list import Segment
from skymemory.segments.layout import LaidOut, SegmentId, SegmentOrTokens
from skymemory.segments.linking import LinkReport
from skymemory.segments.manager import SegmentManager
from skymemory.segments.pieces import SINKS
from skymemory.segments.strategy import Kind, Strategy
from skymemory.serve.errors import ApiError, busy, ending
from skymemory.serve.generation import Cancelled, Finder, Found
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.seen_texts import SeenTexts
from skymemory.serve.tokens import NewSegment, PromptPiece, tokens_of

_log = logging.getLogger(__name__)

TTL_S: Final = 3600.0
"""Seconds until a segment expires if a client does not say. It is that of Gemini."""
_THREADS: Final = 4
"""Prompts whose segments are looked up or stored at once, with requests for single ones."""
_RETRY_S: Final = 5


class ServedSegments:
    """Segments of the served model. Its methods wait for the sky, and for the model. Thread-safe.

    Attributes:
        threads: Threads for these methods.
        adding: Thread for `add`: segments are computed one after the other, and who looks one up shall not wait for all of them.
    """

    def __init__(self, cache: PromptCache, strategy: str = "auto", clock: Callable[[], float] = time.monotonic) -> None:
        """Link by a strategy (`skymemory.segments.strategy`).

        Args:
            cache: The cache of prompts, whose model and sky are used.
            strategy: The strategy.
            clock: Returns the time in seconds.

        Raises:
            ValueError: There is no such strategy.
        """
        self._cache = cache
        self._strategy = Strategy.parse(strategy)
        self._sinks = SINKS if self._strategy.kind is Kind.LEGO0 else 0
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="segments")
        self.adding = ThreadPoolExecutor(1, thread_name_prefix="adding")
        self._clock = clock
        self._stopped = Event()
        self._lock = Lock()
        self._manager: tuple[KVCManager, SegmentManager] | None = None
        self._scoped: dict[bytes, SegmentManager] = {}
        self._seen: dict[bytes, SeenTexts] = {}
        """Texts that were seen before, by scope: each has as many, so that no key makes those of others be forgotten."""

    def add(
        self,
        tokens: list[int],
        scope: bytes,
        ttl_s: float,
        display_name: str,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Segment:
        """Compute a segment and store it, if the sky does not have it (`SegmentManager.add`).

        Args:
            tokens: Token ids.
            scope: Scope of the segment.
            ttl_s: Seconds until it expires.
            display_name: A name for people.
            cancelled: Tells, before each layer is computed, whether nobody waits for the segment any more.

        Raises:
            ApiError: The sky cannot take it, segments of the model cannot be linked, or `stop` was called.
            Cancelled: Nobody waits for the segment any more.
        """
        self._check(cancelled)
        with self._managed(scope) as manager:
            return self._add(manager, tokens, ttl_s, display_name, cancelled)

    def get(self, segment: str, scope: bytes) -> Segment:
        """Return the segment of an id.

        Raises:
            ApiError: There is none, it is of another model, or the sky does not tell.
        """
        with self._managed(scope) as manager:
            return manager.get(segment)

    def listed(self, scope: bytes) -> list[Segment]:
        """Return the model's segments that this host put and that have not expired.

        Raises:
            ApiError: No constellation is up, or segments of the model cannot be linked.
        """
        with self._managed(scope) as manager:
            return [segment for segment in manager.listed() if segment.fingerprint == manager.fingerprint().hex()]

    def update(
        self, segment: str, scope: bytes, *, ttl_s: float | None, expires_unix_s: float | None, display_name: str | None
    ) -> Segment:
        """Change when a segment expires, or its name (`SegmentManager.update`).

        Raises:
            ApiError: As from `get`, or an argument is out of range.
        """
        with self._managed(scope) as manager:
            manager.get(segment)  # one of another model stays as it is
            return manager.update(segment, ttl_s=ttl_s, expires_unix_s=expires_unix_s, display_name=display_name)

    def expire(self, segment: str, scope: bytes) -> None:
        """Purge a segment (`SegmentManager.expire`).

        Raises:
            ApiError: There is none, or nobody answered.
        """
        with self._managed(scope) as manager:
            if not manager.expire(segment):
                _log.warning("segment %s is purged, but not every satellite confirmed it", segment)

    # ---- prompts ------------------------------------------------------------------------------------------------------

    def lay_out(
        self,
        pieces: Sequence[PromptPiece],
        scope: bytes,
        param: str,
        *,
        check_length: Callable[[int], object] = lambda _: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> LaidOut:
        """Return the tokens of a prompt from its pieces, and where its segments stand.

        Text that is to become a segment is stored if it was seen before. Else, or if the sky does not take it, its tokens are
        computed with the prompt.

        Args:
            pieces: The pieces.
            scope: Scope of the segments.
            param: Parameter that the pieces came in.
            check_length: Called with the number of tokens before they are put together. It may raise, and so refuse the prompt.
            cancelled: Tells, before each layer of a segment that is computed, whether nobody waits for the prompt any more.

        Raises:
            ApiError: An id is unknown, has expired, is of another model or cannot be looked up now; a segment does not go with
                the strategy; or `stop` was called.
            Cancelled: Nobody waits for the prompt any more.
        """
        has_ids = any(isinstance(piece, SegmentId) for piece in pieces)
        with _told(param), self._cache.in_use() as kvc:
            if kvc is None:
                if has_ids:
                    raise _no_sky()
                return LaidOut(_plain(pieces), (), lossless=True)
            return self._laid_out(kvc, pieces, scope, check_length, cancelled)

    def finder(self, laid: LaidOut, scope: bytes, prompt_scope: bytes) -> Finder:
        """Return a function that makes the cache of a prompt.

        Args:
            laid: The prompt.
            scope: Scope of its segments.
            prompt_scope: Scope of its exact blocks.
        """

        def find(cancelled: Callable[[], bool]) -> Found:
            if cancelled():
                return Found(self._cache.engine.empty_cache(), 0)
            try:
                with self._cache.in_use() as kvc:
                    if kvc is not None:
                        self._cache.await_stored(laid.tokens, cancelled, prompt_scope)
                        made = self._of(kvc, scope).link(
                            laid, str(self._strategy), prefix_scope=prompt_scope, computes=False, cancelled=cancelled
                        )
                        report = made.report
                        if report.why:
                            _log.info("a prompt of %d tokens: %s", len(laid.tokens), report.why)
                        if report.strategy.kind is not Kind.EXACT and report.linked_tokens < _linkable(laid, report):
                            self._seen_by(scope).lack({one.id for one in laid.placed})
                        return Found(made.cache, report.prefix_tokens, report.linked_tokens, report.recomputed_tokens)
            except CancelledLinkError:
                return Found(self._cache.engine.empty_cache(), 0)
            except Exception:  # whatever it is, the prompt can be computed
                _log.exception("segments could not be linked")
            cache = self._cache.get(laid.tokens, cancelled, prompt_scope)
            return Found(cache, cache.get_seq_length())

        return find

    def stop(self) -> None:
        """Add no more segments: what would is refused from now on, also between the layers of one that is computed."""
        self._stopped.set()

    def close(self) -> None:
        """Have the threads end after the segments that they compute now, without waiting for that."""
        self.stop()
        for threads in (self.threads, self.adding):
            threads.shutdown(wait=False, cancel_futures=True)

    # ---- inside -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _managed(self, scope: bytes) -> Iterator[SegmentManager]:
        """Yield the manager of a scope's segments, and make errors about them those of the API."""
        with _told(None), self._cache.in_use() as kvc:
            if kvc is None:
                raise _no_sky()
            yield self._of(kvc, scope)

    def _of(self, kvc: KVCManager, scope: bytes) -> SegmentManager:
        with self._lock:
            if self._manager is None or self._manager[0] is not kvc:
                self._manager = (kvc, SegmentManager(kvc))
                self._scoped.clear()
                self._seen.clear()
                if why := self._manager[1].why_not:
                    _log.warning("segments are computed with their prompts: %s", why)
            if scope not in self._scoped:
                self._scoped[scope] = self._manager[1].scoped(scope)
            return self._scoped[scope]

    def _seen_by(self, scope: bytes) -> SeenTexts:
        with self._lock:
            return self._seen.setdefault(scope, SeenTexts(clock=self._clock))

    def _laid_out(
        self,
        kvc: KVCManager,
        pieces: Sequence[PromptPiece],
        scope: bytes,
        check_length: Callable[[int], object],
        cancelled: Callable[[], bool],
    ) -> LaidOut:
        """Add what is to become a segment, and lay out all."""
        manager, seen, strategy = self._of(kvc, scope), self._seen_by(scope), str(self._strategy)
        new = {_digest(piece): piece for piece in pieces if isinstance(piece, NewSegment)}
        if new and not self._may_link(manager):  # a segment would help nobody
            new.clear()
        again = {digest: piece for digest, piece in new.items() if seen.see(digest)}
        segments = {digest: seen.segment(digest) for digest in again}
        lacking = [digest for digest, segment in segments.items() if not segment]
        if lacking and (named := [piece for piece in pieces if isinstance(piece, SegmentId)]):
            manager.lay_out(named, strategy)  # what is refused is so before anything is computed
        stored: set[bytes] = set()
        while True:
            for digest in lacking:
                self._check(cancelled)
                segments[digest] = self._stored(manager, seen, digest, again[digest], cancelled)
            stored.update(lacking)
            laid = manager.lay_out([_with_id(piece, segments) for piece in pieces], strategy, check_length=check_length)
            placed = {one.id for one in laid.placed}
            lacking = [one for one, segment in segments.items() if segment and segment not in placed and one not in stored]
            if not lacking or kvc.store.silent:
                return laid
            _log.info("%d segments of a prompt are added again", len(lacking))  # they may have been evicted

    def _may_link(self, manager: SegmentManager) -> bool:
        try:
            return manager.may_link(str(self._strategy))
        except Exception:  # whatever it is, the prompt can be computed
            _log.exception("segments are computed with their prompt")
            return False

    def _check(self, cancelled: Callable[[], bool]) -> None:
        """Raise if segments are not wanted any more, by anybody or by who waits for one."""
        if self._stopped.is_set():
            raise ending()
        if cancelled():
            raise Cancelled

    def _add(
        self, manager: SegmentManager, tokens: list[int], ttl_s: float, display_name: str, cancelled: Callable[[], bool]
    ) -> Segment:
        def is_unwanted() -> bool:
            return self._stopped.is_set() or cancelled()

        try:
            return manager.add(tokens, ttl_s, self._sinks, display_name, cancelled=is_unwanted)
        except CancelledSegmentError:
            raise (ending() if self._stopped.is_set() else Cancelled()) from None

    def _stored(
        self,
        manager: SegmentManager,
        seen: SeenTexts,
        digest: bytes,
        piece: NewSegment,
        cancelled: Callable[[], bool],
    ) -> str:
        """Store a segment, and return its id; empty if the sky does not take it."""
        try:
            added = self._add(manager, piece.tokens, TTL_S, "", cancelled)
        except (ApiError, Cancelled):
            raise
        except ValueError as error:
            _log.info("a segment of %d tokens is computed with its prompt: %s", len(piece.tokens), error)
            return ""
        except Exception:  # the memory may have run out; the prompt is computed in pieces
            _log.exception("a segment of %d tokens is computed with its prompt", len(piece.tokens))
            return ""
        seen.stored(digest, added.id, TTL_S / 2)
        return added.id


@contextmanager
def _told(param: str | None) -> Iterator[None]:
    """Make errors about segments those of the API."""
    try:
        yield
    except (UnknownSegmentError, ExpiredSegmentError) as error:
        raise ApiError(str(error), status=404, param=param, code="cached_content_not_found") from error
    except OtherModelError as error:
        raise ApiError(str(error), status=409, param=param, code="other_model") from error
    except SilentSkyError as error:
        raise busy(str(error), "sky_silent", _RETRY_S, 503) from error
    except UnsupportedModelError as error:
        raise ApiError(f"segments of this model cannot be linked: {error}", param=param, code="unsupported_model") from error
    except ValueError as error:
        raise ApiError(str(error), param=param) from error


def _no_sky() -> ApiError:
    return busy("no constellation is up, so there are no segments", "no_sky", _RETRY_S, 503)


def _plain(pieces: Sequence[PromptPiece]) -> list[int]:
    return [token for piece in pieces for token in tokens_of(piece)]


def _linkable(laid: LaidOut, report: LinkReport) -> int:
    """Return the tokens of segments behind the exact prefix. The last token of a prompt is left to the generator."""
    end = len(laid.tokens) - 1
    return sum(max(0, min(one.end, end) - max(one.start, report.prefix_tokens)) for one in laid.placed)


def _with_id(piece: PromptPiece, segments: Mapping[bytes, str]) -> list[int] | SegmentId | SegmentOrTokens:
    """Return a piece to lay out: text that is to be a segment has the id of its digest, if there is one."""
    if not isinstance(piece, NewSegment):
        return piece
    segment = segments.get(_digest(piece))
    return SegmentOrTokens(segment, piece.tokens) if segment else piece.tokens


def _digest(piece: NewSegment) -> bytes:
    return blake3(array("q", piece.tokens).tobytes()).digest()
