"""What ground hosts do, from a seed."""

from dataclasses import replace

from skymemory.twin.structures import OpKind
from skymemory.twin.workload import Workload, plan

ROWS_MS = [0, 300_000, 600_000, 900_000]
HOUR_MS = 3_600_000


def test_a_plan_repeats_and_differs() -> None:
    assert plan(Workload(), 1, ROWS_MS, HOUR_MS, 600) == plan(Workload(), 1, ROWS_MS, HOUR_MS, 600)
    assert plan(Workload(), 1, ROWS_MS, HOUR_MS, 600) != plan(Workload(), 2, ROWS_MS, HOUR_MS, 600)


def test_operations_are_in_order_and_in_time() -> None:
    workload = Workload(names=50, tenants=3, hosts=4)
    blocks, ops = plan(workload, 5, ROWS_MS, HOUR_MS, 600)
    assert len(blocks) == 150
    assert all(1 <= block.block_len <= 40 * 600 and 0 <= block.epoch <= len(ROWS_MS) for block in blocks)
    assert ops == sorted(ops)
    assert all(0 <= op.time_us < 1000 * HOUR_MS and op.block < 150 and 1 <= op.host <= 4 for op in ops)
    assert {op.host for op in ops} == {1, 2, 3, 4}
    gets = sum(op.kind is OpKind.GET for op in ops)
    assert 250 < gets < 450  # 6 a minute


def test_blocks_are_prefetched_for_rows_that_are_still_to_come() -> None:
    blocks, ops = plan(Workload(names=200, prefetched=0.5, absent=0), 5, ROWS_MS, HOUR_MS, 600)
    first = {}
    for op in ops:
        first.setdefault(op.block, op)
    prefetched = [number for number, block in enumerate(blocks) if block.epoch]
    assert len(prefetched) > 100
    assert all(first[number].kind is OpKind.PUT for number in prefetched)
    assert all(first[number].time_us < 1000 * ROWS_MS[blocks[number].epoch - 1] for number in prefetched)
    assert plan(Workload(prefetched=1.0), 5, [0], HOUR_MS, 600)[0][0].epoch == 0  # nothing is still to come


def test_a_purged_block_is_put_anew() -> None:
    _, ops = plan(Workload(purges_per_minute=2, puts_per_minute=0, gets_per_minute=0), 5, ROWS_MS, HOUR_MS, 600)
    purges = [op for op in ops if op.kind is OpKind.PURGE]
    puts = {(op.time_us, op.block) for op in ops if op.kind is OpKind.PUT}
    assert len(purges) > 50
    assert all((op.time_us + 20_000_000, op.block) in puts for op in purges if op.time_us < 1000 * HOUR_MS - 20_000_000)


def test_small_blocks_leave_the_others_as_they_are() -> None:
    blocks, ops = plan(Workload(names=100), 5, ROWS_MS, HOUR_MS, 800)
    mixed, same_ops = plan(Workload(names=100, small=0.8), 5, ROWS_MS, HOUR_MS, 800)
    small = [one.block_len for one, other in zip(mixed, blocks, strict=True) if one != other]
    assert 140 < len(small) < 180
    assert 48 <= min(small) < 60
    assert 500 < max(small) < 600
    assert same_ops == ops
    assert all(one.block_len <= 100 for one in plan(Workload(small=1.0), 5, ROWS_MS, HOUR_MS, 100)[0])


def test_values_are_deleted_once_they_were_put() -> None:
    workload = Workload(puts_per_minute=10, absent=0, prefetched_anew=0.5)
    blocks, ops = plan(workload, 5, ROWS_MS, HOUR_MS, 600)
    with_deletions = plan(replace(workload, deleted=0.2), 5, ROWS_MS, HOUR_MS, 600)
    deletions = [op for op in with_deletions[1] if op.kind is OpKind.DELETE]
    assert 0.1 < len(deletions) / sum(op.kind is OpKind.PUT for op in ops[len(blocks) :]) < 0.3
    assert not any(op.kind is OpKind.DELETE for op in with_deletions[1][: len(blocks)])
    assert [op._replace(kind=OpKind.PUT) if op.kind is OpKind.DELETE else op for op in with_deletions[1]] == ops
    assert with_deletions[0] == blocks


def test_a_put_may_say_another_row_than_the_one_before() -> None:
    workload = Workload(puts_per_minute=10, prefetched_anew=0.5, absent=0)
    blocks, ops = plan(workload, 5, ROWS_MS, HOUR_MS, 600)
    puts = [op for op in ops if op.kind is OpKind.PUT]
    first, again = puts[: len(blocks)], [op for op in puts[len(blocks) :] if op.epoch]
    assert all(op.epoch == 0 for op in first)
    assert 0.2 < len(again) / len(puts[len(blocks) :]) < 0.6
    assert all(op.epoch == 1 or op.time_us < 1000 * ROWS_MS[op.epoch - 1] for op in again)
    assert {op.epoch for op in again} == {1, 2, 3, 4}
    assert [op._replace(epoch=0) for op in ops] == plan(Workload(puts_per_minute=10, absent=0), 5, ROWS_MS, HOUR_MS, 600)[1]
