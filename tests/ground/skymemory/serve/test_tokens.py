"""Pieces of prompts: where segments stand in what the model reads."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from skymemory.segments.layout import SegmentId
from skymemory.serve.errors import ApiError
from skymemory.serve.requests import ChatMessage
from skymemory.serve.tokens import CHARACTERS_MAX, NewSegment, RequestTokens

pytestmark = pytest.mark.model

CONTEXT = 1000


@pytest.fixture
def read(letters) -> Callable[..., Any]:
    """`read(pieces)`: pieces with their tokens as text."""

    def read(pieces: Any) -> list[Any]:
        def shown(tokens: list[int]) -> str:
            return str(letters.decode(tokens, clean_up_tokenization_spaces=False))

        return [
            shown(piece) if isinstance(piece, list) else {shown(piece.tokens)} if isinstance(piece, NewSegment) else piece
            for piece in pieces
        ]

    return read


@pytest.fixture
def make_tokens(letters) -> Callable[..., RequestTokens]:
    def make(template: str | None = None, separator: str | None = None) -> RequestTokens:
        letters.chat_template = template or template_before
        return RequestTokens(letters, len(letters), CONTEXT, separator)

    template_before = letters.chat_template
    yield make
    letters.chat_template = template_before


def message(*parts: Any, role: str = "user") -> ChatMessage:
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return ChatMessage.model_validate({"role": role, "content": content})


NEW = {"type": "text", "text": "new", "segment": True}
KNOWN = {"type": "cached_content", "id": "known"}


def test_segments_stand_where_the_template_puts_them(make_tokens, read) -> None:
    chat = [message(KNOWN, role="system"), message("a", NEW, "b", NEW), message("c", KNOWN)]
    assert read(make_tokens().chat(chat)) == [
        "[system] ",
        SegmentId("known"),
        "\n[user] a\n",
        {"new"},
        "\nb\n",
        {"new"},
        "\n[user] c\n",
        SegmentId("known"),
        "\n[assistant] ",
    ]


def test_text_that_looks_like_a_word_for_a_segment_stays_text(make_tokens, read) -> None:
    text = "segment" + "0" * 32 + " segment"
    assert read(make_tokens().chat([message(text, NEW)])) == [f"[user] {text}\n", {"new"}, "\n[assistant] "]


def test_pieces_without_text_are_left_out(make_tokens, read) -> None:
    template = "{% for message in messages %}{{ message.content | trim }}{% endfor %}"
    assert read(make_tokens(template).chat([message(NEW), message(KNOWN)])) == [{"new"}, SegmentId("known")]


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[0].content }}",
        "{{ messages[0].content }}{{ messages[1].content }}{{ messages[0].content }}",
        "{{ messages[1].content }}{{ messages[0].content }}",
        "{{ messages[0].content | upper }}{{ messages[1].content }}",
        "{{ messages[0].content[:9] }}{{ messages[1].content }}",
        "nothing",
    ],
    ids=["drops", "repeats", "reorders", "changes", "cuts", "nothing"],
)
def test_templates_that_do_not_leave_segments_are_refused(make_tokens, template) -> None:
    with pytest.raises(ApiError, match="once and in order") as caught:
        make_tokens(template).chat([message("a", NEW), message(KNOWN)])
    assert (caught.value.status, caught.value.body["error"]["code"]) == (400, "segments_misplaced")
    make_tokens(template).chat([message("a"), message("b")])  # without segments it may do what it wants


def test_separators_are_split_off_before_tokens_are_made(make_tokens, read) -> None:
    tokens = make_tokens(separator="##")
    prompts = ["no separator", "one ##two", "one ## two## three ", "##two##", "a####b", "##one##-##three##", [5, 6]]
    assert [read(pieces) for pieces in tokens.completion(prompts, 1)] == [
        ["no separator"],
        ["one two"],
        ["one ", {" two"}, " three "],
        [{"two"}],
        ["ab"],
        [{"one"}, {"-"}, {"three"}],
        ["%&"],
    ]
    assert [tokens.text(prompt) for prompt in prompts[:3]] == ["no separator", "one two", "one  two three "]
    with pytest.raises(ApiError, match="there is no token"):
        tokens.completion(["####"], 1)


@pytest.mark.parametrize(
    ("separator", "prompt", "is_refused"),
    [
        ("##", "wo##rd", True),
        ("##", "one ##two## three", False),
        ("##", "one##. Two", False),
        ("##", "4##2", True),
        ("x", "axis", True),
        (" ## ", "one ## two", False),
        ("\n", "one\ntwo", False),
        ("## ", "one## two", False),
    ],
)
def test_a_separator_in_a_word_is_refused(make_tokens, separator, prompt, is_refused) -> None:
    tokens = make_tokens(separator=separator)
    if not is_refused:
        assert len(tokens.completion([prompt], 1)) == 1
        return
    with pytest.raises(ApiError, match="stands in a word") as caught:
        tokens.completion([prompt], 1)
    assert (caught.value.status, caught.value.body["error"]["code"]) == (400, "separator_in_word")


def test_a_request_has_64_segments_at_most(make_tokens) -> None:
    tokens = make_tokens(separator="##")
    for allowed in ("##".join(["a "] * 66), ["##".join(["a "] * 34)] * 2):
        pieces = tokens.completion([allowed] if isinstance(allowed, str) else allowed, 1)
        assert sum(isinstance(piece, NewSegment) for one in pieces for piece in one) == 64
    assert len(tokens.chat([message(*[NEW, KNOWN] * 32)])) == 129
    for refused, param in (
        (lambda: tokens.completion(["##".join(["a "] * 67)], 1), "prompt"),
        (lambda: tokens.completion(["##".join(["a "] * 34), "##".join(["a "] * 35)], 1), "prompt"),
        (lambda: tokens.chat([message(*[NEW] * 65)]), "messages"),
        (lambda: tokens.chat([message(*[KNOWN] * 30), message(*[KNOWN, NEW] * 20)]), "messages"),
    ):
        with pytest.raises(ApiError, match="segments; allowed are 64") as caught:
            refused()
        error = caught.value.body["error"]
        assert (caught.value.status, error["param"], error["code"]) == (400, param, "too_many_segments")


def test_a_prompt_that_is_too_long_is_refused_before_the_next_takes_time(make_tokens) -> None:
    tokens = make_tokens()
    assert len(tokens.completion(["a" * (CONTEXT - 16), "b"], 16)) == 2
    with pytest.raises(ApiError, match=f"has {CONTEXT - 15} tokens, and the answer was to have 16"):
        tokens.completion(["a" * (CONTEXT - 15), [-1]], 16)  # the second would be refused for its token


def test_prompts_have_so_many_characters_together(letters) -> None:
    tokens = RequestTokens(letters, len(letters), 2 * CHARACTERS_MAX)
    for prompts in (["a" * CHARACTERS_MAX, "b"], ["a" * (CHARACTERS_MAX // 128 + 1)] * 128):
        with pytest.raises(ApiError, match=r"prompt: 2,097,.* allowed are 2,097,152 in several prompts") as caught:
            tokens.completion(prompts, 1)
        assert caught.value.body["error"]["code"] == "too_many_characters"
    assert len(tokens.completion(["a" * 1000] * 128, 1)) == 128


def test_contents_that_are_no_segment_are_refused(make_tokens) -> None:
    tokens = make_tokens()
    for content, words in (
        ("", "no token"),
        ([5, 96], "token id 96"),
        (
            "a" * CONTEXT,
            "^This model's maximum context length is 1000 tokens, and the prompt is too long for it: contents has 1000 tokens",
        ),
        ([5] * CONTEXT, "^This model's maximum context length is 1000 tokens"),
        (
            "a" * 1001,
            "contents has 1001 characters; allowed are 1000, 1 for each token$",
        ),
    ):
        with pytest.raises(ApiError, match=words) as caught:
            tokens.segment(content)
        assert caught.value.body["error"]["param"] == "contents"
    assert len(tokens.segment("a" * (CONTEXT - 1))) == CONTEXT - 1


class QuickTokenizer:
    """A tokenizer that takes no time, so that what is left is the time of finding segments."""

    chat_template = "contents of messages, joined"

    def get_vocab(self) -> dict[str, int]:
        return {"a token of 16 by": 0}

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [0] if text else []}

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
        return "".join([one["content"] for one in messages])


@pytest.mark.parametrize("word", ["text of a chat ", "segment"], ids=["text", "the word for a segment"])
def test_many_segments_are_found_in_a_long_chat_as_fast_as_one(word) -> None:
    """With a pass over the text for each segment, 64 take tens of times as long as one."""
    tokens = RequestTokens(QuickTokenizer(), 1, 1_000_000)  # type: ignore[arg-type]
    long = message(word * (8_000_000 // len(word)))
    taken_s: dict[int, list[float]] = {1: [], 64: []}
    for segments in (1, 64) * 3:
        chat = [message(*[KNOWN] * segments), long]
        begin_s = time.process_time()
        pieces = tokens.chat(chat)
        taken_s[segments].append(time.process_time() - begin_s)
        assert sum(isinstance(piece, SegmentId) for piece in pieces) == segments
    assert min(taken_s[64]) < 8 * min(taken_s[1]), taken_s
