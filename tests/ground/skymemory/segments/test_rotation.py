"""Keys that are caught before rotation turn into the model's own, bit by bit, and back."""

import pytest
import torch

from skymemory.segments.decoder import Decoder
from skymemory.segments.rotation import Rotation, find_rotation
from support.small_models import MODELS, small_model

pytestmark = pytest.mark.model

TOKENS = torch.tensor([[(37 * index) % 250 + 3 for index in range(40)]])


def cached(model, first: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    positions = torch.arange(first, first + TOKENS.shape[1])[None]
    with torch.no_grad():
        layers = model.model(input_ids=TOKENS, position_ids=positions, use_cache=True).past_key_values.layers
    return [(layer.keys, layer.values) for layer in layers]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MODELS)
def test_captured_keys_turn_into_the_models_own_bit_by_bit(name: str, dtype: torch.dtype) -> None:
    model = small_model(name, dtype)
    decoder = Decoder(model)
    hidden = decoder.embed(TOKENS)
    with torch.no_grad():
        before, values = decoder.before_rotation(0, hidden)
        for first in (0, 1, 777, 2000):
            rows = decoder.rows(torch.arange(first, first + TOKENS.shape[1])[None], hidden)
            own_keys, own_values = cached(model, first)[0]
            assert torch.equal(decoder.rotations[0].rotate(before, *rows.turns), own_keys)
            assert torch.equal(values, own_values)
    assert not torch.equal(before, cached(model, 777)[0][0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MODELS)
def test_keys_can_be_turned_back(name: str, dtype: torch.dtype) -> None:
    model = small_model(name, dtype)
    decoder = Decoder(model)
    with torch.no_grad():
        hidden = decoder.embed(TOKENS)
        before, _ = decoder.before_rotation(0, hidden)
        turns = decoder.rows(torch.arange(500, 540)[None], hidden).turns
        back = decoder.rotations[0].unrotate(cached(model, 500)[0][0], *turns)
    noise = 3 * torch.finfo(dtype).eps * float(before.abs().max())
    assert back.dtype == dtype
    torch.testing.assert_close(back, before, rtol=0, atol=noise)


def test_layers_of_one_model_may_differ() -> None:
    rotations = Decoder(small_model("smollm3")).rotations
    assert [rotation.turns for rotation in rotations] == [True, True, False, True, True]


def test_forms_are_told_apart() -> None:
    def turns(name: str) -> Rotation:
        return Decoder(small_model(name)).rotations[1]

    assert turns("llama") == turns("llama, yarn") == Rotation()
    assert turns("cohere") == Rotation(neighbours=True)
    assert turns("glm") == Rotation(neighbours=True, repeated=True)


def test_an_unknown_form_has_an_error() -> None:
    keys = torch.randn(1, 2, 8, 16)
    angles = torch.arange(5.0, 13.0)[None, :, None].expand(1, 8, 16)
    _, error = find_rotation(keys, keys.flip(-1), angles.cos(), angles.sin())
    assert error > 0.1
