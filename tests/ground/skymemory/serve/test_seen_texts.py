"""Texts that were seen before, and their segments."""

from skymemory.serve.seen_texts import AGAIN_S, SeenTexts


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_text_has_no_segment_before_it_is_stored() -> None:
    seen = SeenTexts()
    assert [seen.see(b"a"), seen.see(b"a"), seen.see(b"b")] == [False, True, False]
    assert seen.segment(b"a") == seen.segment(b"never seen") == ""
    seen.stored(b"a", "seg-1", 10)
    assert (seen.segment(b"a"), seen.segment(b"b")) == ("seg-1", "")


def test_a_segment_is_stored_again_after_its_time() -> None:
    clock = Clock()
    seen = SeenTexts(clock=clock)
    seen.see(b"a")
    seen.stored(b"a", "seg-1", 1800)
    clock.now_s += 1799
    assert seen.segment(b"a") == "seg-1"
    clock.now_s += 1
    assert seen.segment(b"a") == ""


def test_what_the_sky_lacks_is_stored_again_but_not_at_once() -> None:
    clock = Clock()
    seen = SeenTexts(clock=clock)
    for digest, segment in ((b"a", "seg-1"), (b"b", "seg-2")):
        seen.see(digest)
        seen.stored(digest, segment, 1800)
    seen.lack({"seg-1", "of no text"})
    assert seen.segment(b"a") == "seg-1"
    clock.now_s += AGAIN_S
    assert (seen.segment(b"a"), seen.segment(b"b")) == ("", "seg-2")
    seen.stored(b"a", "seg-1", 1800)
    clock.now_s += AGAIN_S + 1
    assert seen.segment(b"a") == "seg-1"
    seen.lack({"seg-1"})
    assert seen.segment(b"a") == ""


def test_what_was_seen_longest_ago_is_forgotten() -> None:
    seen = SeenTexts(most=2)
    for digest in (b"a", b"b", b"a", b"c"):
        seen.see(digest)
    seen.stored(b"b", "seg-1", 10)
    assert (seen.segment(b"b"), seen.see(b"a"), seen.see(b"b")) == ("", True, False)
