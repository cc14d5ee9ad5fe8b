"""Groups of layers: what of a segment's block is one object in the sky.

With a whole block as one object, no layer could be used before all have come. Layer 0 is in no group: what it keeps depends on
the tokens alone, and is computed again.
"""

from itertools import pairwise
from typing import Final

GROUPS_MAX: Final = 8
"""Most groups of a block."""


def layer_groups(layers: int) -> list[range]:
    """Return the layers of each group: 1 to `layers` - 1 in order, in groups whose sizes differ by at most one.

    Raises:
        ValueError: The model has one layer, and so nothing to keep.
    """
    if layers < 2:
        raise ValueError(f"the model has {layers} layers; segments need 2 or more")
    count = min(GROUPS_MAX, layers - 1)
    bounds = [1 + group * (layers - 1) // count for group in range(count + 1)]
    return [range(first, end) for first, end in pairwise(bounds)]


def layout_of(groups: list[range]) -> str:
    """Return the name of the order of the tensors in blocks of segments. It is a part of every key."""
    bounds = "|".join(f"{group.start}-{group.stop - 1}" for group in groups)
    return f"segment;layers {bounds};layer,k|v,kv_head,token,head_dim;k before rope"
