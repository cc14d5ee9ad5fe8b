import pytest
import torch
from transformers import DynamicCache, MistralConfig, MistralForCausalLM, T5Config, T5ForConditionalGeneration

from skymemory.prompt.huggingface import HuggingFaceEngine, UnsupportedModelError

TOKENS = [(7 * index) % 1000 for index in range(50)]


def equal(one: DynamicCache, other: DynamicCache) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.equal(k1, k2) and torch.equal(v1, v2) for (k1, v1, *_), (k2, v2, *_) in pairs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 1), (4, 2), (4, 4)])
def test_blocks_and_back(make_llama, dtype, heads, kv_heads) -> None:
    engine = HuggingFaceEngine(make_llama(dtype=dtype, num_attention_heads=heads, num_key_value_heads=kv_heads))
    assert engine.geometry.block_shape(16) == (3, 2, kv_heads, 16, 16)
    assert engine.geometry.dtype == dtype
    cache = engine.prefill(TOKENS)
    blocks = [engine.block(cache, start, start + 16) for start in (0, 16, 32)]
    assert all(block.shape == (3, 2, kv_heads, 16, 16) and block.is_contiguous() for block in blocks)
    back = engine.cache(blocks, 48)
    cache.crop(-2)
    assert back.get_seq_length() == 48
    assert equal(back, cache)


def test_cache_covers_as_many_tokens_as_wanted(make_llama) -> None:
    engine = HuggingFaceEngine(make_llama())
    cache = engine.prefill(TOKENS[:32])
    blocks = [engine.block(cache, 0, 16), engine.block(cache, 16, 32)]
    assert engine.cache(blocks, 31).get_seq_length() == 31
    assert engine.cache(blocks, 0).get_seq_length() == 0
    assert engine.cache([], 0).get_seq_length() == 0


def test_a_cache_has_memory_of_its_own(make_llama) -> None:
    model = make_llama()
    engine = HuggingFaceEngine(model)
    blocks = [engine.block(engine.prefill(TOKENS[:16]), 0, 16)]
    before = blocks[0].clone()
    cache = engine.cache(blocks, 16)
    for layer in cache.layers:
        layer.keys.zero_()
        layer.values.zero_()
    assert torch.equal(blocks[0], before)


def test_prefill_continues_a_beginning(make_llama) -> None:
    engine = HuggingFaceEngine(make_llama())
    whole = engine.prefill(TOKENS)
    begun = engine.prefill(TOKENS[:20])
    continued = engine.prefill(TOKENS, begun)
    for (keys, values, *_), (keys2, values2, *_) in zip(whole, continued, strict=True):
        torch.testing.assert_close(keys, keys2, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(values, values2, rtol=1e-4, atol=1e-5)


def test_a_long_prompt_is_computed_in_pieces(make_llama) -> None:
    model = make_llama()
    whole = HuggingFaceEngine(model).prefill(TOKENS)
    pieces = HuggingFaceEngine(model, prefill_tokens=16).prefill(TOKENS)
    assert pieces.get_seq_length() == 50
    for (keys, *_), (keys2, *_) in zip(whole, pieces, strict=True):
        torch.testing.assert_close(keys, keys2, rtol=1e-4, atol=1e-5)


def test_a_model_runs_on_from_it_as_from_its_own(make_llama) -> None:
    model = make_llama()
    engine = HuggingFaceEngine(model)
    own = engine.prefill(TOKENS[:48])
    ours = engine.cache([engine.block(own, 0, 24), engine.block(own, 24, 48)], 48)
    ids = torch.tensor([TOKENS])
    with torch.no_grad():
        expected = model(ids[:, 48:], past_key_values=own).logits
        assert torch.equal(model(ids[:, 48:], past_key_values=ours).logits, expected)


def test_keys_carry_their_rotation_which_can_be_undone(make_llama) -> None:
    """What the block's header promises: keys are after the rotary embedding, in the positions that it names."""
    model = make_llama()
    engine = HuggingFaceEngine(model)
    cache = engine.prefill([5] * 8)  # the same token everywhere: before rotation all keys of layer 0 are the same
    keys = cache.layers[0].keys[0]
    cos, sin = model.model.rotary_emb(keys, torch.arange(8)[None])
    half = keys.shape[-1] // 2
    turned = torch.cat((-keys[..., half:], keys[..., :half]), dim=-1)
    plain = keys * cos - turned * sin
    torch.testing.assert_close(plain, plain[:, :1].expand_as(plain), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(keys[:, 0], keys[:, 1])
    assert engine.rope == {"rope_type": "default", "rope_theta": 10000.0}


def test_check_knows_its_own(make_llama) -> None:
    engine = HuggingFaceEngine(make_llama())
    assert engine.check(engine.prefill(TOKENS)) == 50
    assert engine.check(engine.empty_cache()) == 0
    with pytest.raises(ValueError, match="a tuple; supported"):
        engine.check(((1, 2),))
    with pytest.raises(ValueError, match="5 layers"):
        engine.check(HuggingFaceEngine(make_llama(num_hidden_layers=5)).prefill(TOKENS))
    with pytest.raises(ValueError, match=r"the model's is torch\.float32"):
        engine.check(HuggingFaceEngine(make_llama(dtype=torch.bfloat16)).prefill(TOKENS))
    batch = engine.prefill(TOKENS)
    batch.batch_repeat_interleave(2)
    with pytest.raises(ValueError, match="one row of a batch"):
        engine.check(batch)


def test_what_cannot_be_cut_into_blocks_is_refused(make_llama) -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 64}
    mistral = MistralForCausalLM(MistralConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, sliding_window=8))
    with pytest.raises(UnsupportedModelError, match="DynamicSlidingWindowLayer; supported is full attention"):
        HuggingFaceEngine(mistral)
    t5 = T5ForConditionalGeneration(T5Config(d_model=16, d_kv=4, d_ff=16, num_layers=1, num_heads=2, vocab_size=32))
    with pytest.raises(UnsupportedModelError, match="encoder-decoder"):
        HuggingFaceEngine(t5)
    rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    with pytest.raises(UnsupportedModelError, match="'dynamic': keys depend on the length"):
        HuggingFaceEngine(make_llama(rope_parameters=rope))


def test_a_window_that_is_switched_off_is_full_attention() -> None:
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 64}
    mistral = MistralForCausalLM(MistralConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, sliding_window=None))
    assert HuggingFaceEngine(mistral).geometry.layers == 2
