"""Conversion of prompts, in all their forms, to token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Encoding: TypeAlias = Mapping[str, Any]
"""Result of a tokenizer: `input_ids` of one prompt ([tokens] or [1, tokens]) or of a batch.

Tokens whose `attention_mask` is 0 are padding, and are left out.
"""
Prompt: TypeAlias = str | Sequence[int] | torch.Tensor | Encoding
"""Text; token ids, as a sequence or a tensor of shape [tokens] or [1, tokens]; or a tokenizer's result for one prompt."""
Prompts: TypeAlias = Sequence[str] | Sequence[Sequence[int]] | Sequence[torch.Tensor] | Sequence[Encoding] | Encoding
"""A list of prompts, or a tokenizer's result for several."""

_ALLOWED = "a prompt is text, token ids, or what a tokenizer returns; a batch is a list of them"


def token_list(prompt: Prompt, tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> list[int]:
    """Return the token ids of a prompt.

    Args:
        prompt: One prompt.
        tokenizer: Tokenizer for a prompt that is text.
        vocabulary: Number of the model's token ids, which start at 0.

    Raises:
        TypeError: The argument is no prompt.
        ValueError: A tensor has another shape, or the model does not have a token id.
    """
    given: Any = prompt
    if isinstance(prompt, Mapping):
        rows = _rows(prompt)
        if len(rows) > 1:
            raise ValueError(f"this {type(prompt).__name__} has {len(rows)} prompts; one is allowed here")
        given = rows[0] if rows else []
    elif isinstance(prompt, str):
        given = tokenizer(prompt)["input_ids"]
    elif isinstance(prompt, torch.Tensor):
        if prompt.dim() == 2 and prompt.shape[0] == 1:
            prompt = prompt[0]
        if prompt.dim() != 1:
            raise ValueError(
                f"a prompt's token ids have shape [tokens] or [1, tokens], not {list(prompt.shape)}; give a batch as a list"
            )
        given = prompt.tolist()
    if not isinstance(given, Sequence) or not all(isinstance(token, Integral) for token in given):
        raise TypeError(f"{_ALLOWED}; not {type(prompt).__name__}")
    for index, token in enumerate(given):
        if not 0 <= token < vocabulary:
            raise ValueError(f"token id {token} at position {index}; the model has 0 to {vocabulary - 1}")
    return [int(token) for token in given]


def plain_tokens(text: str, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the token ids of a text without special tokens."""
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def tokens_in_front(tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the token ids that a tokenizer puts in front of a text."""
    text = "a"
    whole, bare = list(tokenizer(text)["input_ids"]), plain_tokens(text, tokenizer)
    starts = range(len(whole) - len(bare) + 1)
    first = next((start for start in starts if whole[start : start + len(bare)] == bare), 0)
    return whole[:first]


def token_lists(prompts: Prompts, tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> list[list[int]]:
    """Return the token ids of each prompt of a batch; arguments and errors are those of `token_list`."""
    given: Any = _rows(prompts) if isinstance(prompts, Mapping) else prompts
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"{_ALLOWED}; not {type(prompts).__name__}")
    return [token_list(prompt, tokenizer, vocabulary) for prompt in given]


def _rows(encoding: Encoding) -> list[list[int]]:
    """Return the token ids of each prompt of an encoding, without padding."""
    if "input_ids" not in encoding:
        raise TypeError(
            f"{_ALLOWED}; this {type(encoding).__name__} has no input_ids but {', '.join(map(str, encoding)) or 'nothing'}"
        )
    ids, mask = (_plain(encoding.get(name)) for name in ("input_ids", "attention_mask"))
    if all(isinstance(token, Integral) for token in ids) and len(ids):
        ids, mask = [ids], None if mask is None else [mask]
    masks = [None] * len(ids) if mask is None else mask
    return [_unpadded(row, row_mask) for row, row_mask in zip(ids, masks, strict=True)]


def _plain(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values


def _unpadded(ids: Iterable[int], mask: Iterable[int] | None) -> list[int]:
    return list(ids) if mask is None else [token for token, seen in zip(ids, mask, strict=True) if seen]
