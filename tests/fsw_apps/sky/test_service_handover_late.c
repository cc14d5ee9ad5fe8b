/**
 * @file
 * sky_service_handover.c: a handover that takes longer than allowed, or than its row, is counted as late, once.
 */
#include "turning_rig.h"

#define ALLOWED_MS 3000u

/* Three rows; from the second on the only server is the neighbour of where it was. A block of three chunks lies there. */
static const fx_block_t *open_two_places(uint32_t allowed_ms)
{
    open_constellation(12, 0);
    step_to(1, 2, 3);
    step_to(2, 2, 2);
    step_to(3, 2, 2);
    follow(SKY_LAYOUT_ROTATION, 1, 3);
    for (uint32_t i = 0; i < NODES; ++i)
    {
        nodes[i].svc.core.cfg.handover_ms = allowed_ms;
    }
    return put_block(3, 1, 0);
}

static node_t *old_place(void)
{
    return node_at(SKY_Schedule_Server(&schedule, 1, 0));
}

static node_t *new_place(void)
{
    return node_at(SKY_Schedule_Server(&schedule, 2, 0));
}

static bool is_late(node_t *sat)
{
    return SKY_Service_HandoverIsLate(&sat->svc, node_clock(sat));
}

static const SKY_Handover_t *of(const node_t *sat)
{
    return &sat->svc.handover;
}

static void test_one_in_time_is_not_late(void)
{
    const fx_block_t *block = open_two_places(ALLOWED_MS);

    run_for(2u * ROW_US + 5000000u);
    CHECK(is_at_home(block, 3));
    for (uint32_t i = 0; i < NODES; ++i)
    {
        CHECK(!is_late(&nodes[i]));
        CHECK_EQ(of(&nodes[i])->late, 0);
        CHECK_EQ(SKY_Service_HandoverMs(&nodes[i].svc, node_clock(&nodes[i])), 0);
    }
}

static void test_longer_than_allowed(void)
{
    const fx_block_t *block = open_two_places(ALLOWED_MS);

    new_place()->deaf = true;
    run_for(ROW_US + ALLOWED_MS * 1000u - 100000u);
    CHECK(!is_late(old_place()));
    run_for(200000);
    CHECK(is_late(old_place()) && is_late(old_place()));
    CHECK_EQ(of(old_place())->late, 1);
    CHECK_EQ(of(old_place())->late_done, 0);
    run_for(ROW_US); /* it is still the same one when the next row begins */
    CHECK(is_late(old_place()));
    CHECK_EQ(of(old_place())->late, 1);
    new_place()->deaf = false;
    run_for(20000000);
    CHECK(is_at_home(block, 3));
    CHECK(!is_late(old_place()));
    CHECK_EQ(of(old_place())->late, 1);
    CHECK_EQ(of(old_place())->late_done, 1);
    CHECK(of(old_place())->lasted_ms > ROW_US / 1000u && of(old_place())->lasted_ms < 40000);
    CHECK_EQ(of(new_place())->late, 0);
}

/* Nobody asks meanwhile: it is counted when it is done. */
static void test_longer_than_allowed_and_not_asked_about(void)
{
    (void)open_two_places(ALLOWED_MS);
    new_place()->deaf = true;
    run_for(ROW_US + ALLOWED_MS * 1000u + 100000u);
    CHECK_EQ(of(old_place())->late, 0);
    new_place()->deaf = false;
    run_for(4000000);
    CHECK_EQ(of(old_place())->left, 0);
    CHECK_EQ(of(old_place())->late, 1);
    CHECK_EQ(of(old_place())->late_done, 1);
    CHECK(of(old_place())->lasted_ms > ALLOWED_MS && of(old_place())->lasted_ms < ROW_US / 1000u);
}

static void test_longer_than_its_row(void)
{
    (void)open_two_places(0); /* only the row counts */
    new_place()->deaf = true;
    run_for(2u * ROW_US - 100000u);
    CHECK(!is_late(old_place()));
    run_for(200000);
    CHECK(is_late(old_place()));
    CHECK_EQ(of(old_place())->late, 1);
}

/* A host whose clock is fast puts a chunk where the next row has it: nothing is late because of that. */
static void test_what_came_just_before_a_row_is_not_late(void)
{
    const fx_block_t early = {50, 0, 1, CHUNK_BYTES, CHUNK_BYTES};

    (void)open_two_places(ALLOWED_MS);
    run_for(ROW_US - 100000u);
    put_at(new_place()->svc.core.cfg.self, &early, 0, 0);
    CHECK_EQ(of(new_place())->left, 1);
    run_for(ROW_US);
    CHECK(sat_holds(new_place(), &early, 0));
    CHECK_EQ(of(new_place())->left, 0);
    CHECK_EQ(of(new_place())->late, 0);
}

/* But it is late when it is still there at the end of the row after that. */
static void test_what_came_just_before_a_row_and_stays_is_late(void)
{
    const fx_block_t early  = {50, 0, 1, CHUNK_BYTES, CHUNK_BYTES};
    const SKY_Addr_t beside = {4, 5};

    (void)open_two_places(0);
    run_for(ROW_US - 100000u);
    new_place()->deaf = true;
    put_at(beside, &early, 0, 0);
    run_for(ROW_US);
    CHECK_EQ(node_at(beside)->svc.core.row, 2);
    CHECK_EQ(of(node_at(beside))->late, 0);
    run_for(200000u);
    CHECK_EQ(node_at(beside)->svc.core.row, 3);
    CHECK_EQ(of(node_at(beside))->late, 1);
}

static void test_a_new_schedule_begins_anew(void)
{
    (void)open_two_places(ALLOWED_MS);
    new_place()->deaf = true;
    run_for(ROW_US + ALLOWED_MS * 1000u + 100000u);
    CHECK(is_late(old_place()));
    CHECK(SKY_Service_SetSchedule(&old_place()->svc, NULL));
    CHECK(!is_late(old_place()));
    CHECK_EQ(of(old_place())->late, 0);
}

int main(void)
{
    RUN(test_one_in_time_is_not_late);
    RUN(test_longer_than_allowed);
    RUN(test_longer_than_allowed_and_not_asked_about);
    RUN(test_longer_than_its_row);
    RUN(test_what_came_just_before_a_row_is_not_late);
    RUN(test_what_came_just_before_a_row_and_stays_is_late);
    RUN(test_a_new_schedule_begins_anew);
    return CHECK_RESULT();
}
