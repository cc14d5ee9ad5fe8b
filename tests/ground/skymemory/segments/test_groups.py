import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.segments.groups import GROUPS_MAX, layer_groups, layout_of


@given(st.integers(2, 200))
def test_groups_are_even_and_cover_all_layers_but_the_first(layers: int) -> None:
    groups = layer_groups(layers)
    assert [layer for group in groups for layer in group] == list(range(1, layers))
    assert len(groups) == min(GROUPS_MAX, layers - 1)
    sizes = {len(group) for group in groups}
    assert max(sizes) - min(sizes) <= 1


def test_a_model_of_one_layer_has_nothing_to_keep() -> None:
    with pytest.raises(ValueError, match="the model has 1 layers; segments need 2 or more"):
        layer_groups(1)


def test_the_layout_names_the_layers_of_each_group() -> None:
    assert layout_of(layer_groups(4)) == "segment;layers 1-1|2-2|3-3;layer,k|v,kv_head,token,head_dim;k before rope"
    assert "layers 1-3|4-7|8-11|12-15|" in layout_of(layer_groups(32))
    assert len({layout_of(layer_groups(layers)) for layers in range(2, 60)}) == 58
