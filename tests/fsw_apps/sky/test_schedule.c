/* The rotation schedule: which row holds when, and where servers are in it. */
#include "sky_schedule.h"

#include "check.h"
#include "fixture.h"

#define EPOCH_US UINT64_C(5000000)
#define FAR      SKY_PLACEMENT_CELL_MAX

static SKY_Torus_t    torus;
static SKY_Schedule_t schedule;

/* West along plane 3, a jump to plane 4, one across the seam of the slots. */
static const SKY_ScheduleRow_t rows[] = {{0, {3, 2}}, {300, {3, 1}}, {600, {3, 0}}, {601, {4, 1}}, {86400000, {4, 0}}};

#define ROWS ((uint32_t)(sizeof(rows) / sizeof(rows[0])))

static bool Init(const SKY_ScheduleRow_t *these, uint32_t count, uint64_t epoch_us)
{
    return SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION, 9, these, count, epoch_us);
}

static bool InitTwo(uint32_t first_ms, uint32_t second_ms, SKY_Cell_t first, SKY_Cell_t second)
{
    const SKY_ScheduleRow_t two[] = {{first_ms, first}, {second_ms, second}};

    return Init(two, 2, EPOCH_US);
}

static void WhatIsRefused(void)
{
    const SKY_Cell_t at = {3, 4};

    CHECK(SKY_Torus_Init(&torus, 5, 19, true));
    CHECK(Init(rows, ROWS, EPOCH_US));
    CHECK(Init(rows, 1, EPOCH_US));
    CHECK(!Init(rows, 0, EPOCH_US));
    CHECK(!SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_ROTATION, 96, rows, ROWS, EPOCH_US));
    CHECK(InitTwo(0, 1, at, (SKY_Cell_t){5, 13}));
    CHECK(InitTwo(0, UINT32_MAX, at, (SKY_Cell_t){1, -5}));
    CHECK(!InitTwo(1, 2, at, (SKY_Cell_t){3, 5}));
    CHECK(!InitTwo(0, 0, at, (SKY_Cell_t){3, 5}));
    CHECK(!InitTwo(0, 1, at, (SKY_Cell_t){6, 4}));
    CHECK(!InitTwo(0, 1, at, (SKY_Cell_t){0, 4}));
    CHECK(!InitTwo(0, 1, at, (SKY_Cell_t){3, 14}));
    CHECK(!InitTwo(0, 1, at, (SKY_Cell_t){3, -6}));
    CHECK(!InitTwo(0, 1, (SKY_Cell_t){FAR, 1}, (SKY_Cell_t){FAR + 1, 1}));
    CHECK(!InitTwo(0, 1, (SKY_Cell_t){-FAR, 1}, (SKY_Cell_t){FAR, 1})); /* as far as it gets */
}

static void WhichRowHolds(void)
{
    CHECK(Init(rows, ROWS, EPOCH_US));
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, 0), 1); /* the epoch is still to come */
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, EPOCH_US), 1);
    for (uint32_t row = 1; row < ROWS; ++row)
    {
        const uint64_t end_us = SKY_Schedule_EndUs(&schedule, row);

        CHECK_EQ(end_us, EPOCH_US + rows[row].time_ms * UINT64_C(1000));
        CHECK_EQ(SKY_Schedule_RowAt(&schedule, end_us - 1u), row);
        CHECK_EQ(SKY_Schedule_RowAt(&schedule, end_us), row + 1u);
    }
    CHECK(SKY_Schedule_EndUs(&schedule, ROWS) == UINT64_MAX);
    CHECK(SKY_Schedule_EndUs(&schedule, UINT32_MAX) == UINT64_MAX);
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, EPOCH_US + INT64_MAX), ROWS);

    CHECK(Init(rows, 1, EPOCH_US));
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, EPOCH_US), 1);
    CHECK(SKY_Schedule_EndUs(&schedule, 1) == UINT64_MAX);
}

/* A satellite that started half a second after the epoch, with a clock that started with it. */
static void AClockThatBeganLater(void)
{
    CHECK(Init(rows, ROWS, UINT64_C(0) - 500000u));
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, 0), 2);
    CHECK_EQ(SKY_Schedule_EndUs(&schedule, 2), 100000);
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, 99999), 2);
    CHECK_EQ(SKY_Schedule_RowAt(&schedule, 100000), 3);
}

static void EveryRowOfALongOne(void)
{
    static SKY_ScheduleRow_t many[5460]; /* what four segments of a table hold */
    uint64_t                 random = 11;

    many[0] = rows[0];
    for (uint32_t i = 1; i < 5460u; ++i)
    {
        many[i].time_ms      = many[i - 1u].time_ms + 1u + fx_below(&random, 5u);
        many[i].centre.plane = many[i - 1u].centre.plane + (int32_t)fx_below(&random, 5u) - 2;
        many[i].centre.slot  = many[i - 1u].centre.slot + (int32_t)fx_below(&random, 19u) - 9;
    }
    CHECK(Init(many, 5460, 0));
    for (uint32_t i = 1; i < 5460u; ++i)
    {
        CHECK_EQ(SKY_Schedule_RowAt(&schedule, many[i].time_ms * UINT64_C(1000)), i + 1u);
        CHECK_EQ(SKY_Schedule_RowAt(&schedule, many[i].time_ms * UINT64_C(1000) - 1u), i);
    }
}

static void CheckAt(SKY_Addr_t at, uint32_t plane, uint32_t slot)
{
    CHECK_EQ(at.plane, plane);
    CHECK_EQ(at.slot, slot);
}

static void WhereServersAre(void)
{
    CHECK(Init(rows, ROWS, EPOCH_US));
    CheckAt(SKY_Schedule_Server(&schedule, 1, 2), 2, 3); /* slots 1 to 3 */
    CheckAt(SKY_Schedule_Server(&schedule, 2, 2), 2, 19);
    CheckAt(SKY_Schedule_Server(&schedule, 3, 2), 2, 19);
    CheckAt(SKY_Schedule_Server(&schedule, 3, 1), 2, 18);
    CheckAt(SKY_Schedule_Server(&schedule, 4, 1), 5, 2); /* planes 3 to 5, slots 19 to 2 */
    CheckAt(SKY_Schedule_Server(&schedule, 0, 2), 2, 3);
    CheckAt(SKY_Schedule_Server(&schedule, UINT32_MAX, 1), 5, 18); /* as row 5: slots 18 to 1 */

    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_HOP, 9, rows, ROWS, EPOCH_US));
    CheckAt(SKY_Schedule_Server(&schedule, 5, 0), 3, 2); /* never moves */
}

/* Rows that jump too far for the window make it as large as the torus there, and nothing moves on that axis. */
static void FarJumps(void)
{
    static const SKY_ScheduleRow_t far[] = {{0, {2, 4}}, {1, {4, 4}}, {2, {3, 4}}};

    CHECK(SKY_Torus_Init(&torus, 4, 19, false));
    CHECK(Init(far, 3, 0));
    CHECK_EQ(schedule.placement.height, 4);
    CHECK_EQ(schedule.placement.width, 3);
    for (uint32_t server = 0; server < 9u; ++server)
    {
        CHECK(SKY_Addr_Equal(SKY_Schedule_Server(&schedule, 1, server), SKY_Schedule_Server(&schedule, 2, server)));
    }
}

int main(void)
{
    RUN(WhatIsRefused);
    RUN(WhichRowHolds);
    RUN(AClockThatBeganLater);
    RUN(EveryRowOfALongOne);
    RUN(WhereServersAre);
    RUN(FarJumps);
    return CHECK_RESULT();
}
