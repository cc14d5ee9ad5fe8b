/**
 * @file
 * The rotation schedule: see sky_schedule.h.
 */
#include "sky_schedule.h"

#include "sky_assert.h"
#include "sky_placement_priv.h"

#define US_PER_MS 1000u

static uint32_t Distance(int32_t a, int32_t b)
{
    const int64_t way = (int64_t)a - b;
    SKY_ASSERT(way >= -2 * (int64_t)SKY_PLACEMENT_CELL_MAX);
    SKY_ASSERT(way <= 2 * (int64_t)SKY_PLACEMENT_CELL_MAX);

    return (uint32_t)(way < 0 ? -way : way);
}

bool SKY_Schedule_Init(SKY_Schedule_t *schedule, const SKY_Torus_t *torus, SKY_LayoutId_t layout, uint32_t servers,
                       const SKY_ScheduleRow_t *rows, uint32_t count, uint64_t epoch_us)
{
    uint32_t planes = 0;
    uint32_t slots  = 0;

    if (count == 0u || rows[0].time_ms != 0u || !SKY_Placement_Init(&schedule->placement, torus, layout, servers, rows[0].centre))
    {
        return false;
    }
    for (uint32_t i = 1; i < count; ++i)
    {
        uint32_t north_south, west_east;

        if (rows[i].time_ms <= rows[i - 1u].time_ms || !SKY_Placement_IsCell(rows[i].centre))
        {
            return false;
        }
        north_south = Distance(rows[i].centre.plane, rows[i - 1u].centre.plane);
        west_east   = Distance(rows[i].centre.slot, rows[i - 1u].centre.slot);
        if (north_south > torus->planes / 2u || west_east > torus->slots / 2u)
        {
            return false;
        }
        planes = north_south > planes ? north_south : planes;
        slots  = west_east > slots ? west_east : slots;
    }
    SKY_ASSERT(planes <= torus->planes / 2u);
    SKY_ASSERT(slots <= torus->slots / 2u);
    SKY_Placement_AllowSteps(&schedule->placement, planes, slots);
    schedule->rows     = rows;
    schedule->count    = count;
    schedule->epoch_us = epoch_us;
    return true;
}

uint32_t SKY_Schedule_RowAt(const SKY_Schedule_t *schedule, uint64_t now_us)
{
    const uint64_t elapsed_us = now_us - schedule->epoch_us;
    uint32_t       first      = 1;                    /* this row has begun */
    uint32_t       end        = schedule->count + 1u; /* this row has not begun */

    SKY_ASSERT(schedule->count >= 1u);
    if (elapsed_us > INT64_MAX) /* the epoch is still to come */
    {
        return first;
    }
    while (end - first > 1u)
    {
        const uint32_t middle = first + (end - first) / 2u;
        SKY_ASSERT(middle > first);
        SKY_ASSERT(middle < end);

        if (schedule->rows[middle - 1u].time_ms <= elapsed_us / US_PER_MS)
        {
            first = middle;
        }
        else
        {
            end = middle;
        }
    }
    SKY_ASSERT(first >= 1u);
    SKY_ASSERT(first <= schedule->count);
    SKY_ASSERT(end == first + 1u);
    return first;
}

uint64_t SKY_Schedule_EndUs(const SKY_Schedule_t *schedule, uint32_t row)
{
    SKY_ASSERT(schedule->count >= 1u);
    SKY_ASSERT(row == 0u || row >= schedule->count || schedule->rows[row].time_ms > schedule->rows[row - 1u].time_ms);
    return row >= schedule->count ? UINT64_MAX : schedule->epoch_us + (uint64_t)schedule->rows[row].time_ms * US_PER_MS;
}

static SKY_Cell_t Centre(const SKY_Schedule_t *schedule, uint32_t row)
{
    const uint32_t last = row < schedule->count ? row : schedule->count;
    SKY_ASSERT(schedule->count >= 1u);

    SKY_ASSERT(last <= schedule->count);
    return schedule->rows[last == 0u ? 0u : last - 1u].centre;
}

SKY_Addr_t SKY_Schedule_Centre(const SKY_Schedule_t *schedule, uint32_t row)
{
    const SKY_Cell_t cell = Centre(schedule, row);
    SKY_ASSERT(SKY_Placement_IsCell(cell));
    SKY_ASSERT(schedule->count >= 1u);

    return SKY_Placement_Wrap(&schedule->placement.torus, cell.plane, cell.slot);
}

SKY_Addr_t SKY_Schedule_Server(const SKY_Schedule_t *schedule, uint32_t row, uint32_t server)
{
    return SKY_Placement_Server(&schedule->placement, Centre(schedule, row), server);
}
