/**
 * @file
 * sky_service_migrate.c: SKY_Service_Evacuate, a handover of everything that is ordered instead of scheduled.
 */
#include "turning_rig.h"

static void test_evacuation_by_order(void)
{
    const SKY_Addr_t from = {2, 2}, to = {3, 4}, nowhere = {5, 1};
    fx_block_t       some = {50, 0, 7, 100, 700};
    fx_block_t       kept = {51, 0, 7, 100, 700};
    uint8_t          data[CHUNK_BYTES];
    SKY_Packet_t     pkt;
    SKY_Service_t   *svc = &node_at(from)->svc;

    open_constellation(11, 0);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, to), SKY_STATUS_NOT_FOUND);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, nowhere), SKY_STATUS_BAD_ADDRESS);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, from), SKY_STATUS_OK); /* what is not there may well stay */
    for (uint32_t id = 0; id < 7; ++id)
    {
        put_at(from, &some, id, 5);
    }
    fx_put(&some, 0, data, &pkt);
    pkt.tenant = 9;
    CHECK_EQ(ask(from, &pkt), SKY_STATUS_OK);
    CHECK_EQ(migrate(from, &some, (SKY_Addr_t){4, 5}, 0, 500), SKY_STATUS_OK);
    nodes[19].deaf = true;
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, to), SKY_STATUS_OK);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, to), SKY_STATUS_OK); /* going on already */
    svc->core.cfg.migrate_all_from_ground = true;
    CHECK_EQ(migrate(from, NULL, to, 0, 0), SKY_STATUS_OK); /* of a tenant: another job */
    node_at(from)->next_us = 0;                             /* the host comes by now and then */
    run_for(5000000);
    CHECK_EQ(node_at(from)->store.counters.blocks, 0);
    CHECK(sat_holds(node_at(to), &some, 0) && sat_holds(node_at(to), &some, 6) && node_at(to)->store.counters.blocks == 2);

    put_at(from, &kept, 3, UINT32_MAX); /* of a host on board */
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, to), SKY_STATUS_NOT_FOUND);
    put_at(from, &some, 1, 0);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, to), SKY_STATUS_OK);
    node_at(from)->next_us = 0;
    run_for(5000000);
    CHECK(sat_holds(node_at(from), &kept, 3) && node_at(from)->store.counters.blocks == 1);

    step_to(1, 2, 3);
    follow(SKY_LAYOUT_ROTATION, 1, 1);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, to), SKY_STATUS_REFUSED);
}

static void test_of_orders_to_evacuate_the_last_one_counts(void)
{
    const SKY_Addr_t from = {2, 2}, silent = {3, 4}, to = {4, 4};
    fx_block_t       some = {52, 0, 7, 100, 700};
    SKY_Service_t   *svc  = &node_at(from)->svc;

    open_constellation(11, 0);
    svc->core.cfg.migrate_all_from_ground = true;
    node_at(silent)->deaf                 = true;
    put_at(from, &some, 0, 0);
    for (uint16_t slot = 1; slot <= SKY_SERVICE_TENANT_MIGRATIONS; ++slot)
    {
        CHECK_EQ(SKY_Service_Evacuate(svc, now_us, silent), SKY_STATUS_OK);
        CHECK_EQ(SKY_Service_Evacuate(svc, now_us, from), SKY_STATUS_OK); /* the other way round: all stays */
        CHECK(!handover_of(node_at(from))->active);
        CHECK_EQ(migrate(from, NULL, (SKY_Addr_t){1, slot}, 0, 1), SKY_STATUS_OK);
    }
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, silent), SKY_STATUS_OK); /* requests take no place of an order's */
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, from), SKY_STATUS_OK);
    node_at(from)->next_us = 0; /* the host comes by now and then */
    run_for(1000000);           /* the migrations' deadline is over */

    put_at(from, &some, 1, 0);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, silent), SKY_STATUS_OK);
    node_at(from)->next_us = 0;
    run_for(1000000);
    CHECK_EQ(SKY_Service_Evacuate(svc, now_us, to), SKY_STATUS_OK);
    node_at(from)->next_us = 0;
    run_for(1000000);
    CHECK(sat_holds(node_at(to), &some, 1) && node_at(from)->store.counters.blocks == 0);
}

int main(void)
{
    RUN(test_evacuation_by_order);
    RUN(test_of_orders_to_evacuate_the_last_one_counts);
    return CHECK_RESULT();
}
