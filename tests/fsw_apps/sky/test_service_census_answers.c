/**
 * @file
 * sky_service_census.c and sky_service_verdict.c: what is made of wrong answers to the census, and of none.
 */
#include "repair_answers_rig.h"

/* A set that is not of the question. */
static void spoil_set(SKY_Packet_t *pkt)
{
    static uint8_t payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_ChunkSet_t set;

    if (SKY_ChunkSet_Decode(pkt, &set) != SKY_STATUS_OK)
    {
        return;
    }
    const uint32_t base   = kind == 0 ? set.base + 9u : set.base;
    const uint32_t stride = kind == 1 ? set.stride + 1u : set.stride;
    const uint32_t count  = kind == 2 ? set.count + 1u : set.count;
    CHECK(SKY_ChunkSet_Init(&set, base, stride, count));
    pkt->chunk_id = base;
    pkt->payload  = payload;
    pkt->length   = kind == 3 ? 3 : (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
}

static bool spoil_has(SKY_Packet_t *pkt)
{
    if (!is_of(pkt, SKY_OP_HAS, false))
    {
        return true;
    }
    switch (kind)
    {
        case 4:
            pkt->status = SKY_STATUS_REFUSED;
            break;
        case 5:
            pkt->src = home_of(0);
            break;
        case 6:
            pkt->epoch = 2; /* it keeps the block for a later row */
            break;
        case 7:
            pkt->op = SKY_OP_GET;
            break;
        case 8:
            pkt->chunk_total = 0;
            break;
        default:
            spoil_set(pkt);
            break;
    }
    return true;
}

/* With two more lost, what one says without sense must not count as a third loss, and what it holds not as held. */
static void test_words_without_sense(void)
{
    for (kind = 0; kind < 9; ++kind)
    {
        open_filled();
        restart(home_of(5));
        const uint32_t left = held(&block);
        meets               = spoil_has;
        run(10u * PERIOD_US);
        CHECK(held(&block) >= left);
        CHECK_EQ(scrubbed(), 0);
        meets = NULL;
        run(8u * PERIOD_US);
        CHECK(is_whole(&block));
    }
}

/* A satellite that holds a chunk of another block under the key has no share of this one, and purges it. */
static void test_another_block_under_the_key(void)
{
    for (kind = 0; kind < 4; ++kind)
    {
        coded_t other = kind == 2 ? a_coded(1, 1500, 100, 7, 2) : a_coded(1, 16u * 100u + 30u, 100, 7, 2);

        open_filled();
        other.version = kind == 0 ? 7 : 0;
        other.content = kind == 1 ? 7 : 1;
        put_at(home_of(4), &other, 4, 0);
        if (kind == 3)
        {
            block.version = 8; /* an older version there gives way */
            for (uint32_t id = 0; id < block.stripe.chunk_total; ++id)
            {
                if (id % 9u != 4u)
                {
                    put_at(home_of(id), &block, id, 0);
                }
            }
        }
        run(10u * PERIOD_US);
        CHECK(scrubbed() == 1 || kind == 3); /* that one chunk can never be decoded */
        CHECK_EQ(gossip_purged(), 0);
        CHECK(degraded() > 0);
        CHECK(is_whole(&block));
    }
}

/* Answers that come twice, or to nothing. */
static void test_only_answers_count(void)
{
    SKY_Packet_t pkt;

    open_filled();
    node_t             *node   = at_home(3);
    const SKY_Census_t *census = &node->svc.census;

    at_home(6)->deaf = true;
    for (uint32_t i = 0; i < 4u * PERIOD_US / STEP_US && census->state != SKY_CENSUS_ASKING; ++i)
    {
        step();
    }
    CHECK_EQ(census->state, SKY_CENSUS_ASKING);
    CHECK_EQ(census->waiting_count, 1);
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.op         = SKY_OP_HAS;
    pkt.src        = home_of(6);
    pkt.request_id = census->request_id;
    fx_key(pkt.key, block.number);
    const uint64_t ids[] = {6u + SKY_REQUEST_IDS, 9, 5, 3};
    for (uint32_t i = 0; i < 4; ++i)
    {
        pkt.request_id = SKY_REQUEST_FIRST(census->request_id) + ids[i];
        node_serve(node, &pkt);
    }
    pkt.request_id = SKY_REQUEST_FIRST(census->request_id) + 6u;
    pkt.tenant     = 1;
    node_serve(node, &pkt);
    pkt.tenant = 0;
    ++pkt.key[3];
    node_serve(node, &pkt);
    --pkt.key[3];
    CHECK_EQ(node->svc.core.counters.unsolicited, 6);
    CHECK_EQ(census->waiting_count, 1);
    pkt.status = SKY_STATUS_UNREACHABLE;
    node_serve(node, &pkt);
    CHECK_EQ(census->waiting_count, 0);
    CHECK_EQ(node->svc.core.counters.unsolicited, 6);
    run(2u * PERIOD_US);
    CHECK_EQ(held(&block), block.stripe.chunk_total);
}

static void test_no_way(void)
{
    open_filled();
    node_t *node     = at_home(3);
    at_home(6)->deaf = true;
    for (uint32_t i = 0; i < 4u * PERIOD_US / STEP_US && node->svc.census.state != SKY_CENSUS_ASKING; ++i)
    {
        step();
    }
    SKY_Service_Unreachable(&node->svc, home_of(7)); /* it has answered */
    SKY_Service_Unreachable(&node->svc, home_of(6));
    CHECK_EQ(node->svc.census.waiting_count, 0);
    victim = home_of(5);
    step();
    run_until(node, SKY_REPAIR_IDLE);
    run(2u * PERIOD_US);
    CHECK_EQ(held(&block), block.stripe.chunk_total);
}

int main(void)
{
    RUN(test_words_without_sense);
    RUN(test_another_block_under_the_key);
    RUN(test_only_answers_count);
    RUN(test_no_way);
    close_sky();
    return CHECK_RESULT();
}
