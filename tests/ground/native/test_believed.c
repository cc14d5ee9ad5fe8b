/**
 * @file
 * What a ground believes: of a share that two places hold in part, each part comes from where it is; of what a satellite holds
 * only its own word counts; and what leaves in one bundle arrives as the packets that it was made of.
 */
#define _GNU_SOURCE
#include "grounds.h"

#define CHUNK  1000u
#define CHUNKS 21u
#define BLOCK  ((CHUNKS - 1u) * CHUNK + 1u)

static bool    is_forged; /* atomic: HAS of the first satellite is answered by the second */
static uint8_t block_up[BLOCK], block_down[BLOCK];

static void before_responses(uint32_t satellite)
{
    (void)satellite;
}

static bool passes(uint32_t satellite, rig_out_t *response)
{
    if (satellite == 0 && response->pkt.op == SKY_OP_HAS && __atomic_load_n(&is_forged, __ATOMIC_RELAXED))
    {
        static uint8_t payload[SKY_CHUNKSET_MAX_BYTES];

        (void)memcpy(payload, response->pkt.payload, response->pkt.length);
        response->pkt.payload  = payload;
        response->pkt.src.slot = 2;
        response->len          = (uint32_t)SKY_Packet_Encode(&response->pkt, response->bytes, sizeof(response->bytes));
    }
    return true;
}

static SKYC_Ground_t *open_ground(uint32_t shares)
{
    const SKYC_Config_t client = {.packet_bytes = 1472};
    SKYC_GroundConfig_t config = ground_config(4, 16, CHUNK);

    config.servers = shares;
    return open_with(&config, &client);
}

static SKYC_Op_t put_of(uint32_t number)
{
    return move_of(SKY_GROUND_PUT, number, block_up, BLOCK, CHUNK);
}

static void test_each_part_comes_from_where_it_is(void)
{
    SKYC_Ground_t *ground = open_ground(1); /* so that the whole share is the block */
    SKYC_Box_t    *box    = new_box(ground, false);
    SKYC_Op_t      get    = move_of(SKY_GROUND_GET, 1, block_down, BLOCK, CHUNK);

    for (uint16_t slot = 1; slot <= SATELLITES; ++slot)
    {
        follow(ground, &slot, 1);
        CHECK_EQ(ended(ground, box, put_of(1)), SKY_STATUS_DONE);
    }
    follow(ground, (const uint16_t[]){1, 2}, 2);
    for (uint32_t id = 0; id < CHUNKS; ++id) /* nobody sends anything meanwhile */
    {
        CHECK(SKY_Store_Drop(&rigs[id % 2u].store, SKY_Store_Find(&rigs[id % 2u].store, 0, get.core.key), id));
    }
    CHECK_EQ(status_of(ground, box, &get), SKY_STATUS_DONE);
    CHECK_EQ(get.core.block.chunks, CHUNKS);
    CHECK(get.core.is_passed);
    CHECK(memcmp(block_up, block_down, BLOCK) == 0);
    SKYC_Op_End(&get);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_a_short_packet_ends_its_bundle(void)
{
    SKYC_Ground_t  *ground = open_ground(1);
    SKYC_Box_t     *box    = new_box(ground, false);
    SKYC_Op_t       puts[] = {put_of(2), put_of(4)};
    SKYC_Op_t      *ops[]  = {&puts[0], &puts[1]};
    SKYC_Counters_t counters;

    follow(ground, (const uint16_t[]){1}, 1);
    __atomic_store_n(&undecoded, 0, __ATOMIC_RELAXED);
    /* Behind the chunks of one block its question, then the chunks of the other. */
    CHECK_EQ(SKYC_Ground_Submit(ground, box, ops, 2), 0);
    CHECK_EQ(SKYC_Box_Await(box, 2, WAIT_US), 2);
    for (uint32_t i = 0; i < 2; ++i)
    {
        SKYC_Op_t *op = SKYC_Box_Take(box);

        CHECK_EQ(op->core.status, SKY_STATUS_DONE);
        SKYC_Op_End(op);
    }
    SKYC_Ground_Counters(ground, &counters);
    CHECK(counters.tx_calls < counters.tx_packets);
    CHECK_EQ(__atomic_load_n(&undecoded, __ATOMIC_RELAXED), 0);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

static void test_only_its_own_word_counts(void)
{
    SKYC_Ground_t  *ground = open_ground(SATELLITES);
    SKYC_Box_t     *box    = new_box(ground, false);
    SKYC_Op_t       put    = put_of(3);
    SKYC_Counters_t counters;

    follow(ground, (const uint16_t[]){1}, 1);
    put.wants_served = true;
    __atomic_store_n(&is_forged, true, __ATOMIC_RELAXED);
    CHECK_EQ(status_of(ground, box, &put), SKY_STATUS_DONE); /* the second one stands in for the first */
    CHECK_EQ(put.core.block.served_count, SATELLITES);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        CHECK_EQ(put.core.served[i].chunks, put.core.served[i].slot == 2u ? CHUNKS : 0u);
    }
    for (uint32_t id = 0; id < CHUNKS; ++id) /* it has said so itself, and has all of them */
    {
        CHECK(SKY_Store_Drop(&rigs[1].store, SKY_Store_Find(&rigs[1].store, 0, put.core.key), id));
    }
    SKYC_Op_End(&put);
    SKYC_Ground_Counters(ground, &counters);
    CHECK(counters.rx_stale > 0);
    __atomic_store_n(&is_forged, false, __ATOMIC_RELAXED);
    CHECK_EQ(ended(ground, box, put_of(3)), SKY_STATUS_DONE);
    SKYC_Box_Free(box);
    SKYC_Ground_Free(ground);
}

int main(void)
{
    const pthread_t flight = launch();

    for (uint32_t i = 0; i < BLOCK; ++i)
    {
        block_up[i] = (uint8_t)(1u + i % 255u); /* never what a buffer is that nobody has written to */
    }
    RUN(test_each_part_comes_from_where_it_is);
    RUN(test_a_short_packet_ends_its_bundle);
    RUN(test_only_its_own_word_counts);
    land(flight);
    return CHECK_RESULT();
}
