import numpy as np
import pytest
import torch

from skymemory.prompt.prompts import token_list, token_lists

VOCABULARY = 1024
IDS = [5, 6, 7]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (IDS, IDS),
        (tuple(IDS), IDS),
        ([], []),
        (torch.tensor(IDS), IDS),
        (torch.tensor([IDS]), IDS),
        (list(np.array(IDS)), IDS),
        ({"input_ids": IDS}, IDS),
        ({"input_ids": []}, []),
        ({"input_ids": [IDS]}, IDS),
        ({"input_ids": torch.tensor([IDS])}, IDS),
        ({"input_ids": torch.tensor([[1, 5, 6]]), "attention_mask": torch.tensor([[0, 1, 1]])}, [5, 6]),
        ({"input_ids": [1, 5], "attention_mask": [0, 1]}, [5]),
    ],
)
def test_forms_of_a_prompt(tokenizer, given, expected) -> None:
    assert token_list(given, tokenizer, VOCABULARY) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([IDS, [8]], [IDS, [8]]),
        ([IDS, []], [IDS, []]),
        ([torch.tensor(IDS)], [IDS]),
        ([], []),
        ([{"input_ids": IDS}, {"input_ids": [[8]]}], [IDS, [8]]),
        ({"input_ids": [IDS]}, [IDS]),
        ({"input_ids": torch.tensor([IDS])}, [IDS]),
        ({"input_ids": torch.tensor([IDS, [8, 1, 1]])}, [IDS, [8, 1, 1]]),
        ({"input_ids": [IDS, [1, 1, 8]], "attention_mask": [[1, 1, 1], [0, 0, 1]]}, [IDS, [8]]),
    ],
)
def test_forms_of_a_batch(tokenizer, given, expected) -> None:
    assert token_lists(given, tokenizer, VOCABULARY) == expected


def test_text_and_what_the_tokenizer_makes_of_it(tokenizer) -> None:
    text = "Chunks stay over a place."
    ids = tokenizer(text)["input_ids"]
    assert token_list(text, tokenizer, VOCABULARY) == ids
    assert token_lists([text], tokenizer, VOCABULARY) == [ids]
    for options in ({}, {"return_tensors": "pt"}, {"return_tensors": "np"}):
        assert token_list(tokenizer(text, **options), tokenizer, VOCABULARY) == ids
        both = tokenizer([text, text + text], padding=True, **options)
        assert token_lists(both, tokenizer, VOCABULARY) == [ids, tokenizer(text + text)["input_ids"]]


@pytest.mark.parametrize("given", [None, 5, [1.5, 2.5], [None], object(), {"text": "x"}, {}, [[1.5]], {5, 6}])
def test_what_is_no_prompt_is_refused(tokenizer, given) -> None:
    for read in (token_list, token_lists):
        with pytest.raises(TypeError, match="a prompt is text, token ids, or what a tokenizer returns"):
            read(given, tokenizer, VOCABULARY)


def test_one_prompt_and_a_batch_are_not_taken_for_each_other(tokenizer) -> None:
    for given in ("text", IDS, torch.tensor(IDS)):
        with pytest.raises(TypeError, match="a batch is a list of them"):
            token_lists(given, tokenizer, VOCABULARY)
    with pytest.raises(TypeError, match="a batch is a list of them"):
        token_list([IDS, IDS], tokenizer, VOCABULARY)
    with pytest.raises(ValueError, match="has 2 prompts; one is allowed here"):
        token_list({"input_ids": [IDS, IDS]}, tokenizer, VOCABULARY)


@pytest.mark.parametrize("token", [-1, VOCABULARY, 1 << 70])
def test_a_token_that_the_model_does_not_have_is_named(tokenizer, token) -> None:
    with pytest.raises(ValueError, match=f"token id {token} at position 2; the model has 0 to 1023"):
        token_list([3, 4, token], tokenizer, VOCABULARY)


def test_a_tensor_of_another_shape_is_named(tokenizer) -> None:
    with pytest.raises(ValueError, match=r"not \[2, 5\]; give a batch as a list"):
        token_list(torch.zeros(2, 5, dtype=torch.long), tokenizer, VOCABULARY)
