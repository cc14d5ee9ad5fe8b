import pytest

from skymemory.segments.strategy import Kind, Strategy


@pytest.mark.parametrize("text", ["exact", "naive", "lego:1", "lego:1024", "lego0", "blend:1", "blend:100", "random:15", "auto"])
def test_a_strategy_reads_what_it_writes(text: str) -> None:
    assert str(Strategy.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "lego", "lego:", "lego:0", "lego:1025", "blend:101", "blend:0", "blend:-1", "naive:3", "lego0:4", "exact ", "Blend:5"],
)
def test_what_is_no_strategy_is_an_error_that_tells_all(text: str) -> None:
    with pytest.raises(ValueError, match=r"not one of exact, naive, lego:1\.\.1024"):
        Strategy.parse(text)


@pytest.mark.parametrize(("kind", "amount"), [(Kind.NAIVE, 1), (Kind.BLEND, 0), (Kind.LEGO, -1), (Kind.RANDOM, 101)])
def test_amounts_are_checked(kind: Kind, amount: int) -> None:
    with pytest.raises(ValueError, match="is not one of"):
        Strategy(kind, amount)


@pytest.mark.parametrize("percent", [1, 15, 30, 76, 77, 90, 100])
@pytest.mark.parametrize("last", [1, 2, 6, 30])
def test_a_blend_computes_its_share_on_average_and_ever_fewer_rows(percent: int, last: int) -> None:
    shares = [Strategy(Kind.BLEND, percent).share(layer, 1, last) for layer in range(1, last + 1)]
    assert sum(shares) / len(shares) == pytest.approx(percent / 100)
    assert shares == sorted(shares, reverse=True)
    assert max(shares) <= 1
    if percent <= 76 and last > 1:
        assert shares[0] == pytest.approx(1.3 * percent / 100)
        assert shares[-1] == pytest.approx(0.7 * percent / 100)
    if percent == 100:
        assert set(shares) == {1.0}
