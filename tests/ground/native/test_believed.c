/**
 * @file
 * What a client believes: of a share that two places hold in part, each part comes from where it is; of what a satellite holds
 * only its own word counts; and what leaves in one bundle arrives as the packets that it was made of.
 */
#define _GNU_SOURCE
#include "satellites.h"

#define CHUNK    1000u
#define CHUNKS   21u
#define BLOCK    ((CHUNKS - 1u) * CHUNK + 1u)
#define CALL_MS  20000u
#define SHORT_MS 500u

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

/* One server, so that its whole share is the block. */
static SKY_HostBlock_t block_at(const SKY_HostPlace_t *server, uint8_t *data, uint32_t number)
{
    SKY_HostBlock_t block = {0};

    fx_key(block.key, number);
    block.stripe.block_len   = BLOCK;
    block.stripe.chunk_len   = CHUNK;
    block.stripe.chunk_total = CHUNKS;
    block.deadline_ms        = CALL_MS;
    block.data               = data;
    block.servers            = server;
    block.server_count       = 1;
    return block;
}

static void put(SKYC_Client_t *client, const SKY_HostPlace_t *server, uint32_t number)
{
    SKY_HostBlock_t up = block_at(server, block_up, number);

    CHECK_EQ(SKYC_Put(client, &up, 1), 0);
    CHECK_EQ(up.status, SKY_STATUS_DONE);
    CHECK_EQ(up.chunks, CHUNKS);
}

static void test_each_part_comes_from_where_it_is(void)
{
    SKYC_Client_t  *client = SKYC_Open(&(SKYC_Config_t){.packet_bytes = 1472}, NULL);
    SKY_HostBlock_t down   = block_at(&servers[0], block_down, 1);

    put(client, &servers[0], 1);
    put(client, &servers[1], 1);
    for (uint32_t id = 0; id < CHUNKS; ++id) /* nobody sends anything meanwhile */
    {
        CHECK(SKY_Store_Drop(&rigs[id % 2u].store, SKY_Store_Find(&rigs[id % 2u].store, 0, down.key), id));
    }
    down.fallbacks = &servers[1];
    down.rounds    = 1;
    CHECK_EQ(SKYC_Get(client, &down, 1), 0);
    CHECK_EQ(down.status, SKY_STATUS_DONE);
    CHECK_EQ(down.chunks, CHUNKS);
    CHECK(memcmp(block_up, block_down, BLOCK) == 0);
    SKYC_Close(client);
}

static void test_a_short_packet_ends_its_bundle(void)
{
    SKYC_Client_t  *client = SKYC_Open(&(SKYC_Config_t){.packet_bytes = 1472}, NULL);
    SKYC_Counters_t counters;

    SKY_HostBlock_t up[] = {block_at(&servers[0], block_up, 2), block_at(&servers[0], block_up, 4)};

    __atomic_store_n(&undecoded, 0, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Put(client, up, 2), 0); /* behind the chunks of one block its question, then the chunks of the other */
    CHECK_EQ(up[0].status, SKY_STATUS_DONE);
    CHECK_EQ(up[1].status, SKY_STATUS_DONE);
    SKYC_Counters(client, &counters);
    CHECK(counters.tx_calls < counters.tx_packets);
    CHECK_EQ(__atomic_load_n(&undecoded, __ATOMIC_RELAXED), 0);
    SKYC_Close(client);
}

static void test_only_its_own_word_counts(void)
{
    SKYC_Client_t  *client = SKYC_Open(&(SKYC_Config_t){.packet_bytes = 1472}, NULL);
    SKY_HostBlock_t up     = block_at(&servers[0], block_up, 3);
    SKYC_Counters_t counters;

    up.deadline_ms = SHORT_MS;
    __atomic_store_n(&is_forged, true, __ATOMIC_RELAXED);
    CHECK_EQ(SKYC_Put(client, &up, 1), 0);
    CHECK_EQ(up.status, SKY_STATUS_EXPIRED);
    CHECK_EQ(up.chunks, 0);
    SKYC_Counters(client, &counters);
    CHECK(counters.rx_stale > 0);
    __atomic_store_n(&is_forged, false, __ATOMIC_RELAXED);
    put(client, &servers[0], 3);
    SKYC_Close(client);
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
