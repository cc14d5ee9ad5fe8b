"""Any rows, in any order, may be computed into a layer of garbage."""

import pytest
import torch
from transformers.cache_utils import Cache

from skymemory.segments.linked_layer import LinkedLayer, ProjectedError
from skymemory.segments.rows import row_mask
from support.small_models import small_model


def garbage(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> LinkedLayer:
    return LinkedLayer(*(torch.full(shape, torch.nan, dtype=dtype) for _ in range(2)))


@pytest.mark.model
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_all_rows_in_any_order_give_what_a_prefill_gives(name: str, dtype: torch.dtype, attention: str) -> None:
    model = small_model(name, dtype, attention)
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(3, 250, (2, 30), generator=generator)
    order = torch.stack([torch.randperm(30, generator=generator) for _ in range(2)])
    layers = [garbage((2, 2, 30, 24), dtype) for _ in range(5)]
    for layer in layers:
        layer.rows = order
    with torch.no_grad():
        full = model(tokens, use_cache=True)
        linked = model(
            tokens.gather(1, order),
            position_ids=order,
            past_key_values=Cache(layers=layers),
            attention_mask=row_mask(order, 30, dtype),
        )
    noise = {torch.float32: 1e-5, torch.bfloat16: 0.1}[dtype]  # sums are in another order
    torch.testing.assert_close(
        linked.logits, full.logits.gather(1, order[..., None].expand_as(full.logits)), rtol=noise, atol=noise
    )
    for layer, own in zip(layers, full.past_key_values.layers, strict=True):
        torch.testing.assert_close(layer.keys, own.keys, rtol=noise, atol=noise)
        torch.testing.assert_close(layer.values, own.values, rtol=noise, atol=noise)


@pytest.mark.parametrize("batch", [1, 3])
def test_rows_are_written_compared_and_seen(batch: int) -> None:
    keys, values = torch.randn(2, batch, 2, 10, 4)
    layer = LinkedLayer(keys.clone(), values.clone())
    layer.rows = torch.tensor([[7, 2]]).expand(batch, -1)
    layer.visible = 8
    layer.compare = True
    new_keys, new_values = torch.randn(2, batch, 2, 2, 4)
    seen_keys, seen_values = layer.update(new_keys, new_values)
    keys[:, :, [7, 2]], old = new_keys, keys[:, :, [7, 2]]
    values[:, :, [7, 2]] = new_values
    assert torch.equal(seen_keys, keys[:, :, :8])
    assert torch.equal(seen_values, values[:, :, :8])
    assert torch.equal(layer.keys[:, :, 8:], keys[:, :, 8:])
    assert layer.deviation is not None
    torch.testing.assert_close(layer.deviation, (new_keys - old).square().sum((1, 3)))


def test_a_layer_can_stop_once_keys_and_values_are_written() -> None:
    layer = garbage((1, 2, 4, 4))
    layer.rows = torch.arange(4)[None]
    layer.project_only = True
    with pytest.raises(ProjectedError):
        layer.update(torch.zeros(1, 2, 4, 4), torch.ones(1, 2, 4, 4))
    assert float(layer.keys.sum()) == 0
    assert float(layer.values.sum()) == 32


def test_a_row_sees_itself_and_what_is_before() -> None:
    mask = row_mask(torch.tensor([[3, 0], [1, 2]]), 4, torch.bfloat16)
    assert mask.shape == (2, 1, 2, 4)
    assert mask.dtype == torch.bfloat16
    assert (mask == 0).tolist() == [
        [[[True, True, True, True], [True, False, False, False]]],
        [[[True, True, False, False], [True, True, True, False]]],
    ]
    assert float(mask.min()) == torch.finfo(torch.bfloat16).min
