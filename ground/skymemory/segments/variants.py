"""The variant of a segment that fits best to what stands before it in a prompt (Cache-Craft).

A variant was computed behind other tokens. Its keys and values know the segments among them, so the one that has most of them in
common with a prompt comes nearest to what the model would compute there.
"""

from __future__ import annotations

from collections.abc import Collection

from skymemory.segments.manifest import Manifest


def best_variant(manifest: Manifest, before: Collection[str]) -> bytes:
    """Return the name of the best variant of a segment, or the empty name if what was computed alone is at least as good.

    The one that has most segments in common is taken, and of several that with the fewest others.

    Args:
        manifest: The segment.
        before: Ids of the segments before it in the prompt.
    """
    stands = set(before)
    ranked = [((0, 0), b"")] if manifest.is_alone else []
    for variant in manifest.variants:
        behind = set(variant.behind)
        ranked.append(((len(behind & stands), -len(behind - stands)), variant.name))
    return max(ranked, key=lambda one: one[0], default=((0, 0), b""))[1]
