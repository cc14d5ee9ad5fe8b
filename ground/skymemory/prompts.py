"""What a caller may give as a prompt or as a batch of them, brought to lists of token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Prompt: TypeAlias = str | Sequence[int] | torch.Tensor
"""text, or token ids: a sequence, or a tensor of shape [tokens] or [1, tokens]"""
Prompts: TypeAlias = list[str] | list[list[int]] | list[torch.Tensor]
"""a batch; the empty list is one of no prompts"""
Encoding: TypeAlias = Mapping[str, Any]
"""what a tokenizer returns: `input_ids` of a prompt (also as [1, tokens]) or of a batch; where `attention_mask` is 0 there is
padding, which is left out"""

_ALLOWED = "a prompt is text, token ids, or what a tokenizer returns; a batch is a list of them"


def token_lists(
    prompt: Prompt | Prompts | Encoding, tokenizer: PreTrainedTokenizerBase, vocabulary: int
) -> tuple[list[list[int]], bool]:
    """Token ids of each prompt, and whether it was a batch.

    Args:
        prompt: one or a batch of them.
        tokenizer: for text.
        vocabulary: token ids of the model are 0 to `vocabulary` - 1.

    Raises:
        TypeError: neither a prompt nor a batch.
        ValueError: a tensor of another shape, a token id that the model does not have.
    """
    given = _rows(prompt) if isinstance(prompt, Mapping) else prompt
    if _is_one(given):
        return [_tokens(given, tokenizer, vocabulary)], False
    if not isinstance(given, Sequence):
        raise TypeError(f"{_ALLOWED}; not {type(prompt).__name__}")
    return [_tokens(one, tokenizer, vocabulary) for one in given], True


def _rows(encoding: Encoding) -> Any:
    """The tokens of an encoding: of one prompt, or a list of those of each, without padding."""
    if "input_ids" not in encoding:
        raise TypeError(
            f"{_ALLOWED}; this {type(encoding).__name__} has no input_ids but {', '.join(map(str, encoding)) or 'nothing'}"
        )
    ids, mask = (_plain(encoding.get(name)) for name in ("input_ids", "attention_mask"))
    if _is_one(ids):
        return _unpadded(ids, mask)
    masks = [None] * len(ids) if mask is None else mask
    rows = [_unpadded(row, row_mask) for row, row_mask in zip(ids, masks, strict=True)]
    return rows[0] if len(rows) == 1 and not isinstance(encoding["input_ids"], list) else rows


def _plain(values: Any) -> Any:
    return values.tolist() if hasattr(values, "tolist") else values


def _unpadded(ids: Iterable[int], mask: Iterable[int] | None) -> list[int]:
    return list(ids) if mask is None else [token for token, seen in zip(ids, mask, strict=True) if seen]


def _is_one(given: Any) -> bool:
    if isinstance(given, str | torch.Tensor):
        return True
    return isinstance(given, Sequence) and len(given) > 0 and all(isinstance(token, Integral) for token in given)


def _tokens(prompt: Any, tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> list[int]:
    if isinstance(prompt, str):
        ids = tokenizer(prompt)["input_ids"]
    elif isinstance(prompt, torch.Tensor):
        if prompt.dim() == 2 and prompt.shape[0] == 1:
            prompt = prompt[0]
        if prompt.dim() != 1:
            raise ValueError(
                f"a prompt's token ids have shape [tokens] or [1, tokens], not {list(prompt.shape)}; give a batch as a list"
            )
        ids = prompt.tolist()
    else:
        ids = prompt
    if not isinstance(ids, Sequence) or not all(isinstance(token, Integral) for token in ids):
        raise TypeError(f"{_ALLOWED}; not {type(prompt).__name__}")
    for index, token in enumerate(ids):
        if not 0 <= token < vocabulary:
            raise ValueError(f"token id {token} at position {index}; the model has 0 to {vocabulary - 1}")
    return [int(token) for token in ids]
