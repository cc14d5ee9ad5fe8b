/**
 * @file
 * sky_service_gossip.c: what neighbours do when a satellite evicts its share of a block.
 */
#include "constellation_rig.h"

#define ROOM   8u /* slots of each store: an entry takes one, as a chunk does */
#define CREDIT 2u /* of sky_service_gossip.c */

static fx_block_t old, other;

/* Both blocks lie on all nine servers; the old one is the next to be evicted, and the last PUT was long ago. */
static void open_filled(bool gossip)
{
    old   = a_block(1, 18);
    other = a_block(2, 18);
    sky_open(ROOM, gossip);
    sky_put_all(&old);
    sky_put_all(&other);
    CHECK_EQ(held(&old), 18);
    now_us += QUIET_US;
}

/* Put blocks of one chunk at one satellite until it has evicted the old one. */
static void press(SKY_Addr_t addr)
{
    for (uint32_t number = 100; held_at(addr, &old) > 0 && number < 100 + ROOM; ++number)
    {
        const fx_block_t more = a_block(number, 1);

        sky_put(addr, &more, 0);
    }
    CHECK_EQ(held_at(addr, &old), 0);
}

static uint64_t told(void)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < NODES; ++i)
    {
        count += nodes[i].svc.core.counters.gossip_tx;
    }
    return count;
}

/* A word about a block as a neighbour, or somebody else, would send it. */
static void word_from(SKY_Addr_t src, SKY_Addr_t dst, const fx_block_t *block, uint16_t credit, SKY_Packet_t *pkt)
{
    (void)memset(pkt, 0, sizeof(*pkt));
    pkt->is_request = true;
    pkt->apid       = SKY_APID_KVC;
    pkt->seq_flags  = SKY_SEQ_WHOLE;
    pkt->op         = SKY_OP_PURGE;
    pkt->flags      = SKY_FLAG_GOSSIP;
    pkt->hop_limit  = SKY_LIMIT_HOP_LIMIT;
    pkt->credit     = credit;
    pkt->src        = src;
    pkt->dst        = dst;
    fx_key(pkt->key, block->number);
}

static void hear(SKY_Addr_t src, SKY_Addr_t dst, const fx_block_t *block, uint16_t credit)
{
    SKY_Packet_t pkt;

    word_from(src, dst, block, credit, &pkt);
    node_serve(node_at(dst), &pkt);
}

/* The same about a block with parity, of so many data chunks. */
static void code_word(SKY_Packet_t *pkt, uint32_t chunks, uint8_t k, uint8_t m)
{
    pkt->code_k      = k;
    pkt->code_m      = m;
    pkt->code_scheme = SKY_CODE_CAUCHY;
    pkt->block_len   = chunks * CHUNK;
    pkt->chunk_len   = CHUNK;
    pkt->chunk_total = chunks + (chunks + 6u) / 7u * m;
}

static void test_all_shares_go(void)
{
    for (uint32_t i = 0; i < 9; ++i)
    {
        open_filled(true);
        press(server(i));
        CHECK(fleet_count == 4);
        CHECK_EQ(sky_settle(), told());
        CHECK(told() <= 4u * NODES); /* nothing circles */
        CHECK_EQ(held(&old), 0);
        CHECK_EQ(held(&other), 18);
        CHECK_EQ(held_at(server(i), &other), 2);
        uint64_t purged = 0;
        for (uint32_t j = 0; j < NODES; ++j)
        {
            purged += nodes[j].svc.core.counters.gossip_purged;
            CHECK_EQ(nodes[j].svc.core.counters.purges, 0);
        }
        CHECK_EQ(purged, 16);
    }
}

/* Seven of nine shares suffice: an eviction is no news, and no word about another block under the key takes the others. */
static void test_a_block_with_parity_stays(void)
{
    SKY_Packet_t pkt;

    old   = a_block(1, 18);
    other = a_block(2, 18);
    sky_open(ROOM, true);
    sky_put_coded(&old);
    sky_put_all(&other);
    CHECK_EQ(held(&old), 18);
    now_us += QUIET_US;
    press(server(0));
    CHECK_EQ(sky_settle(), 0);
    CHECK_EQ(held(&old), 16);
    CHECK_EQ(told(), 0);
    hear(server(1), server(2), &old, CREDIT); /* an old share without parity was evicted somewhere */
    word_from(server(4), server(5), &old, CREDIT, &pkt);
    code_word(&pkt, 15, 6, 3); /* of another stripe */
    node_serve(node_at(server(5)), &pkt);
    code_word(&pkt, 14, 0, 2); /* of none */
    node_serve(node_at(server(5)), &pkt);
    code_word(&pkt, 14, 7, 2);
    pkt.content = 9;
    node_serve(node_at(server(5)), &pkt);
    pkt.content       = 0;
    pkt.block_version = 9;
    node_serve(node_at(server(5)), &pkt);
    (void)sky_settle();
    CHECK_EQ(held(&old), 16);
    CHECK_EQ(held(&other), 18);
}

/* Parts of a chunk make room like others, and nobody misses them. */
static void test_an_eviction_of_parts_is_no_news(void)
{
    const fx_block_t incomplete = a_block(3, 1);
    uint8_t          data[CHUNK];
    SKY_Packet_t     pkt;

    sky_open(ROOM, true);
    fx_put(&incomplete, 0, data, &pkt);
    fx_part(&pkt, 0, CHUNK / 2u);
    node_serve(node_at(centre), &pkt);
    for (uint32_t number = 100; number < 104; ++number)
    {
        const fx_block_t more = a_block(number, 1);

        sky_put(centre, &more, 0);
        CHECK_EQ(held_at(centre, &more), 1);
    }
    CHECK_EQ(node_at(centre)->store.counters.evicted_blocks, 1);
    CHECK_EQ(node_at(centre)->store.counters.evicted_chunks, 0);
    CHECK_EQ(told(), 0);
    CHECK_EQ(fleet_count, 0);
}

/* Who hears that no more can be decoded purges what it holds, and tells it on. */
static void test_a_block_with_parity_goes_by_a_word_of_its_own(void)
{
    SKY_Packet_t pkt;

    old   = a_block(1, 18);
    other = a_block(1, 18); /* the same key */
    sky_open(ROOM, true);
    sky_put_coded(&old);
    now_us += QUIET_US;
    word_from((SKY_Addr_t){1, 4}, server(1), &old, CREDIT, &pkt);
    code_word(&pkt, 14, 7, 2);
    node_serve(node_at(server(1)), &pkt);
    (void)sky_settle();
    CHECK_EQ(held(&old), 0);

    sky_put_all(&other); /* without parity: another block */
    now_us += QUIET_US;
    node_serve(node_at(server(1)), &pkt);
    (void)sky_settle();
    CHECK_EQ(held(&other), 18);
}

/* A word about a block with parity means its content exactly, and takes nothing that waits for a row to come, whatever row it names. */
static void test_a_word_of_parity_is_exact(void)
{
    static const struct
    {
        uint32_t content, epoch;
        bool     goes;
    } cases[] = {{0, 0, false}, {71, 0, false}, {70, 5, false}, {70, 0, true}};

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        SKY_Packet_t pkt;
        uint8_t      data[CHUNK];

        old = a_block(1, 18);
        sky_open(ROOM, true);
        fx_put(&old, 4, data, &pkt);
        code_word(&pkt, 14, 7, 2);
        pkt.content = 70;
        pkt.epoch   = cases[i].epoch;
        node_serve(node_at(centre), &pkt);
        CHECK_EQ(held_at(centre, &old), 1);
        now_us += QUIET_US;
        word_from((SKY_Addr_t){3, 3}, centre, &old, CREDIT, &pkt);
        code_word(&pkt, 14, 7, 2);
        pkt.content = cases[i].content;
        pkt.epoch   = 9;
        node_serve(node_at(centre), &pkt);
        CHECK_EQ(held_at(centre, &old), cases[i].goes ? 0 : 1);
        fleet_count = 0;
    }
}

/* A word without parity means one content, and nothing that is kept for a row to come; the words that a satellite begins name both. */
static void test_a_word_names_content_and_row(void)
{
    static const struct
    {
        uint32_t content, epoch;
        bool     goes;
    } cases[] = {{71, 3, false}, {70, 2, false}, {70, 3, true}, {0, 4, true}};
    SKY_Packet_t pkt;

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        uint8_t data[CHUNK];

        old = a_block(1, 2);
        sky_open(ROOM, true);
        fx_put(&old, 1, data, &pkt);
        pkt.content = 70;
        pkt.epoch   = 3;
        node_serve(node_at(centre), &pkt);
        now_us += QUIET_US;
        word_from((SKY_Addr_t){3, 3}, centre, &old, CREDIT, &pkt);
        pkt.content = cases[i].content;
        pkt.epoch   = cases[i].epoch;
        node_serve(node_at(centre), &pkt);
        CHECK_EQ(held_at(centre, &old), cases[i].goes ? 0 : 1);
        CHECK_EQ(SKY_Packet_Decode(fleet[fleet_first].bytes, fleet[fleet_first].len, &pkt), SKY_STATUS_OK);
        CHECK_EQ(pkt.content, cases[i].content);
        CHECK_EQ(pkt.epoch, cases[i].epoch);
        CHECK_EQ(pkt.credit, cases[i].goes ? CREDIT : CREDIT - 1u);
        fleet_count = 0;
    }
    word_from((SKY_Addr_t){3, 3}, centre, &old, CREDIT, &pkt);
    pkt.epoch = 5; /* this is another word than those of before */
    node_serve(node_at(centre), &pkt);
    CHECK_EQ(fleet_count, 3);
}

/* Who evicts a share that is kept for a row to come tells of that row. */
static void test_an_eviction_tells_content_and_row(void)
{
    SKY_Packet_t pkt;
    uint8_t      data[CHUNK];

    old = a_block(1, 2);
    sky_open(ROOM, true);
    fx_put(&old, 0, data, &pkt);
    pkt.content = 70;
    pkt.epoch   = 3;
    node_serve(node_at(centre), &pkt);
    now_us += QUIET_US;
    press(centre);
    CHECK_EQ(fleet_count, 4);
    CHECK_EQ(SKY_Packet_Decode(fleet[fleet_first].bytes, fleet[fleet_first].len, &pkt), SKY_STATUS_OK);
    CHECK_EQ(pkt.content, 70);
    CHECK_EQ(pkt.epoch, 3);
}

static void test_several_evict_the_same(void)
{
    open_filled(true);
    for (uint32_t i = 0; i < 9; i += 2)
    {
        press(server(i));
    }
    (void)sky_settle();
    CHECK_EQ(held(&old), 0);
    CHECK_EQ(held(&other), 18);
    CHECK(told() <= 4u * NODES); /* a word that is known is not told again */
}

static void test_off(void)
{
    SKY_Addr_t north = server(4);

    open_filled(false);
    press(server(4));
    CHECK_EQ(fleet_count, 0);
    CHECK_EQ(held(&old), 16);
    --north.plane;
    hear(north, server(4), &other, CREDIT);
    CHECK_EQ(held(&other), 18);
    CHECK_EQ(fleet_count, 0);
    CHECK_EQ(node_at(server(4))->svc.core.counters.errors[SKY_STATUS_REFUSED], 1);
}

static void test_crosses_holes_of_two(void)
{
    static const struct
    {
        SKY_Addr_t holder;
        bool       reached;
    } cases[] = {{{3, 5}, true}, {{3, 6}, true},  {{3, 7}, true}, {{1, 5}, true},
                 {{4, 2}, true}, {{5, 6}, false}, {{1, 6}, false}};

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i)
    {
        old = a_block(1, 2);
        sky_open(ROOM, true);
        sky_put(centre, &old, 0);
        sky_put(cases[i].holder, &old, 1);
        now_us += QUIET_US;
        press(centre);
        CHECK_EQ(sky_settle(), told());
        CHECK_EQ(held(&old), cases[i].reached ? 0 : 1);
    }
}

static void test_a_holder_passes_on_with_full_credit(void)
{
    old = a_block(1, 3);
    sky_open(ROOM, true);
    sky_put((SKY_Addr_t){3, 1}, &old, 0);
    sky_put((SKY_Addr_t){3, 4}, &old, 1);
    sky_put((SKY_Addr_t){1, 5}, &old, 2); /* too far for the first word */
    now_us += QUIET_US;
    press((SKY_Addr_t){3, 1});
    (void)sky_settle();
    CHECK_EQ(held(&old), 0);
}

static void test_only_neighbours_count(void)
{
    static const SKY_Addr_t strangers[] = {{0, 77}, {0, 0}, {1, 4}, {3, 6}, {2, 3}, {9, 9}, {3, 4}};

    open_filled(true);
    for (uint32_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); ++i)
    {
        hear(strangers[i], centre, &old, CREDIT);
        CHECK_EQ(fleet_count, 0);
        CHECK_EQ(node_at(centre)->svc.core.counters.errors[SKY_STATUS_REFUSED], i + 1);
    }
    CHECK_EQ(held(&old), 18);
    hear((SKY_Addr_t){3, 3}, centre, &old, 0);
    CHECK_EQ(held(&old), 16);
    CHECK_EQ(fleet_count, 3); /* not to whom it came from */
}

static void test_credit_of_others_is_bounded(void)
{
    const SKY_Addr_t from = {2, 1}, to = {1, 1};
    SKY_Packet_t     pkt;

    open_filled(true);
    hear(from, to, &old, UINT16_MAX);
    CHECK_EQ(fleet_count, 3);
    CHECK_EQ(SKY_Packet_Decode(fleet[fleet_first].bytes, fleet[fleet_first].len, &pkt), SKY_STATUS_OK);
    CHECK_EQ(pkt.credit, CREDIT - 1);
    CHECK_EQ(pkt.op, SKY_OP_PURGE);
    CHECK_EQ(pkt.flags, SKY_FLAG_GOSSIP);
    CHECK(SKY_Addr_Equal(pkt.src, to));
    fleet_count = 0;
    hear(from, to, &other, 0); /* ends here */
    CHECK_EQ(fleet_count, 0);
}

static void test_known_words_are_not_repeated(void)
{
    const SKY_Addr_t from = {2, 1}, to = {1, 1};
    SKY_Packet_t     pkt;

    open_filled(true);
    hear(from, to, &old, 1);
    CHECK_EQ(fleet_count, 3);
    hear(from, to, &old, 1);
    CHECK_EQ(fleet_count, 3);
    hear(from, to, &old, 2); /* goes further than the one before */
    CHECK_EQ(fleet_count, 6);
    hear(from, to, &old, 1);
    CHECK_EQ(fleet_count, 6);
    word_from(from, to, &old, 1, &pkt);
    pkt.tenant = 1; /* another block */
    node_serve(node_at(to), &pkt);
    CHECK_EQ(fleet_count, 9);
    now_us += 5000000;
    hear(from, to, &old, 1); /* forgotten */
    CHECK_EQ(fleet_count, 12);
}

/* Words are late: meanwhile the block is put anew, where its share went and where it did not. */
static void test_a_block_that_is_put_anew_stays(void)
{
    open_filled(true);
    press(server(4));
    CHECK_EQ(fleet_count, 4);
    sky_put_all(&old);
    CHECK_EQ(held(&old), 18);
    CHECK(sky_settle() >= 4);
    CHECK_EQ(held(&old), 18);
}

/* A word in the middle of the new PUT takes what is left of the old block, and nothing of the new one. */
static void test_a_word_in_the_middle_of_a_put(void)
{
    open_filled(true);
    press(server(0));
    for (uint32_t id = 0; id < 4; ++id)
    {
        sky_put(server(id), &old, id);
    }
    (void)sky_settle();
    for (uint32_t id = 0; id < 4; ++id)
    {
        CHECK(held_at(server(id), &old) >= 1);
    }
    for (uint32_t id = 4; id < 18; ++id)
    {
        sky_put(server(id % 9u), &old, id);
    }
    for (uint32_t id = 0; id < 4; ++id)
    {
        sky_put(server(id), &old, id); /* acknowledged before: still there, or the host sends it again */
    }
    CHECK_EQ(held(&old), 18);
}

static void test_words_count_again_when_the_put_is_over(void)
{
    const SKY_Addr_t north = {2, 4};

    open_filled(true);
    sky_put(centre, &old, 4); /* there already, but a PUT */
    now_us += QUIET_US - 2000;
    hear(north, centre, &old, CREDIT);
    CHECK_EQ(held_at(centre, &old), 2);
    CHECK_EQ(fleet_count, 0);
    now_us += 2000;
    hear(north, centre, &old, CREDIT);
    CHECK_EQ(held_at(centre, &old), 0);
}

/* A word tells of a version: who holds a newer one purges nothing, and passes it on as one who holds nothing. */
static void test_newer_versions_stay(void)
{
    const SKY_Addr_t north = {2, 4};
    const fx_block_t value = a_block(3, 1);
    uint8_t          data[1000];
    SKY_Packet_t     pkt, word;

    open_filled(true);
    fx_put(&value, 0, data, &pkt);
    pkt.block_version = 7;
    node_serve(node_at(centre), &pkt);
    now_us += QUIET_US;
    word_from(north, centre, &value, CREDIT, &word);
    word.block_version = 6;
    node_serve(node_at(centre), &word);
    CHECK_EQ(held_at(centre, &value), 1);
    CHECK_EQ(fleet_count, 3);
    node_serve(node_at(centre), &word);
    CHECK_EQ(fleet_count, 3); /* known */
    word.block_version = 7;
    node_serve(node_at(centre), &word);
    CHECK_EQ(held_at(centre, &value), 0);
    CHECK_EQ(fleet_count, 6); /* the word about an older version is another one */
    for (uint32_t i = 0; i < fleet_count; ++i)
    {
        CHECK_EQ(SKY_Packet_Decode(fleet[fleet_first + i].bytes, fleet[fleet_first + i].len, &word), SKY_STATUS_OK);
        CHECK_EQ(word.block_version, i < 3 ? 6 : 7);
    }
    fleet_count = 0;
}

static void test_too_many_words(void)
{
    const SKY_Addr_t from = {2, 1}, to = {1, 1};
    SKY_Packet_t     pkt;

    open_filled(true);
    for (uint32_t number = 1000; number < 1000 + SKY_SERVICE_WORDS + 3; ++number)
    {
        const fx_block_t block = a_block(number, 1);

        word_from(from, to, &block, CREDIT, &pkt);
        SKY_Service_Begin(&node_at(to)->svc, now_us, &pkt); /* and nobody pulls */
    }
    CHECK_EQ(node_at(to)->svc.core.counters.gossip_lost, 3);
    node_pull(node_at(to));
    CHECK_EQ(fleet_count, 3 * SKY_SERVICE_WORDS);
    fleet_count = 0;
}

static void test_tori_without_neighbours(void)
{
    SKY_ServiceCfg_t cfg;

    open_filled(true);
    cfg = node_at(centre)->svc.core.cfg;
    CHECK(SKY_Torus_Init(&cfg.torus, 1, 1, false));
    cfg.self = (SKY_Addr_t){1, 1};
    CHECK(SKY_Service_Init(&node_at(centre)->svc, &cfg, &node_at(centre)->store, now_us, 1));
    press(centre);
    hear((SKY_Addr_t){1, 1}, centre, &other, CREDIT);
    CHECK_EQ(fleet_count, 0);

    open_filled(true);
    CHECK(SKY_Torus_Init(&cfg.torus, 1, 2, false));
    CHECK(SKY_Service_Init(&node_at(centre)->svc, &cfg, &node_at(centre)->store, now_us, 1));
    hear((SKY_Addr_t){1, 2}, centre, &old, CREDIT);
    CHECK_EQ(held_at(centre, &old), 0);
    CHECK_EQ(fleet_count, 0); /* the only one to tell is who told */
}

static void test_a_migration_is_no_eviction(void)
{
    static const uint8_t target[SKY_MIGRATE_BYTES] = {0, 3, 0, 7};
    SKY_Packet_t         pkt;

    open_filled(true);
    word_from((SKY_Addr_t){0, 77}, centre, &old, 0, &pkt);
    pkt.op      = SKY_OP_MIGRATE;
    pkt.flags   = 0;
    pkt.payload = target;
    pkt.length  = sizeof(target);
    node_serve(node_at(centre), &pkt);
    sky_run(100000, 10000);
    CHECK_EQ(held_at(centre, &old), 0);
    CHECK_EQ(held_at((SKY_Addr_t){3, 7}, &old), 2);
    CHECK_EQ(held(&old), 18);
    CHECK_EQ(told(), 0);
}

int main(void)
{
    RUN(test_all_shares_go);
    RUN(test_a_block_with_parity_stays);
    RUN(test_an_eviction_of_parts_is_no_news);
    RUN(test_a_block_with_parity_goes_by_a_word_of_its_own);
    RUN(test_a_word_of_parity_is_exact);
    RUN(test_a_word_names_content_and_row);
    RUN(test_an_eviction_tells_content_and_row);
    RUN(test_several_evict_the_same);
    RUN(test_off);
    RUN(test_crosses_holes_of_two);
    RUN(test_a_holder_passes_on_with_full_credit);
    RUN(test_only_neighbours_count);
    RUN(test_credit_of_others_is_bounded);
    RUN(test_known_words_are_not_repeated);
    RUN(test_a_block_that_is_put_anew_stays);
    RUN(test_a_word_in_the_middle_of_a_put);
    RUN(test_words_count_again_when_the_put_is_over);
    RUN(test_newer_versions_stay);
    RUN(test_too_many_words);
    RUN(test_tori_without_neighbours);
    RUN(test_a_migration_is_no_eviction);
    sky_close();
    return CHECK_RESULT();
}
