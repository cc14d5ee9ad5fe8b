"""A log that nobody can fill."""

from skymemory.common.few_lines import LINES_MAX, PERIOD_S, FewLines


def test_the_same_line_is_told_once_in_a_period_and_the_others_are_counted() -> None:
    told: list[str] = []
    now_s = [0.0]
    lines = FewLines(told.append, lambda: now_s[0])
    for _ in range(1000):
        lines("refused")
    assert told == ["refused"]
    now_s[0] = PERIOD_S
    lines("refused")
    assert told[1:] == ["999 more lines like these were left out", "refused"]


def test_there_are_few_lines_in_a_period_whatever_they_say() -> None:
    told: list[str] = []
    now_s = [0.0]
    lines = FewLines(told.append, lambda: now_s[0])
    for number in range(1000):
        lines(f"command {number}")
    assert len(told) == LINES_MAX
    now_s[0] = 2 * PERIOD_S
    lines("another")
    assert told[LINES_MAX:] == [f"{1000 - LINES_MAX} more lines like these were left out", "another"]


def test_at_the_end_the_rest_is_counted() -> None:
    told: list[str] = []
    lines = FewLines(told.append, lambda: 0.0)
    lines.close()
    assert told == []
    for _ in range(2):
        lines("refused")
    lines.close()
    lines.close()
    assert told == ["refused", "1 more line like these was left out"]
