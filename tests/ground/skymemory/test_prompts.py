import numpy as np
import pytest
import torch

from skymemory.prompts import token_lists

VOCABULARY = 1024
IDS = [5, 6, 7]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (IDS, ([IDS], False)),
        (tuple(IDS), ([IDS], False)),
        (torch.tensor(IDS), ([IDS], False)),
        (torch.tensor([IDS]), ([IDS], False)),
        (list(np.array(IDS)), ([IDS], False)),
        ([IDS, [8]], ([IDS, [8]], True)),
        ([IDS, []], ([IDS, []], True)),
        ([torch.tensor(IDS)], ([IDS], True)),
        ([], ([], True)),
        ({"input_ids": IDS}, ([IDS], False)),
        ({"input_ids": torch.tensor([IDS])}, ([IDS], False)),
        ({"input_ids": [IDS]}, ([IDS], True)),
        ({"input_ids": torch.tensor([IDS, [8, 1, 1]])}, ([IDS, [8, 1, 1]], True)),
        ({"input_ids": [IDS, [1, 1, 8]], "attention_mask": [[1, 1, 1], [0, 0, 1]]}, ([IDS, [8]], True)),
        ({"input_ids": torch.tensor([[1, 5, 6]]), "attention_mask": torch.tensor([[0, 1, 1]])}, ([[5, 6]], False)),
        ({"input_ids": [1, 5], "attention_mask": [0, 1]}, ([[5]], False)),
    ],
)
def test_forms_of_prompts_and_batches(tokenizer, given, expected) -> None:
    assert token_lists(given, tokenizer, VOCABULARY) == expected


def test_text_and_what_the_tokenizer_makes_of_it(tokenizer) -> None:
    text = "Chunks stay over a place."
    ids = tokenizer(text)["input_ids"]
    assert token_lists(text, tokenizer, VOCABULARY) == ([ids], False)
    assert token_lists([text], tokenizer, VOCABULARY) == ([ids], True)
    for options in ({}, {"return_tensors": "pt"}, {"return_tensors": "np"}):
        assert token_lists(tokenizer(text, **options), tokenizer, VOCABULARY) == ([ids], False)
        both = tokenizer([text, text + text], padding=True, **options)
        assert token_lists(both, tokenizer, VOCABULARY) == ([ids, tokenizer(text + text)["input_ids"]], True)


@pytest.mark.parametrize("given", [None, 5, [1.5, 2.5], [None], object(), {"text": "x"}, {}, [[1.5]], {5, 6}])
def test_what_is_no_prompt_is_refused(tokenizer, given) -> None:
    with pytest.raises(TypeError, match="a prompt is text, token ids, or what a tokenizer returns"):
        token_lists(given, tokenizer, VOCABULARY)


@pytest.mark.parametrize("token", [-1, VOCABULARY, 1 << 70])
def test_a_token_that_the_model_does_not_have_is_named(tokenizer, token) -> None:
    with pytest.raises(ValueError, match=f"token id {token} at position 2; the model has 0 to 1023"):
        token_lists([3, 4, token], tokenizer, VOCABULARY)


def test_a_tensor_of_another_shape_is_named(tokenizer) -> None:
    with pytest.raises(ValueError, match=r"not \[2, 5\]; give a batch as a list"):
        token_lists(torch.zeros(2, 5, dtype=torch.long), tokenizer, VOCABULARY)
