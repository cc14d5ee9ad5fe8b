"""Variants of segments: which is taken, and how they come to be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.prompt.huggingface import LinkedCache
from skymemory.prompt.manager import KVCManager
from skymemory.segments.errors import UnknownSegmentError
from skymemory.segments.manager import SegmentManager
from skymemory.segments.manifest import VARIANTS_MAX, Manifest, Variant
from skymemory.segments.variants import best_variant
from support.memory_store import MemoryStore
from support.segments import BLOCK, tokens_of


def made(*behind: str, alone: bool = True) -> Manifest:
    """A segment with a variant behind each of some lists of other segments; each letter is an id."""
    return Manifest(
        id="seg",
        fingerprint=bytes(32),
        layout="layers",
        codec="raw",
        block_tokens=128,
        groups=3,
        sinks=0,
        tokens=[1, 2, 3],
        size_bytes=100 if alone else 0,
        variants=[Variant(name=word.encode().ljust(32), behind=list(word), size_bytes=100) for word in behind],
        created_unix_ms=5,
        expires_unix_ms=0,
        display_name="",
    )


@pytest.mark.parametrize(
    ("behind", "before", "wanted"),
    [
        (["abc", "ab", "a"], "ab", "ab"),  # most in common, and nothing else
        (["abc", "ad", "a"], "xab", "abc"),  # most in common, whatever else
        (["ad", "a"], "ab", "a"),
        (["ab", "ba"], "ab", "ab"),  # the first of those that are alike
        (["ab", "cd"], "xy", ""),  # nothing in common
        (["", "a"], "xy", ""),  # as good as what was computed alone
        (["a"], "", ""),
        ([], "ab", ""),
        (["aab"], "a", "aab"),
    ],
)
def test_the_variant_with_most_in_common_is_taken(behind: list[str], before: str, wanted: str) -> None:
    assert best_variant(made(*behind), before).strip() == wanted.encode()


@pytest.mark.parametrize(("behind", "before", "wanted"), [(["abc", "d"], "xy", "d"), (["abc", "d"], "b", "abc"), ([], "a", "")])
def test_without_one_computed_alone_some_variant_is_taken(behind: list[str], before: str, wanted: str) -> None:
    assert best_variant(made(*behind, alone=False), before).strip() == wanted.encode()


# ---- out of prompts ----------------------------------------------------------------------------------------------------


@pytest.fixture
def manager(make_llama: Callable[..., Any], seed: int, tokenizer: Any, store: MemoryStore) -> KVCManager:
    model = make_llama(seed=seed, num_hidden_layers=4, bos_token_id=0)
    return KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)


@pytest.fixture
def linking(manager: KVCManager, tmp_path: Path) -> SegmentManager:
    return SegmentManager(manager, folder=tmp_path)


def deviation(cache: Any, exact: Any, begin: int, end: int) -> float:
    """Largest difference between keys and values of some tokens."""
    pairs = zip(cache, exact, strict=True)
    return max(
        float((a - b)[:, :, begin:end].abs().max()) for one, other in pairs for a, b in zip(one[:2], other[:2], strict=True)
    )


@pytest.mark.model
def test_a_variant_is_taken_where_it_knows_what_stands_before(linking: SegmentManager, manager: KVCManager) -> None:
    one, two, three = (linking.add(tokens_of(length, length), ttl_s=60, display_name="a name") for length in (30, 40, 20))
    computed = linking.link([[5], one, two, [6, 7]])
    [changed] = linking.add_variants(computed)
    assert (changed.id, changed.display_name, changed.expires_unix_ms) == (two.id, two.display_name, two.expires_unix_ms)
    assert changed.size_bytes == 2 * two.size_bytes
    assert linking.add_variants(computed) == []  # it is there
    # In the same place it is what was computed, but for the rounding of keys; and it is not exact
    same = linking.link([[5], one, two, [6, 7]], "naive")
    assert same.report.linked_tokens == 70
    assert same.report.exact_tokens == 1
    assert isinstance(same.cache, LinkedCache)
    assert deviation(same.cache, computed.cache, 31, 71) < 1e-5
    # Behind other tokens it is nearer to what the model computes than what was computed alone
    pieces = [[9, 9, 9], one, [8], two, [6, 7]]
    exact, variant = linking.link(pieces, "exact").cache, linking.link(pieces, "naive").cache
    assert manager.add_blocks(linking.link(pieces, "naive").input_ids, variant).stored == 0
    assert linking.expire(two.id)
    linking.add(tokens_of(40, 40))
    alone = linking.link(pieces, "naive").cache
    assert deviation(variant, exact, 34, 74) < deviation(alone, exact, 34, 74)
    # `three` has none, so nothing knows what stands before it
    prompt = linking.link([one, three, [5]], "naive")
    assert prompt.report.linked_tokens == 50


@pytest.mark.model
def test_what_begins_a_prompt_is_exact_whatever_variants_there_are(linking: SegmentManager) -> None:
    one, two = linking.add(tokens_of(30)), linking.add(tokens_of(40, 1))
    linking.add_variants(linking.link([one, two, [5]]))
    for strategy in ("naive", "exact", "auto"):
        prompt = linking.link([two, [5]], strategy)
        assert (prompt.report.linked_tokens, prompt.report.exact_tokens) == (40, 40)
    assert linking.link([one, two, [5]], "exact").report.linked_tokens == 30  # a variant is computed


@pytest.mark.model
def test_only_what_was_computed_becomes_a_variant(linking: SegmentManager) -> None:
    one, two = linking.add(tokens_of(30)), linking.add(tokens_of(40, 1))
    behind = linking.add(tokens_of(40, 2), sinks=4)
    for pieces, strategy in (
        ([[5], one, two, [6]], "naive"),  # linked
        ([one, two, [6]], "blend:50"),
        ([[5], two, [6]], "exact"),  # nothing before it
        ([one, behind, [6]], "exact"),  # of another kind
        ([one, two], "exact"),  # its last token was not computed
    ):
        assert linking.add_variants(linking.link(pieces, strategy)) == []
    prompt = linking.link([one, two, [6]], "exact")
    linking.expire(two.id)
    with pytest.raises(UnknownSegmentError):
        linking.add_variants(prompt)


@pytest.mark.model
def test_there_are_as_many_variants_as_may_be(linking: SegmentManager, store: MemoryStore) -> None:
    others = [linking.add(tokens_of(BLOCK, number)) for number in range(VARIANTS_MAX + 1)]
    last = linking.add(tokens_of(BLOCK, 9))
    stored = [len(linking.add_variants(linking.link([other, last, [5]]))) for other in others]
    assert stored == [1] * VARIANTS_MAX + [0]
    blocks = len(store.left)
    assert linking.expire(last.id)
    assert len(store.left) == blocks - 1 - 3 * (1 + VARIANTS_MAX)  # the manifest, and three groups of layers of each
    assert torch.equal(linking.link([others[0], [5]], "naive").input_ids[0, :-1], torch.tensor(tokens_of(BLOCK)))
