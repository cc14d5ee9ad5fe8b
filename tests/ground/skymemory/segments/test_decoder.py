"""A model whose layers cannot be called one by one is refused with a reason."""

import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask, sdpa_mask
from transformers.models.llama.modeling_llama import eager_attention_forward

from skymemory.prompt.fingerprint import Fingerprint
from skymemory.prompt.huggingface import UnsupportedModelError
from skymemory.segments.capture import capture
from skymemory.segments.decoder import Decoder
from support.small_models import MODELS, small_model

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def tokens() -> torch.Tensor:
    return torch.tensor([[(11 * index) % 250 + 3 for index in range(24)]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", MODELS)
def test_models_that_can_be_linked(name: str, attention: str, dtype: torch.dtype) -> None:
    decoder = Decoder(small_model(name, dtype, attention))
    assert decoder.layers == len(decoder.rotations) == 5


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("Granite", {"embedding_multiplier": 3.0}, "called alone, does not give what the whole model gives"),
        ("HunYuanDenseV1", {}, "turns keys in a way that is not known here"),  # a norm behind the rotation
        ("GPTNeoX", {}, "does not give its keys and values to the cache"),
        ("llama", {"num_hidden_layers": 1}, "has one layer"),
        ("mistral", {"sliding_window": 16}, "a sliding window forgets tokens"),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}}, "depend on the length"),
        ("GPT2", {}, "no list of decoder layers"),
    ],
)
def test_models_that_are_refused(name: str, settings: dict[str, object], why: str) -> None:
    if name == "GPT2":
        from transformers import GPT2Config, GPT2LMHeadModel

        model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_embd=32, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2))
    else:
        model = small_model(name, **settings)
    with pytest.raises(UnsupportedModelError, match=why):
        Decoder(model)


def test_an_attention_that_heeds_no_mask_of_floats_is_refused() -> None:
    def blind(module, query, key, value, attention_mask, **more):
        return sdpa_attention_forward(module, query, key, value, None, **more)

    AttentionInterface.register("blind", blind)
    AttentionMaskInterface.register("blind", sdpa_mask)
    with pytest.raises(UnsupportedModelError, match="does not heed a mask of floats"):
        Decoder(small_model("llama", attention="blind"))


def test_an_attention_of_another_name_may_do(tokens: torch.Tensor) -> None:
    AttentionInterface.register("as eager", eager_attention_forward)
    AttentionMaskInterface.register("as eager", eager_mask)
    model = small_model("llama", torch.bfloat16, "as eager")
    own = model(tokens, use_cache=True).past_key_values.layers
    captured = capture(Decoder(model), tokens)
    for layer, (_, values) in zip(own[1:], captured, strict=True):
        assert torch.equal(values, layer.values)  # all masks were given


def test_layers_that_turn_keys_by_positions_of_their_own_are_refused() -> None:
    model = small_model("llama")
    rotary = model.model.rotary_emb

    class Stubborn(type(model.model.layers[0].self_attn)):  # type: ignore[misc]
        def forward(self, hidden_states, position_embeddings, position_ids, **kwargs):
            return super().forward(hidden_states, position_embeddings=rotary(hidden_states, position_ids), **kwargs)

    for layer in model.model.layers:
        layer.self_attn.__class__ = Stubborn
    with pytest.raises(UnsupportedModelError, match="layer 0, called alone, does not give what the whole model gives"):
        Decoder(model)


@pytest.mark.parametrize("prefill_tokens", [7, 64])
@pytest.mark.parametrize("sinks", [0, 4])
def test_a_segment_is_computed_as_the_model_computes_it(sinks: int, prefill_tokens: int) -> None:
    model = small_model("qwen3")
    decoder = Decoder(model, prefill_tokens)
    tokens = torch.tensor([[1] * sinks + [(11 * index) % 250 + 3 for index in range(20)]])
    captured = capture(decoder, tokens, sinks)
    assert captured.shape == (4, 2, 1, 2, 20, 24)
    with torch.no_grad():
        own = model(tokens, use_cache=True).past_key_values.layers
        turns = decoder.rows(torch.arange(sinks, sinks + 20)[None], decoder.embed(tokens)).turns
    for layer, rotation, (keys, values) in zip(own[1:], decoder.rotations[1:], captured, strict=True):
        torch.testing.assert_close(rotation.rotate(keys, *turns), layer.keys[:, :, sinks:])
        torch.testing.assert_close(values, layer.values[:, :, sinks:])
        if prefill_tokens == 64:  # in one piece, as the model: the same bits
            assert torch.equal(rotation.rotate(keys, *turns), layer.keys[:, :, sinks:])
            assert torch.equal(values, layer.values[:, :, sinks:])


def test_nothing_stays_behind_on_the_model(make_llama, tokenizer) -> None:
    model = make_llama()
    fingerprint = Fingerprint(model, tokenizer)
    before = fingerprint.digest()
    decoder = Decoder(model)
    assert fingerprint.digest() == before
    capture(decoder, torch.arange(3, 30)[None])
    assert fingerprint.digest() == before
