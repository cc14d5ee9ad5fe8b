"""Text that comes in pieces is the text as a whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from skymemory.demo.model import VOCABULARY, demo_tokenizer
from skymemory.serve.detokeniser import Detokeniser, StopStrings, decoded

WORDS = ["▁", "▁▁", "▁a", "a", "b", "▁the", "é", "你", "\ufffd", "\n"]


def byte_fallback() -> PreTrainedTokenizerFast:
    """Decodes as Llama 2's does: the first space is dropped, and what has no token is a run of bytes."""
    names = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS]
    vocabulary = {name: index for index, name in enumerate(names)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True, unk_token="<unk>"))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>")


BYTE_LEVEL, BYTE_FALLBACK = demo_tokenizer(), byte_fallback()


def pieces(tokenizer: PreTrainedTokenizerFast, tokens: list[int]) -> list[str]:
    detokeniser = Detokeniser(tokenizer)
    return [*(detokeniser.add(token) for token in tokens), detokeniser.end()]


@given(st.lists(st.integers(0, VOCABULARY - 1) | st.integers(2, 257), max_size=40))
def test_pieces_of_any_tokens_join_to_the_whole_text(tokens: list[int]) -> None:
    assert "".join(pieces(BYTE_LEVEL, tokens)) == decoded(BYTE_LEVEL, tokens)


@given(st.lists(st.integers(0, 257 + len(WORDS)) | st.integers(258, 257 + len(WORDS)), max_size=40))
def test_also_where_characters_fall_back_to_bytes(tokens: list[int]) -> None:
    assert "".join(pieces(BYTE_FALLBACK, tokens)) == decoded(BYTE_FALLBACK, tokens)


@given(st.text(max_size=40))
def test_no_character_is_torn(text: str) -> None:
    told = pieces(BYTE_LEVEL, BYTE_LEVEL(text)["input_ids"])
    assert "".join(told) == text
    assert "\ufffd" not in "".join(told).replace("\ufffd", "", text.count("\ufffd"))


def test_a_piece_comes_as_soon_as_its_character_is_whole() -> None:
    tokens = BYTE_LEVEL("a😀b")["input_ids"]
    assert pieces(BYTE_LEVEL, tokens) == ["a", "", "", "", "😀", "b", ""]


def test_a_space_after_a_token_without_text_is_kept() -> None:
    end, word = (BYTE_FALLBACK.convert_tokens_to_ids(name) for name in ("</s>", "▁the"))
    assert pieces(BYTE_FALLBACK, [word, end, word]) == ["the", "", " the", ""]


# ---- stop strings ---------------------------------------------------------------------------------------------------

FEW = st.text("ab\n", max_size=12)


@given(st.lists(FEW, max_size=8), st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3))
def test_what_goes_out_is_the_text_before_a_stop_string(texts: list[str], stops: list[str]) -> None:
    stopper = StopStrings(stops)
    out, hit = "", False
    for text in texts:
        told, hit = stopper.add(text)
        out += told
        if hit:
            break
    whole = "".join(texts)
    if hit:
        assert any(whole.startswith(out + stop) for stop in stops)
    else:
        assert out + stopper.end() == whole
        assert not any(stop in whole for stop in stops)
    assert not any(stop in out for stop in stops)


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_stop_string_across_a_border_is_held_back(cut: int) -> None:
    stopper = StopStrings(["END"])
    text = "ab END"
    first, hit = stopper.add(text[:cut])
    assert (hit, first) == (cut == 6, text[: min(cut, 3)])
    if not hit:
        assert stopper.add(text[cut:] + "more") == (text[len(first) : 3], True)


def test_only_what_may_be_a_beginning_is_held_back() -> None:
    stopper = StopStrings(["aab"])
    assert [stopper.add(text)[0] for text in ("a", "a", "a", "c")] == ["", "", "a", "aac"]
