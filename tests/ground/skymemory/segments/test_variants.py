import pytest

from skymemory.segments.manifest import Manifest, Variant
from skymemory.segments.variants import best_variant


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
