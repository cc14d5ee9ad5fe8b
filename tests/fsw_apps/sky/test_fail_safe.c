/**
 * @file
 * A failed assertion in flight only counts. The code after it still ends, and stays within its memory.
 */
#include "sky_assert.h"
#include "sky_index.h"
#include "sky_service.h"
#include "sky_fetch.h"

#include "lossy.h"

static unsigned failed;

/* The hook of this program goes on, as that in flight does. */
void SKY_AssertFailed(const char *file, int line)
{
    (void)file;
    (void)line;
    ++failed;
}

static const SKY_PeerCfg_t cfg =
    {.window_initial = 4, .window_max = 32, .burst = 4, .rto_initial_us = 1000, .rto_min_us = 100, .rto_max_us = 50000};

static SKY_Peer_t     peer;
static SKY_ShareCfg_t share;
static SKY_Packet_t   pkt;
static uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];

/* More entries than cells: what is not there is searched for once around. */
static void a_full_index_is_searched_once(void)
{
    SKY_IndexCell_t cells[2];
    SKY_Index_t     index;
    uint32_t        step = 0;

    failed = 0;
    SKY_Index_Init(&index, cells, 1);
    SKY_Index_Insert(&index, 6, 0);
    SKY_Index_Insert(&index, 6, 1);
    CHECK_EQ(failed, 0);
    SKY_Index_Insert(&index, 6, 2); /* one too many */
    CHECK_EQ(failed, 1);
    CHECK_EQ(SKY_Index_Find(&index, 7, &step), SKY_INDEX_NONE);
    CHECK_EQ(failed, 1);
    SKY_Index_Remove(&index, 6, 0);
    SKY_Index_Remove(&index, 6, 2);
    step = 0;
    CHECK_EQ(SKY_Index_Find(&index, 6, &step), SKY_INDEX_NONE);
}

static void an_entry_that_is_not_there_is_not_removed(void)
{
    SKY_IndexCell_t cells[8];
    SKY_Index_t     index;
    uint32_t        step = 0;

    SKY_Index_Init(&index, cells, 4);
    SKY_Index_Insert(&index, 3, 0);
    SKY_Index_Insert(&index, 3, 1);
    failed = 0;
    SKY_Index_Remove(&index, 3, 2);
    CHECK(failed > 0);
    CHECK_EQ(SKY_Index_Find(&index, 3, &step), 0);
    CHECK_EQ(SKY_Index_Find(&index, 3, &step), 1);
}

/* The set of chunks to ask for has lost chunks that are counted as left. */
static void a_fetch_asks_for_no_chunk_behind_the_last(void)
{
    static SKY_Fetch_t fetch;
    static uint8_t     block[SKY_LIMIT_CHUNK_SET];

    Lossy_Share(&share, SKY_LIMIT_CHUNK_SET, 1, 1, 1500);
    SKY_Peer_Init(&peer, &cfg, lossy_satellite);
    CHECK(SKY_Fetch_Init(&fetch, &share, &peer, block, NULL));
    (void)memset(fetch.todo.map, 0, sizeof(fetch.todo.map));
    SKY_ChunkSet_Add(&fetch.todo, SKY_LIMIT_CHUNK_SET - 1u);
    failed = 0;
    CHECK(SKY_Fetch_Next(&fetch, 0, 1000, &pkt, payload));
    CHECK(failed > 0);
    CHECK_EQ(pkt.credit, 1);
    CHECK_EQ(fetch.on_way, 1);
    CHECK_EQ(peer.outstanding, 1);
    CHECK_EQ(fetch.state, SKY_SHARE_RUNNING); /* it lies behind the numbers of requests */
    CHECK(!SKY_Fetch_Next(&fetch, 0, 1000, &pkt, payload));
    CHECK_EQ(fetch.on_way, 1);
    CHECK_EQ(fetch.state, SKY_SHARE_RUNNING);
}

static void a_push_sends_no_chunk_behind_the_last(void)
{
    static SKY_Push_t push;
    uint16_t          asked_by[4] = {0, 0, 0, 4711}; /* room for three, and what lies behind */

    Lossy_Share(&share, 3, 1000, 10, 1500);
    SKY_Peer_Init(&peer, &cfg, lossy_satellite);
    CHECK(SKY_Push_Init(&push, &share, &peer, asked_by));
    (void)memset(push.todo.map, 0, sizeof(push.todo.map));
    failed = 0;
    CHECK_EQ(SKY_Push_Next(&push, 0, 1000, &pkt, payload), SKY_PUSH_NOTHING);
    CHECK(failed > 0);
    CHECK_EQ(asked_by[3], 4711);
    CHECK_EQ(push.on_way, 0);
    CHECK_EQ(peer.outstanding, 0);
}

/* A word of gossip counts as waiting, but has told all its neighbours. */
static void a_word_for_nobody_is_let_go(void)
{
    const LossyModel_t model = {0};
    SKY_Out_t          out;
    uint32_t           pulls = 0;

    Lossy_Start(1, &model, 1500, 20);
    lossy_service.gossip.waiting = 1u << 3;
    failed                       = 0;
    while (pulls < 100 && SKY_Service_Next(&lossy_service, 1000, &out))
    {
        ++pulls;
    }
    CHECK(failed > 0);
    CHECK(pulls < 100);
    CHECK_EQ(lossy_service.gossip.waiting, 0);
}

int main(void)
{
    RUN(a_full_index_is_searched_once);
    RUN(an_entry_that_is_not_there_is_not_removed);
    RUN(a_fetch_asks_for_no_chunk_behind_the_last);
    RUN(a_push_sends_no_chunk_behind_the_last);
    RUN(a_word_for_nobody_is_let_go);
    return CHECK_RESULT();
}
