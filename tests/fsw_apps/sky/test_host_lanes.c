/**
 * @file
 * The host's lanes, queues and windows: who may begin, how much may be on its way, and what ends a piece.
 */
#include "host_rig.h"

#define BLOCK_CHUNKS 64u

static host_rig_t      rig;
static SKY_HostPlace_t places[SATELLITES];
static SKY_HostPlace_t fallbacks[SATELLITES];
static uint8_t         up[CHUNKS_MAX * CHUNK], down[CHUNKS_MAX * CHUNK], have[CHUNKS_MAX / 8u + 1u];

static void open_with(host_sizes_t sizes)
{
    host_open(&rig, sizes);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        places[i] = host_place(i);
    }
    (void)memset(fallbacks, 0, sizeof(fallbacks));
    (void)memset(have, 0, sizeof(have));
    for (uint32_t i = 0; i < sizeof(up); ++i)
    {
        up[i] = (uint8_t)(i * 31u >> 3);
    }
}

static void begin(SKY_HostBlock_t *block)
{
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
}

static uint32_t run(SKY_HostBlock_t *block)
{
    begin(block);
    host_run(&rig);
    return block->status;
}

static void put(uint32_t number, uint32_t chunks, const SKY_HostPlace_t *where, uint32_t servers)
{
    SKY_HostBlock_t block = host_block(SKY_HOST_PUT, number, chunks, where, servers, up);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
}

/* A block with one place to fall back to, from the first satellite. */
static SKY_HostBlock_t with_fallback(uint32_t kind, uint32_t number, uint32_t chunks, uint32_t satellite)
{
    SKY_HostBlock_t block = host_block(kind, number, chunks, places, 1, down);

    fallbacks[0]    = host_place(satellite);
    block.fallbacks = fallbacks;
    block.have      = have;
    block.rounds    = 1;
    return block;
}

static void run_once(void)
{
    (void)SKY_Host_Run(&rig.host, rig.now_us, true);
}

/* ---- pieces and lanes ------------------------------------------------------------------------------------------------ */

static void test_more_servers_than_chunks(void)
{
    open_with(host_usual);
    put(1, 2, places, 4);
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 2, places, 4, down);

    CHECK_EQ(SKY_Host_Pieces(&rig.host, &block), 2);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(memcmp(up, down, block.stripe.block_len) == 0);
    CHECK_EQ(rig.sent[2] + rig.sent[3], 0);
    host_close(&rig);
}

/* A satellite has so many lanes; the next piece waits for one. */
static void test_small_shares_fill_all_lanes(void)
{
    SKY_HostBlock_t blocks[SKY_HOST_LANES + 4u];

    open_with((host_sizes_t){8, SKY_HOST_LANES + 4u, 64, 64, true});
    for (uint32_t i = 0; i < SKY_HOST_LANES + 4u; ++i)
    {
        blocks[i] = host_block(SKY_HOST_PUT, i, 1, places, 1, up);
        begin(&blocks[i]);
    }
    run_once();
    CHECK_EQ(rig.host.peers.peers[0].lanes_busy, (1u << SKY_HOST_LANES) - 1u);
    CHECK(rig.host.peers.peers[0].small_first != SKY_HOST_NONE);
    host_run(&rig);
    for (uint32_t i = 0; i < SKY_HOST_LANES + 4u; ++i)
    {
        CHECK_EQ(blocks[i].status, SKY_STATUS_DONE);
    }
    host_close(&rig);
}

/* A chunk larger than a packet goes up in parts, and comes down in parts. */
static void test_chunks_in_parts(void)
{
    host_sizes_t sizes = host_usual;

    open_with(sizes);
    rig.host.cfg.packet_bytes = 600;
    put(1, 8, places, 2);
    CHECK(rig.sent[0] >= 9); /* four chunks of two parts, and a question */
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 8, places, 2, down);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(memcmp(up, down, block.stripe.block_len) == 0);
    host_close(&rig);
}

/* The lane of a request that is over may have begun another: what was meant for the first does not reach that. */
static void test_a_lane_that_is_used_again(void)
{
    open_with(host_usual);
    SKY_HostBlock_t block = host_block(SKY_HOST_PUT, 1, 8, places, 1, up);

    begin(&block);
    run_once();
    const uint64_t before = rig.blocks.lanes[0].request_id;

    SKY_Host_Stop(&rig.host, rig.now_us, &block, SKY_STATUS_CANCELLED);
    begin(&block);
    run_once();
    CHECK(rig.blocks.lanes[0].request_id != 0 && rig.blocks.lanes[0].request_id != before);
    SKY_Host_RefuseTooLarge(&rig.host, rig.now_us, before | 1u);
    CHECK_EQ(block.status, SKY_STATUS_RUNNING);
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
    host_close(&rig);
}

/* ---- satellites ------------------------------------------------------------------------------------------------------ */

static void test_the_longest_idle_is_forgotten(void)
{
    open_with((host_sizes_t){3, 16, 64, 64, true});
    put(1, 2, &places[0], 1);
    put(2, 2, &places[1], 1);
    put(3, 2, &places[2], 1);
    put(4, 2, &places[0], 1);
    put(5, 2, &places[3], 1); /* in the place of the second, which is not the first of the table */
    CHECK_EQ(rig.host.peers.peers[0].peer.addr.slot, 1);
    CHECK_EQ(rig.host.peers.peers[1].peer.addr.slot, 4);
    CHECK_EQ(rig.host.peers.peers[2].peer.addr.slot, 3);
    host_close(&rig);
}

/* While a satellite is busy another block reaches it over another endpoint: what begins from then on goes there. */
static void test_another_way_to_a_busy_satellite(void)
{
    SKY_HostPlace_t detour = host_place(0);
    SKY_HostBlock_t first, second;

    open_with(host_usual);
    detour.entry_slot = 2;
    detour.endpoint   = ENDPOINT0 + 1u;
    first             = host_block(SKY_HOST_PUT, 1, 8, places, 1, up);
    second            = host_block(SKY_HOST_PUT, 2, 8, &detour, 1, up);
    begin(&first);
    run_once();
    CHECK_EQ(rig.host.ways_changed, false);
    begin(&second);
    CHECK_EQ(rig.host.ways_changed, true);
    CHECK_EQ(rig.sent[1], 0);
    run_once();
    CHECK(rig.sent[1] > 0);
    CHECK_EQ(rig.host.peers.ways[0].endpoint, ENDPOINT0 + 1u);
    SKY_Host_Stop(&rig.host, rig.now_us, NULL, SKY_STATUS_CANCELLED);
    host_close(&rig);
}

/* Who was alone has more on its way than its share is when others come. It waits until that has come. */
static void test_a_share_that_grows_smaller(void)
{
    SKY_HostBlock_t blocks[SATELLITES];

    open_with(host_usual);
    put(9, BLOCK_CHUNKS, &places[0], 1);
    for (uint32_t i = 1; i < SATELLITES; ++i)
    {
        put(i, BLOCK_CHUNKS, &places[i], 1);
    }
    SKY_Host_SetBudget(&rig.host, 16);
    blocks[0] = host_block(SKY_HOST_GET, 9, BLOCK_CHUNKS, &places[0], 1, down);
    begin(&blocks[0]);
    run_once();
    CHECK_EQ(rig.host.peers.peers[0].peer.outstanding, 16);
    const uint32_t sent = rig.sent[0];

    for (uint32_t i = 1; i < SATELLITES; ++i)
    {
        blocks[i] = host_block(SKY_HOST_GET, i, BLOCK_CHUNKS, &places[i], 1, down + (size_t)i * BLOCK_CHUNKS * CHUNK);
        begin(&blocks[i]);
    }
    rig.host.peers.peers[0].ready = true;
    run_once();
    CHECK_EQ(rig.sent[0], sent);
    host_run(&rig);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        CHECK_EQ(blocks[i].status, SKY_STATUS_DONE);
    }
    host_close(&rig);
}

/* The receive buffer has room for one chunk: the second satellite is asked when the first has answered. */
static void test_a_buffer_for_one_chunk(void)
{
    open_with(host_usual);
    put(1, 4, places, 1);
    SKY_Host_SetBudget(&rig.host, 1);
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 4, places, 2, down);
    const uint32_t  first = rig.sent[0];

    begin(&block);
    run_once();
    CHECK_EQ(rig.sent[0] - first + rig.sent[1], 1);
    host_run(&rig);
    CHECK(rig.sent[1] > 0);
    CHECK_EQ(block.status, SKY_STATUS_MISS); /* the first has another block of this name, the second nothing */
    host_close(&rig);
}

/* ---- verdicts -------------------------------------------------------------------------------------------------------- */

/* A satellite holds another block of this name. Elsewhere this one may be; if it is not, that is what is said. */
static void test_another_block_of_the_name(void)
{
    open_with(host_usual);
    put(1, 8, &places[0], 1);
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 4, places, 1, down);

    CHECK_EQ(run(&block), SKY_STATUS_BAD_KEY);
    CHECK_EQ(block.last_status, SKY_STATUS_BAD_KEY);
    put(1, 4, &places[1], 1);
    block = with_fallback(SKY_HOST_GET, 1, 4, 1);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(memcmp(up, down, block.stripe.block_len) == 0);
    block = with_fallback(SKY_HOST_GET, 1, 4, 2); /* which has nothing */
    CHECK_EQ(run(&block), SKY_STATUS_BAD_KEY);
    CHECK_EQ(block.failed_slot, 1);
    put(1, 8, &places[2], 1); /* now it holds another one too: the first to say so is named */
    block        = with_fallback(SKY_HOST_GET, 1, 4, 2);
    fallbacks[1] = host_place(3);
    block.rounds = 2;
    CHECK_EQ(run(&block), SKY_STATUS_BAD_KEY);
    CHECK_EQ(block.failed_slot, 1);
    host_close(&rig);
}

static SKY_HostBlock_t as(SKY_HostBlock_t block, uint64_t version, uint32_t content)
{
    block.block_version = version;
    block.content       = content;
    return block;
}

/* Newer versions replace older ones. Older ones, and other contents, are told what is held, and a get never takes another one. */
static void test_versions(void)
{
    open_with(host_usual);
    SKY_HostBlock_t block = as(host_block(SKY_HOST_PUT, 1, 8, places, 2, up), 7, 70);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.held_version, 0);
    block = as(host_block(SKY_HOST_PUT, 1, 3, places, 2, up + 1), 6, 60);
    CHECK_EQ(run(&block), SKY_STATUS_OLD_VERSION);
    CHECK_EQ(block.last_status, SKY_STATUS_OLD_VERSION);
    CHECK_EQ(block.held_version, 7);
    block = as(host_block(SKY_HOST_PUT, 1, 8, places, 2, up), 7, 71);
    CHECK_EQ(run(&block), SKY_STATUS_BAD_KEY);
    CHECK_EQ(block.held_version, 7);
    block = as(host_block(SKY_HOST_PUT, 1, 8, places, 2, up), 7, 70); /* once more */
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    block = as(host_block(SKY_HOST_PUT, 1, 3, places, 2, up + 1), 8, 80);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);

    block = as(host_block(SKY_HOST_GET, 1, 3, places, 2, down), 8, 80);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(memcmp(up + 1, down, block.stripe.block_len) == 0);
    block = as(host_block(SKY_HOST_GET, 1, 8, places, 2, down), 7, 70); /* a newer one is there */
    CHECK_EQ(run(&block), SKY_STATUS_BAD_KEY);
    block = as(host_block(SKY_HOST_GET, 1, 3, places, 2, down), 8, 81);
    CHECK_EQ(run(&block), SKY_STATUS_BAD_KEY);
    block = as(host_block(SKY_HOST_GET, 1, 3, places, 2, down), 0, 0);
    CHECK_EQ(run(&block), SKY_STATUS_BAD_KEY);
    host_close(&rig);
}

/* A share moves: its old place has an older version. What was put at the new place is found behind it. */
static void test_an_older_version_at_the_first_place(void)
{
    open_with(host_usual);
    SKY_HostBlock_t block = as(host_block(SKY_HOST_PUT, 1, 8, &places[0], 1, up + 1), 7, 70);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    block = as(host_block(SKY_HOST_PUT, 1, 8, &places[1], 1, up), 8, 80);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    block = as(with_fallback(SKY_HOST_GET, 1, 8, 1), 8, 80);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK(memcmp(up, down, block.stripe.block_len) == 0);
    block = as(with_fallback(SKY_HOST_GET, 1, 8, 2), 8, 80); /* which has nothing */
    CHECK_EQ(run(&block), SKY_STATUS_MISS);
    host_close(&rig);
}

/* A chunk that was lost on its way is missing as well, but nobody denies it. */
static void test_what_is_lost_is_not_denied(void)
{
    uint8_t key[SKY_KEY_BYTES];

    open_with(host_usual);
    put(1, 8, places, 1);
    fx_key(key, 1);
    CHECK(SKY_Store_Drop(&rig.satellites[0].store, SKY_Store_Find(&rig.satellites[0].store, 0, key), 5));
    SKY_HostBlock_t block = host_block(SKY_HOST_GET, 1, 8, places, 1, down);

    begin(&block);
    run_once();
    --rig.wire_count; /* chunk 0 comes first */
    (void)memmove(&rig.wire[0], &rig.wire[1], rig.wire_count * sizeof(rig.wire[0]));
    host_run(&rig);
    CHECK_EQ(block.status, SKY_STATUS_MISS);
    CHECK_EQ(block.failed_chunk, 5);
    host_close(&rig);
}

/* What only the host may say is not believed of a satellite, nor what is no status at all. */
static void test_a_word_that_no_satellite_has(void)
{
    static const uint32_t     kinds[] = {SKY_HOST_PUT, SKY_HOST_GET};
    static const SKY_Status_t words[] = {SKY_STATUS_EXPIRED, SKY_STATUS_COUNT, SKY_STATUS_MISS, SKY_STATUS_RUNNING, UINT8_MAX};

    for (uint32_t kind = 0; kind < 2u; ++kind)
    {
        for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i)
        {
            open_with(host_usual);
            rig.refusal[0]        = words[i];
            rig.refusals          = 1000;
            SKY_HostBlock_t block = host_block(kinds[kind], 1, 8, places, 1, down);

            CHECK_EQ(run(&block), SKY_STATUS_REFUSED);
            CHECK_EQ(block.failed_slot, 1);
            host_close(&rig);
        }
    }
}

/* A response of the right request, but to another key, is for nobody. */
static void test_an_answer_about_another_block(void)
{
    static const uint32_t kinds[] = {SKY_HOST_PUT, SKY_HOST_GET};
    SKY_Packet_t          pkt;
    uint8_t               bytes[SKY_RESPONSE_BYTES];

    for (uint32_t i = 0; i < 2u; ++i)
    {
        open_with(host_usual);
        rig.is_silent[0]      = true;
        SKY_HostBlock_t block = host_block(kinds[i], 1, 8, places, 1, down);

        begin(&block);
        run_once();
        (void)memset(&pkt, 0, sizeof(pkt));
        pkt.apid       = SKY_APID_KVC;
        pkt.seq_flags  = SKY_SEQ_WHOLE;
        pkt.op         = kinds[i] == SKY_HOST_PUT ? SKY_OP_PUT : SKY_OP_GET;
        pkt.status     = SKY_STATUS_TOO_LARGE;
        pkt.src        = (SKY_Addr_t){1, 1};
        pkt.request_id = rig.blocks.lanes[0].request_id | 1u;
        fx_key(pkt.key, 2);
        CHECK_EQ(SKY_Packet_Encode(&pkt, bytes, sizeof(bytes)), sizeof(bytes));
        SKY_Host_Receive(&rig.host, rig.now_us, ENDPOINT0, bytes, sizeof(bytes));
        CHECK_EQ(block.status, SKY_STATUS_RUNNING);
        fx_key(pkt.key, 1);
        CHECK_EQ(SKY_Packet_Encode(&pkt, bytes, sizeof(bytes)), sizeof(bytes));
        SKY_Host_Receive(&rig.host, rig.now_us, ENDPOINT0, bytes, sizeof(bytes));
        CHECK_EQ(block.status, SKY_STATUS_TOO_LARGE);
        host_close(&rig);
    }
}

/* ---- time ------------------------------------------------------------------------------------------------------------ */

/* The patience with a satellite ends for all that it is asked at the same moment, also for what was asked later. */
static void test_silence_ends_all_lanes_of_a_satellite(void)
{
    SKY_HostBlock_t first, second;

    open_with(host_usual);
    put(1, 8, &places[1], 1);
    put(2, 8, &places[1], 1);
    rig.is_silent[0] = true;
    first            = with_fallback(SKY_HOST_GET, 1, 8, 1);
    second           = with_fallback(SKY_HOST_GET, 2, 8, 1);

    static uint8_t others[8u * CHUNK], kept[8];

    second.data        = others;
    second.have        = kept;
    second.deadline_ms = 20000; /* it would be patient for longer */
    begin(&first);
    begin(&second);
    host_run(&rig);
    CHECK_EQ(first.status, SKY_STATUS_DONE);
    CHECK_EQ(second.status, SKY_STATUS_DONE);
    CHECK(second.duration_us < first.duration_us + 10u * RTT_US);
    host_close(&rig);
}

/* The host is run again when deadline and patience have both passed: the block ends. */
static void test_a_host_that_is_run_late(void)
{
    open_with(host_usual);
    rig.is_silent[0]      = true;
    SKY_HostBlock_t block = with_fallback(SKY_HOST_GET, 1, 8, 1);

    begin(&block);
    run_once();
    rig.now_us += 6000000u;
    (void)SKY_Host_Run(&rig.host, rig.now_us, false); /* while datagrams are still to be read no timer acts */
    CHECK_EQ(block.status, SKY_STATUS_RUNNING);
    run_once();
    CHECK_EQ(block.status, SKY_STATUS_EXPIRED);
    CHECK_EQ(rig.sent[1], 0);
    host_close(&rig);
}

/* ---- the host's number ----------------------------------------------------------------------------------------------- */

/* Several lanes, over two gateways, some of which have sent nothing yet, when one gateway says that the number is taken. */
static void test_a_new_number_for_all_lanes(void)
{
    static const uint32_t kinds[] = {SKY_HOST_PUT, SKY_HOST_GET};
    host_sizes_t          sizes   = host_usual;

    sizes.keeps_number = false;
    for (uint32_t kind = 0; kind < 2u; ++kind)
    {
        SKY_HostBlock_t blocks[4];
        static uint8_t  data[4][BLOCK_CHUNKS * CHUNK];

        open_with(sizes);
        for (uint32_t i = 0; kinds[kind] == SKY_HOST_GET && i < 4u; ++i)
        {
            put(i, BLOCK_CHUNKS, &places[i / 3u], 1);
        }
        for (uint32_t i = 0; i < 4u; ++i)
        {
            (void)memcpy(data[i], up, sizeof(data[i]));
            blocks[i] = host_block(kinds[kind], i, BLOCK_CHUNKS, &places[i / 3u], 1, data[i]);
            begin(&blocks[i]);
        }
        rig.refusal[0] = SKY_STATUS_REFUSED; /* of the old number, twice */
        rig.refusals   = 2;

        uint32_t redraws = 0;

        while (rig.host.running > 0) /* the first block that comes through ends the count */
        {
            const uint64_t due_us = SKY_Host_Run(&rig.host, rig.now_us, true);

            redraws    = rig.host.redraws > redraws ? rig.host.redraws : redraws;
            rig.now_us = host_take(&rig, due_us) || due_us == UINT64_MAX ? rig.now_us : due_us;
        }
        for (uint32_t i = 0; i < 4u; ++i)
        {
            CHECK_EQ(blocks[i].status, SKY_STATUS_DONE);
            CHECK(memcmp(data[i], up, blocks[i].stripe.block_len) == 0);
        }
        CHECK_EQ(redraws, 1);
        host_close(&rig);
    }
}

int main(void)
{
    RUN(test_more_servers_than_chunks);
    RUN(test_small_shares_fill_all_lanes);
    RUN(test_chunks_in_parts);
    RUN(test_a_lane_that_is_used_again);
    RUN(test_the_longest_idle_is_forgotten);
    RUN(test_another_way_to_a_busy_satellite);
    RUN(test_a_share_that_grows_smaller);
    RUN(test_a_buffer_for_one_chunk);
    RUN(test_another_block_of_the_name);
    RUN(test_versions);
    RUN(test_an_older_version_at_the_first_place);
    RUN(test_what_is_lost_is_not_denied);
    RUN(test_a_word_that_no_satellite_has);
    RUN(test_an_answer_about_another_block);
    RUN(test_silence_ends_all_lanes_of_a_satellite);
    RUN(test_a_host_that_is_run_late);
    RUN(test_a_new_number_for_all_lanes);
    return CHECK_RESULT();
}
