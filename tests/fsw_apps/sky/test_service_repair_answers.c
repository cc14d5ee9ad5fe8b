/**
 * @file
 * sky_service_repair.c: what is made of wrong answers to a repair, of none, and of damaged chunks.
 */
#include "repair_answers_rig.h"

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static bool lose_gets(SKY_Packet_t *pkt)
{
    return !is_of(pkt, SKY_OP_GET, true);
}

/* A source that does not answer is asked once more, and then left out; a question that was lost does no harm. */
static void test_silent_sources(void)
{
    for (limit = 1; limit <= 2; ++limit)
    {
        const uint32_t times = limit;

        open_filled();
        limit = times;
        meets = lose_gets;
        run(8u * PERIOD_US);
        CHECK(is_whole(&block));
        CHECK(met >= times);
        limit = times;
    }
    open_filled();
    restart(home_of(5)); /* now the silent one would be needed */
    meets = lose_gets;
    run(8u * PERIOD_US);
    CHECK(!is_whole(&block));
    meets = NULL;
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
}

static bool spoil_get(SKY_Packet_t *pkt)
{
    static uint8_t bytes[SLOT_BYTES];

    if (!is_of(pkt, SKY_OP_GET, false))
    {
        return true;
    }
    switch (kind)
    {
        case 0:
            pkt->status = SKY_STATUS_NOT_FOUND;
            break;
        case 1:
            pkt->src = home_of(0);
            break;
        case 2:
            pkt->chunk_id += 9;
            break;
        case 3:
            pkt->block_version = 4;
            break;
        case 4:
            pkt->content = 4;
            break;
        case 5:
            pkt->block_len -= 1;
            break;
        case 6:
            pkt->code_scheme = 9;
            break;
        case 7:
            (void)memcpy(bytes, pkt->payload, pkt->length);
            bytes[5] ^= 1u;
            pkt->payload = bytes;
            break;
        case 8:
            pkt->op = SKY_OP_HAS;
            break;
        case 9:
            pkt->length = 0;
            break;
        default:
            break;
    }
    return true;
}

static void test_wrong_chunks(void)
{
    for (kind = 0; kind < 10; ++kind)
    {
        open_filled();
        meets = spoil_get;
        run(6u * PERIOD_US);
        CHECK(is_whole(&block));
        CHECK(met >= 1);
    }
}

static bool spoil_parts(SKY_Packet_t *pkt)
{
    if (!is_of(pkt, SKY_OP_GET, false))
    {
        return true;
    }
    if (kind == 0)
    {
        return false; /* a part is lost */
    }
    pkt->length -= pkt->offset == 0 ? 1u : 0u; /* parts that do not fit each other */
    return true;
}

/* The same with chunks that go in parts. */
static void open_in_parts(void)
{
    link_bytes = IN_PARTS;
    open_filled();
    block = a_coded(2, 12u * 600u, 600, 7, 2);
    put_all(&block);
    run(LIFE_MS * 1000u);
    restart(home_of(4));
    link_bytes = WHOLE;
}

static void test_parts_that_do_not_fit(void)
{
    for (kind = 0; kind < 2; ++kind)
    {
        open_in_parts();
        limit = 1;
        meets = spoil_parts;
        run(10u * PERIOD_US);
        CHECK(is_whole(&block));
        CHECK(met >= 1);
    }
}

/* A bit has flipped in a store. */
static void flip(node_t *node, uint32_t id)
{
    uint8_t         key[SKY_KEY_BYTES];
    SKY_ChunkView_t view;

    fx_key(key, block.number);
    CHECK_EQ(SKY_Store_Peek(&node->store, SKY_Store_Find(&node->store, 0, key), id, &view), SKY_STATUS_OK);
    node->store.slab.data[view.data - node->store.slab.data] ^= 1u;
}

static void test_damaged_memory(void)
{
    for (uint32_t i = 0; i < 9; ++i)
    {
        if (i != 4)
        {
            open_in_parts();
            flip(at_home(i), i);
            run(6u * PERIOD_US);
            flip(at_home(i), i);
            CHECK(is_whole(&block));
        }
    }
    open_in_parts();
    restart(home_of(5));
    flip(at_home(3), 3); /* too few are left in this row */
    run(6u * PERIOD_US);
    flip(at_home(3), 3);
    CHECK_EQ(held(&block), block.stripe.chunk_total - 2u);
}

/* ---- homes ------------------------------------------------------------------------------------------------------- */

static bool lose_puts(SKY_Packet_t *pkt)
{
    return !is_of(pkt, SKY_OP_PUT, true);
}

/* What server 3 brings there is lost, and so are its questions about that. */
static bool lose_deliveries(SKY_Packet_t *pkt)
{
    return !(pkt->is_request && SKY_Addr_Equal(pkt->dst, victim) && SKY_Addr_Equal(pkt->src, home_of(3)) &&
             at_home(3)->svc.census.state == SKY_CENSUS_MENDING);
}

static void test_a_chunk_lost_on_its_way(void)
{
    open_filled();
    victim = home_of(4);
    limit  = 2;
    meets  = lose_puts;
    run(6u * PERIOD_US);
    CHECK(is_whole(&block));
}

static void test_a_home_that_falls_silent(void)
{
    open_filled();
    node_t *node = at_home(3);
    victim       = home_of(4);
    meets        = lose_deliveries;
    run_until(node, SKY_REPAIR_DELIVER);
    run(5200000u);
    CHECK_EQ(node->svc.census.state, SKY_CENSUS_IDLE);
    CHECK_EQ(repaired(), 0);
    meets = NULL;
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
}

static void test_no_way_home(void)
{
    open_filled();
    node_t *node = at_home(3);
    victim       = home_of(4);
    meets        = lose_deliveries;
    run_until(node, SKY_REPAIR_DELIVER);
    SKY_Service_Unreachable(&node->svc, home_of(8));
    CHECK_EQ(node->svc.census.repair.state, SKY_REPAIR_DELIVER);
    SKY_Service_Unreachable(&node->svc, home_of(4));
    CHECK_EQ(node->svc.census.repair.state, SKY_REPAIR_NO_HOME);
    meets = NULL;
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
}

static void test_another_schedule_on_its_way_home(void)
{
    open_filled();
    node_t *node = at_home(3);
    victim       = home_of(4);
    meets        = lose_deliveries;
    run_until(node, SKY_REPAIR_DELIVER);
    CHECK(SKY_Service_SetSchedule(&node->svc, &schedule));
    CHECK_EQ(node->svc.census.state, SKY_CENSUS_IDLE);
    CHECK_EQ(node->svc.census.repair.state, SKY_REPAIR_IDLE);
    meets = NULL;
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
}

/* Its own chunk has gone since it was counted. */
static void test_no_chunk_of_its_own(void)
{
    uint8_t key[SKY_KEY_BYTES];

    open_filled();
    node_t *node = at_home(3);
    meets        = lose_gets;
    run_until(node, SKY_REPAIR_ASKED);
    fx_key(key, block.number);
    CHECK(SKY_Store_Drop(&node->store, SKY_Store_Find(&node->store, 0, key), 12));
    meets = NULL;
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
}

/* However fast chunks come, there is a pause between two repairs. */
static void test_not_too_many_at_once(void)
{
    const coded_t long_one = a_coded(2, 7u * 40u * 20u, 20, 7, 2);

    open_filled();
    put_all(&long_one);
    run(LIFE_MS * 1000u);
    restart(home_of(4));
    while (repaired() == 0)
    {
        step();
    }
    const uint64_t before = repaired();
    for (uint32_t i = 0; i < 100; ++i)
    {
        now_us -= STEP_US - 1000u; /* a millisecond each */
        step();
    }
    CHECK(repaired() - before <= 11);
    CHECK(repaired() - before >= 3);
}

static void test_no_way_to_a_source(void)
{
    open_filled();
    node_t *node = at_home(3);
    meets        = lose_gets;
    run_until(node, SKY_REPAIR_ASKED);
    for (uint32_t i = 0; i < 200 && !SKY_Addr_Equal(node->svc.census.repair.at, victim); ++i)
    {
        step();
    }
    SKY_Service_Unreachable(&node->svc, home_of(8));
    CHECK_EQ(node->svc.census.repair.state, SKY_REPAIR_ASKED);
    SKY_Service_Unreachable(&node->svc, victim);
    CHECK_EQ(node->svc.census.repair.state, SKY_REPAIR_NO_SOURCE);
    run(6u * PERIOD_US);
    CHECK(is_whole(&block));
}

static uint8_t      caught_bytes[SLOT_BYTES];
static SKY_Packet_t caught; /* the last part that a repair needs */

static bool catch_last(SKY_Packet_t *pkt)
{
    const SKY_Repair_t *repair = &at_home(3)->svc.census.repair;
    const bool          is_it  = pkt->op == SKY_OP_GET && !pkt->is_request && SKY_Addr_Equal(pkt->dst, home_of(3)) &&
                       repair->added + 1u == repair->needed && pkt->offset + pkt->length == pkt->chunk_len;

    if (is_it)
    {
        caught = *pkt;
        (void)memcpy(caught_bytes, pkt->payload, pkt->length);
        caught.payload = caught_bytes;
    }
    return !is_it;
}

/* What is not pulled is sent again. */
static void test_packets_that_are_not_pulled(void)
{
    uint64_t  next_us;
    SKY_Out_t out;

    open_in_parts();
    node_t *node  = at_home(3);
    caught.length = 0;
    meets         = catch_last;
    for (uint32_t i = 0; i < 4u * PERIOD_US / STEP_US && caught.length == 0; ++i)
    {
        step();
    }
    SKY_Service_Begin(&node->svc, now_us, &caught);
    CHECK_EQ(node->svc.census.repair.state, SKY_REPAIR_DELIVER);
    CHECK(SKY_Service_Next(&node->svc, now_us, &out));
    CHECK(node->svc.census.repair.cutting);
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    CHECK(!node->svc.census.repair.cutting);
    meets = NULL;
    run(8u * PERIOD_US);
    CHECK(is_whole(&block));
}

/* Answers to a delivery count from the home alone. */
static void test_only_the_home_takes(void)
{
    SKY_Packet_t pkt;

    open_filled();
    node_t             *node   = at_home(3);
    const SKY_Repair_t *repair = &node->svc.census.repair;

    victim = home_of(4);
    meets  = lose_deliveries;
    run_until(node, SKY_REPAIR_DELIVER);
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.op         = SKY_OP_HAS;
    pkt.request_id = repair->share.request_id + 1u;
    pkt.src        = home_of(8);
    fx_key(pkt.key, block.number);
    node_serve(node, &pkt);
    CHECK_EQ(repair->state, SKY_REPAIR_DELIVER);
    pkt.request_id += SKY_REQUEST_IDS;
    node_serve(node, &pkt);
    CHECK_EQ(node->svc.core.counters.unsolicited, 2);
    pkt.request_id -= SKY_REQUEST_IDS;
    pkt.op     = SKY_OP_PUT;
    pkt.src    = home_of(4);
    pkt.status = SKY_STATUS_STORE_FULL;
    node_serve(node, &pkt);
    CHECK_EQ(repair->state, SKY_REPAIR_FULL);
}

static void test_only_the_source_gives(void)
{
    SKY_Packet_t pkt;

    open_filled();
    node_t             *node   = at_home(3);
    const SKY_Repair_t *repair = &node->svc.census.repair;

    meets = lose_gets;
    run_until(node, SKY_REPAIR_ASKED);
    for (uint32_t i = 0; i < 200 && !SKY_Addr_Equal(repair->at, victim); ++i)
    {
        step();
    }
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.op  = SKY_OP_GET;
    pkt.src = victim;
    fx_key(pkt.key, block.number);
    pkt.request_id = repair->request_id + 1u;
    node_serve(node, &pkt);
    pkt.request_id = repair->request_id;
    pkt.tenant     = 1;
    node_serve(node, &pkt);
    pkt.tenant = 0;
    ++pkt.key[2];
    node_serve(node, &pkt);
    CHECK_EQ(repair->state, SKY_REPAIR_ASKED);
    CHECK_EQ(node->svc.core.counters.unsolicited, 3);
}

int main(void)
{
    RUN(test_silent_sources);
    RUN(test_wrong_chunks);
    RUN(test_parts_that_do_not_fit);
    RUN(test_damaged_memory);
    RUN(test_a_chunk_lost_on_its_way);
    RUN(test_a_home_that_falls_silent);
    RUN(test_no_way_home);
    RUN(test_no_way_to_a_source);
    RUN(test_another_schedule_on_its_way_home);
    RUN(test_no_chunk_of_its_own);
    RUN(test_not_too_many_at_once);
    RUN(test_packets_that_are_not_pulled);
    RUN(test_only_the_home_takes);
    RUN(test_only_the_source_gives);
    close_sky();
    return CHECK_RESULT();
}
