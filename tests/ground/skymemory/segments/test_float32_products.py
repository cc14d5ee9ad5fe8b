import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from skymemory.segments.float32_products import has_slow_products, with_float32_products
from support.small_models import small_model

pytestmark = pytest.mark.model


class Products(TorchDispatchMode):
    """Note the type and the number of rows of each product of matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[torch.dtype, int]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name()
        if name in {"aten::mm", "aten::addmm"}:
            rows = args[1] if name == "aten::addmm" else args[0]
            self.seen.append((rows.dtype, len(rows)))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ["llama", "Qwen2"])  # without and with biases
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_many_rows_are_multiplied_in_float32_and_give_the_same(kind, dtype) -> None:
    model = small_model(kind, num_hidden_layers=2).to(dtype)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    wide = with_float32_products(model)
    tokens = torch.randint(3, 250, (2, 12), generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), Products() as products:
        given = wide(input_ids=tokens).logits
    assert {dtype for dtype, rows in products.seen if rows >= 4} == {torch.float32}
    with torch.no_grad(), Products() as products:
        wanted = model(input_ids=tokens).logits
    assert {dtype for dtype, _ in products.seen} == {dtype}
    assert given.dtype is dtype
    noise = 4 * torch.finfo(dtype).eps * float(wanted.abs().max())
    assert torch.allclose(given.float(), wanted.float(), rtol=0, atol=noise)

    assert {tensor.data_ptr() for tensor in wide.parameters()} == {tensor.data_ptr() for tensor in model.parameters()}
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_model_of_float32_has_fast_products() -> None:
    model = small_model("llama", num_hidden_layers=2).float()
    assert not has_slow_products(model)
