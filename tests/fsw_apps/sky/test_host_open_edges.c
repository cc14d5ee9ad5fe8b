/**
 * @file
 * Openings in a host that is short of memory, numbers or luck.
 */
#include "open_rig.h"

static const sky_mode_t modes[] = {MODE_COOKIE, MODE_KEYED};

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static void test_a_library_with_too_few_places(void)
{
    SKY_Host_t host;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.crypto.crypto.key_count = 2u * PEERS_MAX - 1u;
    CHECK(!SKY_Host_Init(&host, &net.host.shell, &net.host.cfg, &net.peers));
    net.crypto.crypto.key_count = 2u * PEERS_MAX;
    CHECK(SKY_Host_Init(&host, &net.host.shell, &net.host.cfg, &net.peers));
}

/* There is room for the satellite or for its entry satellite, and not for both. */
static void test_no_room_for_an_entry_satellite(void)
{
    static uint8_t        data[60 * CHUNK];
    const SKY_HostPlace_t places[] = {place_of(1, 0)};

    for (uint32_t i = 0; i < 2; ++i)
    {
        SKY_HostQuestion_t one = ping(1, 0);
        SKY_HostBlock_t    block;
        sizes_t            sizes = usual;

        sizes.peers = 1;
        net_open(modes[i], modes[i], sizes);
        ask(&one);
        net_run_all();
        CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
        block_make(&block, SKY_HOST_PUT, 1, 60, places, 1, data);
        block.deadline_ms = 3000;
        block_begin(&block);
        net_run_all();
        CHECK_EQ(block.status, SKY_STATUS_EXPIRED);
        CHECK_EQ(net.requests[1], 0);
        net_wait(SECOND_US);
        ask_one(2, 2, SKY_STATUS_OK);
    }
}

/* Satellites make room for others, and with them their keys. */
static void test_satellites_make_room(void)
{
    for (uint32_t i = 0; i < 2; ++i)
    {
        SKY_HostQuestion_t many[SATELLITES];
        sizes_t            sizes = usual;

        sizes.peers = 3;
        net_open(modes[i], modes[i], sizes);
        for (uint32_t n = 0; n < 4u * SATELLITES; ++n)
        {
            ask_one(n % SATELLITES, 0, SKY_STATUS_OK);
            CHECK(crypto_rig_keys(&net.crypto) <= 6);
        }
        CHECK_EQ(net.openings[0], modes[i] == MODE_KEYED ? 2 : 1); /* it was used the whole time */
        CHECK_EQ(net.openings[1], modes[i] == MODE_KEYED ? 4 : 0);
        CHECK_EQ(net.host.counters.untrusted, 0);
        for (uint32_t n = 0; n < SATELLITES; ++n) /* all at once: those on whose opening others wait stay */
        {
            many[n]             = ping(n, 0);
            many[n].deadline_ms = 30000;
            ask(&many[n]);
        }
        net_run_all();
        for (uint32_t n = 0; n < SATELLITES; ++n)
        {
            check_answered(&many[n], SKY_STATUS_OK);
        }
    }
}

/* A satellite is forgotten while its answer is on the way, and there is no memory to know it again. */
static void test_an_answer_of_a_forgotten_satellite(void)
{
    static uint8_t        data[60 * CHUNK];
    const SKY_HostPlace_t places[] = {place_of(4, 4), place_of(8, 8)};

    for (uint32_t i = 0; i < 2; ++i)
    {
        SKY_HostQuestion_t one   = ping(1, 1);
        sizes_t            sizes = usual;
        SKY_HostBlock_t    block;

        sizes.peers = 2;
        net_open(modes[i], modes[i], sizes);
        ask_one(1, 1, SKY_STATUS_OK);
        net_wait(SECOND_US);
        ask(&one);
        net_run(net.now_us + 1000);
        CHECK_EQ(one.sent, 1);
        block_make(&block, SKY_HOST_PUT, 1, 60, places, 2, data);
        block_begin(&block);
        CHECK(peer_of(1) == NULL);
        net_run(net.now_us + RTT_US);
        CHECK_EQ(one.status, SKY_STATUS_RUNNING);
        CHECK_EQ(net.host.counters.untrusted, 1);
        net_run_all();
        CHECK_EQ(block.status, SKY_STATUS_DONE);
        check_answered(&one, SKY_STATUS_OK); /* asked again, when there is room */
        CHECK_EQ(net.openings[1], 2);
    }
}

/* Pieces wait for a lane, and their satellites for an opening: nothing is due for these. */
static void test_pieces_that_wait_for_a_lane(void)
{
    static uint8_t        data[60 * CHUNK];
    const SKY_HostPlace_t places[] = {place_of(0, 0), place_of(1, 3), place_of(4, 3)};

    for (uint32_t i = 0; i < 2; ++i)
    {
        sizes_t         sizes = usual;
        SKY_HostBlock_t block;

        sizes.lanes = 1;
        net_open(modes[i], modes[i], sizes);
        net.sats[0].is_deaf = true;
        block_make(&block, SKY_HOST_PUT, 1, 60, places, 3, data);
        block_begin(&block);
        net_run_all();
        CHECK_EQ(block.status, SKY_STATUS_EXPIRED);
        net.sats[0].is_deaf = false;
        net_wait(SECOND_US);
        put_and_get(2, 60, places, 3);
    }
}

/* Its satellite is asked to open meanwhile, and a later get tells it. */
static void test_who_is_not_open_is_not_told_of_a_use(void)
{
    static uint8_t        data[4 * CHUNK], parity[4 * CHUNK], have[1];
    static SKY_HostRow_t  rows[2];
    const SKY_HostPlace_t places[] = {place_of(0, 0), place_of(1, 0), place_of(4, 0)};

    for (uint32_t i = 0; i < 2; ++i)
    {
        SKY_HostBlock_t block;

        net_open(modes[i], modes[i], usual);
        for (uint32_t again = 0; again < 2u; ++again)
        {
            block_make(&block, SKY_HOST_GET, 1, 4, places, 3, data);
            CHECK(SKY_Stripe_Cut(&block.stripe, 4u * CHUNK, CHUNK, 2, 1));
            block.parity = parity;
            block.rows   = rows;
            block.have   = have;
            block_begin(&block);
            net_run_all();
            CHECK_EQ(block.status, SKY_STATUS_MISS);
        }
    }
}

/* ---- numbers --------------------------------------------------------------------------------------------------------- */

static void test_a_session_without_a_number_left(void)
{
    SKY_HostQuestion_t one = ping(0, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(0, 0, SKY_STATUS_OK);
    peer_of(0)->opening.session.sequence = UINT64_MAX - 1u;
    const uint32_t requests              = net.requests[0];
    ask(&one);
    net_run_all();
    CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
    net_wait(SKY_COOKIE_PERIOD_US);
    ask(&one);
    net_run_all();
    CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
    CHECK_EQ(net.requests[0], requests);
    CHECK_EQ(net.openings[0], 1);

    /* The same at a gate: it cannot be asked for a cookie. */
    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(0, 0, SKY_STATUS_OK);
    peer_of(0)->opening.session.sequence = UINT64_MAX - 1u;
    one                                  = ping(1, 0);
    ask(&one);
    net_run_all();
    CHECK_EQ(one.status, SKY_STATUS_EXPIRED);
    CHECK_EQ(net.openings[0] + net.openings[1], 1);
}

static uint32_t refused, refused_by;
static bool     is_twice, is_of_before; /* the last one speaks of an earlier number */

/* Openings of satellite 1 are refused, as another host has the number. */
static bool spy_number(uint32_t to, const SKY_Packet_t *pkt)
{
    static uint8_t bytes[1600];
    SKY_Packet_t   reply = answer_of(pkt, refused_by, SKY_STATUS_REFUSED);

    if (refused == 0 || to != 1u || pkt->op != SKY_OP_ASSOCIATE)
    {
        return true;
    }
    --refused;
    reply.dst.slot = is_of_before && refused == 0 ? (uint16_t)(reply.dst.slot + 1u) : reply.dst.slot;
    for (uint32_t i = 0; i < (is_twice ? 2u : 1u); ++i)
    {
        fly(TO_HOST, ENDPOINT0 + index_of(pkt->gateway), bytes, bytes_of(&reply, NULL, bytes), GROUND_US);
    }
    return false;
}

/* Ask satellite 1 through @p entry while its openings are refused. @return the numbers that were drawn */
static uint32_t ask_refused(sky_mode_t mode, uint32_t entry, bool keeps_number, uint32_t times, SKY_Status_t status)
{
    sizes_t sizes = usual;

    sizes.keeps_number = keeps_number;
    net_open(mode, mode, sizes);
    net.spy = spy_number;
    refused = times;
    ask_one(1, entry, status);
    return net.host.numbers;
}

static void test_the_number_is_taken(void)
{
    is_twice     = false;
    is_of_before = false;
    for (uint32_t i = 0; i < 2; ++i)
    {
        refused_by = 1;
        CHECK_EQ(ask_refused(modes[i], 1, false, 1, SKY_STATUS_OK), 1);
        CHECK(net.host.self.slot != NUMBER);
        CHECK_EQ(ask_refused(modes[i], 1, false, 8, SKY_STATUS_OK), 8);
        CHECK_EQ(ask_refused(modes[i], 1, false, 9, SKY_STATUS_REFUSED), 8); /* that is no accident */
        CHECK_EQ(ask_refused(modes[i], 1, true, 1, SKY_STATUS_REFUSED), 0);
        is_twice = true; /* the second one speaks of a number that the host has no more */
        CHECK_EQ(ask_refused(modes[i], 1, false, 1, SKY_STATUS_OK), 1);
        is_twice     = false;
        is_of_before = true;
        CHECK_EQ(ask_refused(modes[i], 1, false, 1, SKY_STATUS_OK), 0);
        CHECK_EQ(ask_refused(modes[i], 1, false, 9, SKY_STATUS_OK), 8);
        is_of_before = false;
        refused_by   = 4; /* only the entry satellite knows the numbers */
        CHECK_EQ(ask_refused(modes[i], 1, false, 1, SKY_STATUS_REFUSED), 0);
    }
    refused_by = 0;
    CHECK_EQ(ask_refused(MODE_KEYED, 0, false, 1, SKY_STATUS_OK), 1);
    CHECK_EQ(net.openings[0], 2); /* the entry satellite stays open */
}

/* With another host's number a refusal has a tag: it is no word of the entry satellite about numbers. */
static bool tap_tagged_refusal(uint32_t from, uint8_t *bytes, uint32_t *len)
{
    static const uint8_t none[SKY_CRYPTO_KEY_BYTES];
    const SKY_TagKey_t   key = {&net.crypto.crypto, 0, none, NULL};
    SKY_Packet_t         pkt;

    CHECK_EQ(SKY_Packet_Decode(bytes, *len, &pkt), SKY_STATUS_OK);
    if (pkt.security == SKY_SUITE_HANDSHAKE)
    {
        pkt.status = SKY_STATUS_REFUSED;
        inject(from, &pkt, &key);
        pkt.status = SKY_STATUS_REFUSED;
    }
    return true;
}

static void test_a_tagged_refusal_says_nothing_about_numbers(void)
{
    sizes_t sizes = usual;

    sizes.keeps_number = false;
    net_open(MODE_KEYED, MODE_KEYED, sizes);
    net.tap = tap_tagged_refusal;
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.host.numbers, 0);
    CHECK_EQ(net.host.counters.untrusted, 2);
}

/* ---- time and ways --------------------------------------------------------------------------------------------------- */

static SKY_Packet_t last;

static bool spy_last(uint32_t to, const SKY_Packet_t *pkt)
{
    (void)to;
    last = *pkt;
    return false;
}

static void test_an_answer_to_an_opening_after_hours(void)
{
    SKY_HostQuestion_t one = ping(0, 0);

    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    net.spy         = spy_last;
    one.deadline_ms = 100;
    ask(&one);
    net_run_all();
    CHECK_EQ(net.openings[0], 1);
    net.now_us += UINT64_C(5000) * SECOND_US;
    SKY_Packet_t reply = answer_of(&last, 0, SKY_STATUS_COOKIE);
    reply.cookie       = 7;
    inject(0, &reply, NULL);
    CHECK(peer_of(0)->opening.is_open);
    CHECK(peer_of(0)->peer.srtt_us > 0); /* as long as any round trip is believed to be */
}

/* A word of a satellite that has no part in it, about a request: it is not even remembered. */
static void test_a_cookie_of_somebody_else(void)
{
    SKY_HostQuestion_t one = ping(1, 0);

    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    net.spy = spy_last;
    ask(&one);
    net_run(net.now_us + 1000);
    SKY_Packet_t reply = answer_of(&last, 8, SKY_STATUS_COOKIE);
    reply.cookie       = 7;
    inject(0, &reply, NULL);
    CHECK(peer_of(8) == NULL);
    CHECK_EQ(one.status, SKY_STATUS_RUNNING);
    CHECK(peer_of(0)->opening.cookie != 7);
    reply.src = addr_of(0);
    inject(0, &reply, NULL);
    CHECK(peer_of(0)->opening.cookie == 7);
    const uint32_t requests = net.requests[1];
    net_run(net.now_us + 1000);
    CHECK_EQ(net.requests[1], requests + 1u);
    inject(0, &reply, NULL); /* again: it says nothing new */
    net_run(net.now_us + 1000);
    CHECK_EQ(net.requests[1], requests + 1u);
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* The way to a satellite changes while its opening is on its way. */
static void test_another_way_in(void)
{
    SKY_HostQuestion_t one = ping(1, 0);

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(6, 0, SKY_STATUS_OK); /* both ways are open */
    ask_one(7, 3, SKY_STATUS_OK);
    net.spy         = spy_last;
    one.deadline_ms = 100;
    ask(&one);
    net_run_all();
    CHECK_EQ(net.openings[1], 1);
    const uint64_t request_id = last.request_id;
    net.spy                   = NULL;
    ask_one(1, 3, SKY_STATUS_OK);
    CHECK_EQ(net.openings[1], 2);
    CHECK(peer_of(1)->opening.entry.plane == addr_of(3).plane);
    /* The same endpoint, behind which another satellite listens now. */
    net.spy = spy_last;
    one     = ping(2, 0);
    ask(&one);
    net_run(net.now_us + 1000);
    CHECK(last.request_id != request_id);
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
    forget_ended();
    net_wait(2u * SECOND_US);
    const uint64_t before        = last.request_id;
    one                          = ping(2, 0);
    one.place.entry_plane        = addr_of(3).plane;
    one.place.entry_slot         = addr_of(3).slot;
    one.place.endpoint           = ENDPOINT0 + 3u;
    peer_of(2)->opening.endpoint = ENDPOINT0 + 3u; /* as if it was asked there */
    ask(&one);
    net_run(net.now_us + 1000);
    CHECK(last.request_id != before);
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* An answer to a question that waits for an opening, and has not left: somebody has guessed its number. */
static void test_an_answer_to_what_was_not_asked(void)
{
    SKY_HostQuestion_t one = ping(0, 0);

    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    net.spy = spy_last;
    ask(&one);
    net_run(net.now_us + 1000);
    SKY_Packet_t reply = answer_of(&last, 0, SKY_STATUS_OK);
    reply.op           = SKY_OP_PING;
    reply.request_id   = one.request_id;
    inject(0, &reply, NULL);
    CHECK_EQ(one.sent, 0);
    CHECK_EQ(one.status, SKY_STATUS_RUNNING);
    CHECK_EQ(net.host.counters.stale, 1);
    net.spy = NULL;
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
}

/* Received packets are still being read: nothing counts as late, and openings go all the same. */
static void test_openings_while_packets_are_read(void)
{
    SKY_HostQuestion_t    one = ping(0, 0);
    static uint8_t        data[60 * CHUNK];
    const SKY_HostPlace_t places[] = {place_of(3, 3)};
    SKY_HostBlock_t       block;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    block_make(&block, SKY_HOST_PUT, 1, 60, places, 1, data);
    block_begin(&block);
    ask(&one);
    (void)SKY_Host_Run(&net.host, net.now_us, false);
    CHECK_EQ(net.openings[0], 1);
    CHECK_EQ(net.openings[3], 1);
    (void)SKY_Host_Run(&net.host, net.now_us, false);
    CHECK_EQ(net.openings[0], 1);
    CHECK_EQ(net.openings[3], 1);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    CHECK_EQ(block.status, SKY_STATUS_DONE);
}

int main(void)
{
    RUN(test_a_library_with_too_few_places);
    RUN(test_no_room_for_an_entry_satellite);
    RUN(test_satellites_make_room);
    RUN(test_an_answer_of_a_forgotten_satellite);
    RUN(test_pieces_that_wait_for_a_lane);
    RUN(test_who_is_not_open_is_not_told_of_a_use);
    RUN(test_a_session_without_a_number_left);
    RUN(test_the_number_is_taken);
    RUN(test_a_tagged_refusal_says_nothing_about_numbers);
    RUN(test_an_answer_to_an_opening_after_hours);
    RUN(test_a_cookie_of_somebody_else);
    RUN(test_another_way_in);
    RUN(test_an_answer_to_what_was_not_asked);
    RUN(test_openings_while_packets_are_read);
    net_close();
    return CHECK_RESULT();
}
