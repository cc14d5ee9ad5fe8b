/**
 * @file
 * Which answers a host with security believes.
 */
#include "open_rig.h"

static const sky_mode_t modes[] = {MODE_COOKIE, MODE_KEYED};

/* ---- tags of answers ------------------------------------------------------------------------------------------------- */

static bool is_of_the_way(uint32_t status)
{
    return status == SKY_STATUS_BAD_VERSION || status == SKY_STATUS_TOO_LARGE || status == SKY_STATUS_HOP_LIMIT ||
           status == SKY_STATUS_UNREACHABLE || status == SKY_STATUS_REFUSED || status == SKY_STATUS_UNAUTHENTICATED ||
           status == SKY_STATUS_COOKIE;
}

/* The key under which satellite @p i answers: that of its only association. */
static SKY_TagKey_t key_of(uint32_t i)
{
    const SKY_Associations_t *table = &net.sats[i].security.associations;
    SKY_TagKey_t              key   = {&net.sats[i].crypto.crypto, 0, NULL, NULL};

    for (uint32_t at = 0; at < table->count; ++at)
    {
        key.place = table->entries[at].state == SKY_ASSOCIATION_ESTABLISHED ? table->entries[at].place_back : key.place;
    }
    return key;
}

static SKY_HostQuestion_t *forged_question;
static uint32_t            forged;

static void forge(const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    const uint64_t untrusted = net.host.counters.untrusted;

    inject(0, pkt, key);
    ++forged;
    CHECK_EQ(forged_question->status, SKY_STATUS_RUNNING);
    CHECK_EQ(net.host.counters.untrusted, untrusted + 1u);
}

/* Before the answer to a question comes in, others come that look like it. */
static bool tap_forge(uint32_t from, uint8_t *bytes, uint32_t *len)
{
    static uint8_t     other_bytes[1600];
    SKY_Packet_t       pkt, other;
    const SKY_TagKey_t right = key_of(1), wrong = key_of(2);

    CHECK_EQ(SKY_Packet_Decode(bytes, *len, &pkt), SKY_STATUS_OK);
    if (pkt.op != SKY_OP_STATS || forged_question == NULL)
    {
        return true;
    }
    CHECK_EQ(from, 0);
    for (uint32_t status = 0; status < SKY_STATUS_COUNT; ++status)
    {
        other          = pkt;
        other.security = SKY_SUITE_NONE;
        other.status   = (uint8_t)status;
        if (!is_of_the_way(status)) /* without a tag */
        {
            forge(&other, NULL);
        }
        other.security = pkt.security;
        other.spi      = pkt.spi;
        forge(&other, &wrong); /* another satellite's tag */
    }
    other     = pkt;
    other.spi = pkt.spi + 1u;
    forge(&other, &right); /* another association */
    other.spi = peer_of(2)->opening.session.spi;
    forge(&other, &wrong); /* another satellite's association */
    other        = pkt;
    other.src    = addr_of(2);
    other.spi    = peer_of(2)->opening.session.spi;
    other.status = SKY_STATUS_BUSY; /* that anybody may say, without security */
    forge(&other, &wrong);
    other          = pkt;
    other.security = SKY_SUITE_BLAKE2B_PACKET; /* another suite */
    forge(&other, &right);
    (void)memcpy(other_bytes, bytes, *len); /* one bit of the tag */
    other_bytes[*len - SKY_TAIL_MAX] = (uint8_t)(other_bytes[*len - SKY_TAIL_MAX] ^ 1u);
    const uint16_t crc               = SKY_Crc16(SKY_CRC16_INIT, other_bytes, *len - SKY_PEC_BYTES);
    other_bytes[*len - 2u]           = (uint8_t)(crc >> 8);
    other_bytes[*len - 1u]           = (uint8_t)(crc & 0xFFu);
    const uint64_t untrusted         = net.host.counters.untrusted;
    SKY_Host_Receive(&net.host, net.now_us, ENDPOINT0, other_bytes, *len);
    CHECK_EQ(net.host.counters.untrusted, untrusted + 1u);
    CHECK_EQ(forged_question->status, SKY_STATUS_RUNNING);
    return true;
}

static void test_answers_without_the_right_tag_do_not_count(void)
{
    uint8_t            room[SKY_LIMIT_CHUNK_SET * 8u];
    SKY_HostQuestion_t one;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    ask_one(2, 0, SKY_STATUS_OK);
    one             = ping(1, 0);
    one.op          = SKY_OP_STATS;
    one.room        = room;
    one.room_bytes  = sizeof(room);
    forged_question = &one;
    forged          = 0;
    net.tap         = tap_forge;
    ask(&one);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK); /* the right one */
    CHECK_EQ(one.sent, 1);
    CHECK(forged > 2u * SKY_STATUS_COUNT - 8u);
    CHECK_EQ(net.openings[1], 1);
}

/* Bytes of a chunk, and acknowledgements, in the name of a satellite. */
static bool tap_poison(uint32_t from, uint8_t *bytes, uint32_t *len)
{
    static uint8_t poison[CHUNK];
    SKY_Packet_t   pkt;

    CHECK_EQ(SKY_Packet_Decode(bytes, *len, &pkt), SKY_STATUS_OK);
    if (pkt.op == SKY_OP_GET || pkt.op == SKY_OP_HAS || pkt.op == SKY_OP_PUT)
    {
        static const SKY_Status_t words[] = {SKY_STATUS_OK, SKY_STATUS_NOT_FOUND, SKY_STATUS_BAD_KEY, SKY_STATUS_BUSY,
                                             SKY_STATUS_STORE_FULL};
        SKY_Packet_t              other   = pkt;

        other.security = SKY_SUITE_NONE;
        if (pkt.op == SKY_OP_GET && pkt.status == SKY_STATUS_OK)
        {
            other.payload   = poison;
            other.chunk_crc = SKY_Crc32c(0, poison, pkt.chunk_len);
        }
        for (uint32_t i = 0; i < 5; ++i)
        {
            other.status = (uint8_t)words[i];
            inject(from, &other, NULL);
        }
    }
    return true;
}

static void test_blocks_take_nothing_without_a_tag(void)
{
    const SKY_HostPlace_t places[] = {place_of(0, 0), place_of(1, 0)};

    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.tap = tap_poison;
    put_and_get(1, 60, places, 2);
    CHECK(net.host.counters.untrusted >= 5u * 60u);
}

static SKY_Status_t word;
static uint32_t     word_by;
static uint8_t      word_op;

/* Some satellite on the way says something instead of passing a packet on. */
static bool spy_word(uint32_t to, const SKY_Packet_t *pkt)
{
    static uint8_t bytes[1600];

    (void)to;
    if (word_op == pkt->op && word != SKY_STATUS_OK)
    {
        const SKY_Packet_t reply = answer_of(pkt, word_by, word);

        fly(TO_HOST, ENDPOINT0, bytes, bytes_of(&reply, NULL, bytes), GROUND_US);
        word = SKY_STATUS_OK;
        return false;
    }
    return true;
}

static void test_errors_of_the_way_need_no_tag(void)
{
    static const uint8_t ops[] = {SKY_OP_PING, SKY_OP_ASSOCIATE};

    for (uint32_t i = 0; i < 4; ++i)
    {
        for (uint32_t status = 1; status < SKY_STATUS_COUNT; ++status)
        {
            const bool ends        = is_of_the_way(status) && status != SKY_STATUS_UNAUTHENTICATED && status != SKY_STATUS_COOKIE;
            SKY_HostQuestion_t one = ping(1, 0);

            if (modes[i % 2u] == MODE_COOKIE && !ends)
            {
                continue; /* without keys a satellite's own word is believed, as it was */
            }
            net_open(modes[i % 2u], modes[i % 2u], usual);
            net.spy = spy_word;
            word    = (SKY_Status_t)status;
            word_by = ops[i / 2u] == SKY_OP_PING ? 4 : 0; /* 4 is on the way */
            word_op = ops[i / 2u];
            ask(&one);
            net_run_all();
            CHECK_EQ(one.status, SKY_STATUS_DONE);
            if (status != SKY_STATUS_UNAUTHENTICATED || word_op == SKY_OP_PING)
            {
                CHECK_EQ(one.answer.status, ends ? status : SKY_STATUS_OK);
            }
        }
    }
}

/* ---- answers to openings --------------------------------------------------------------------------------------------- */

/* Before the answer to an opening comes in, others come that look like it. */
static bool tap_forge_opening(uint32_t from, uint8_t *bytes, uint32_t *len)
{
    static const uint8_t none[SKY_CRYPTO_KEY_BYTES];
    const SKY_TagKey_t   key = {&net.crypto.crypto, 0, none, NULL};
    SKY_Packet_t         pkt, other;
    uint64_t             untrusted = net.host.counters.untrusted;

    CHECK_EQ(SKY_Packet_Decode(bytes, *len, &pkt), SKY_STATUS_OK);
    if (pkt.op != SKY_OP_ASSOCIATE || pkt.security != SKY_SUITE_HANDSHAKE)
    {
        return true;
    }
    for (uint32_t status = 0; status < SKY_STATUS_COUNT; ++status)
    {
        other        = pkt;
        other.status = (uint8_t)status;
        inject(from, &other, &key); /* a wrong tag */
        CHECK_EQ(net.host.counters.untrusted, ++untrusted);
        other.security = SKY_SUITE_NONE;
        if (!is_of_the_way(status))
        {
            inject(from, &other, NULL);
            CHECK_EQ(net.host.counters.untrusted, ++untrusted);
        }
    }
    other     = pkt;
    other.src = addr_of(8);
    inject(from, &other, &key);
    CHECK_EQ(net.host.counters.untrusted, ++untrusted);
    const uint64_t stale = net.host.counters.stale;
    other                = pkt;
    other.request_id     = pkt.request_id ^ 1u; /* another satellite's place */
    inject(from, &other, &key);
    other.request_id = pkt.request_id | PEERS_MAX; /* nobody's */
    inject(from, &other, &key);
    other.request_id = pkt.request_id ^ (UINT64_C(2) << 32);
    inject(from, &other, &key);
    other.request_id = 0;
    inject(from, &other, &key);
    other.request_id = 1;
    inject(from, &other, &key);
    inject(from + 1u, &pkt, &key); /* another endpoint */
    other            = pkt;
    other.is_request = true;
    inject(from, &other, &key);
    CHECK_EQ(net.host.counters.stale, stale + 7u);
    return true;
}

static void test_forged_answers_to_openings(void)
{
    net_open(MODE_KEYED, MODE_KEYED, usual);
    net.tap = tap_forge_opening;
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 2);
    CHECK_EQ(net.openings[1], 1);
}

/* Cookies that somebody else gives instead of a satellite whose cookie is too old. */
static bool tap_forge_renewal(uint32_t from, uint8_t *bytes, uint32_t *len)
{
    SKY_Packet_t       pkt;
    const uint64_t     untrusted = net.host.counters.untrusted;
    const uint64_t     cookie    = peer_of(0)->opening.cookie;
    const SKY_TagKey_t wrong = key_of(2), right = key_of(0);

    CHECK_EQ(SKY_Packet_Decode(bytes, *len, &pkt), SKY_STATUS_OK);
    if (pkt.op == SKY_OP_ASSOCIATE && pkt.security == SKY_SUITE_BLAKE2B_HEADER)
    {
        pkt.cookie = 1;
        inject(from, &pkt, &wrong);
        pkt.status = SKY_STATUS_COOKIE; /* nobody says that with a tag */
        inject(from, &pkt, &right);
        pkt.status   = SKY_STATUS_OK;
        pkt.security = SKY_SUITE_NONE;
        inject(from, &pkt, NULL);
        CHECK_EQ(net.host.counters.untrusted, untrusted + 3u);
        CHECK(peer_of(0)->opening.cookie == cookie);
        CHECK(peer_of(0)->opening.request_id != 0);
    }
    return true;
}

static void test_forged_cookies(void)
{
    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(2, 0, SKY_STATUS_OK);
    net_wait(SKY_COOKIE_PERIOD_US);
    net.tap = tap_forge_renewal;
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 3);
    CHECK_EQ(net.host.counters.untrusted, 3);
}

/* A cookie with a tag, which a host without keys cannot check, or from somebody else. */
static bool tap_tagged_cookie(uint32_t from, uint8_t *bytes, uint32_t *len)
{
    static const uint8_t none[SKY_CRYPTO_KEY_BYTES];
    const SKY_TagKey_t   key       = {&net.crypto.crypto, 0, none, NULL};
    const uint64_t       untrusted = net.host.counters.untrusted;
    SKY_Packet_t         pkt;

    CHECK_EQ(SKY_Packet_Decode(bytes, *len, &pkt), SKY_STATUS_OK);
    if (pkt.op == SKY_OP_ASSOCIATE)
    {
        SKY_Packet_t other = pkt;

        other.security = SKY_SUITE_HANDSHAKE;
        inject(from, &other, &key);
        CHECK_EQ(net.host.counters.untrusted, untrusted + 1u);
        other        = pkt;
        other.status = SKY_STATUS_OK;
        other.src    = addr_of(8);
        inject(from, &other, NULL);
        CHECK_EQ(net.host.counters.untrusted, untrusted + 2u);
        other        = pkt;
        other.status = SKY_STATUS_BAD_OP;
        inject(from, &other, NULL);
        CHECK_EQ(net.host.counters.untrusted, untrusted + 3u);
    }
    else
    {
        SKY_Packet_t other = pkt;

        other.security = SKY_SUITE_HANDSHAKE;
        inject(from, &other, &key);
        CHECK_EQ(net.host.counters.untrusted, untrusted + 1u);
    }
    return true;
}

static void test_a_host_without_keys_takes_no_tags(void)
{
    net_open(MODE_COOKIE, MODE_COOKIE, usual);
    net.tap = tap_tagged_cookie;
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 1);
    /* Without security at all a tag is nothing: as it was. */
    net_open(MODE_OFF, MODE_OFF, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    CHECK_EQ(net.host.counters.untrusted, 0);
}

/* ---- words of `unauthenticated` -------------------------------------------------------------------------------------- */

static SKY_Packet_t last;

static bool spy_last(uint32_t to, const SKY_Packet_t *pkt)
{
    last = *pkt;
    (void)to;
    return pkt->op != SKY_OP_STATS; /* the questions that a test answers itself */
}

static void test_unauthenticated_that_repeats_nothing_is_ignored(void)
{
    SKY_HostQuestion_t one = ping(1, 0);
    SKY_Packet_t       pkt;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(1, 0, SKY_STATUS_OK);
    net_wait(SECOND_US);
    net.spy         = spy_last;
    one.op          = SKY_OP_STATS;
    one.deadline_ms = 100000;
    ask(&one);
    net_run(net.now_us + 1000);
    const uint64_t sequence = last.sequence;

    peer_of(1)->opening.session.sequence += SKY_REPLAY_WINDOW; /* a lot was sent meanwhile */
    for (uint32_t i = 0; i < 5; ++i)
    {
        pkt          = answer_of(&last, i == 4 ? 8 : i == 3 ? 0 : 1, SKY_STATUS_UNAUTHENTICATED);
        pkt.spi      = i == 0 ? last.spi + 1u : last.spi;
        pkt.sequence = i == 1   ? peer_of(1)->opening.session.sequence + 1u
                       : i == 4 ? peer_of(1)->opening.session.sequence
                                : sequence;
        inject(0, &pkt, NULL); /* another association, not sent yet, too old, too old by the gate, by somebody else */
        net_run(net.now_us + 1000);
        CHECK_EQ(net.openings[0] + net.openings[1], 3);
        CHECK_EQ(one.status, SKY_STATUS_RUNNING);
    }
    pkt.src      = addr_of(1);
    pkt.sequence = peer_of(1)->opening.session.sequence - SKY_REPLAY_WINDOW + 1u; /* the oldest one that counts */
    inject(0, &pkt, NULL);
    inject(0, &pkt, NULL); /* one handshake, however often that comes */
    net_run(net.now_us + RTT_US / 2u);
    inject(0, &pkt, NULL);
    net_run(net.now_us + RTT_US * 2u);
    CHECK_EQ(net.openings[0], 2);
    CHECK_EQ(net.openings[1], 2);
    pkt.spi      = peer_of(1)->opening.session.spi; /* too soon after the handshake: it may be of before */
    pkt.sequence = peer_of(1)->opening.session.sequence;
    inject(0, &pkt, NULL);
    net_run(net.now_us + RTT_US * 2u);
    CHECK_EQ(net.openings[1], 2);
    pkt.src = addr_of(0); /* the gate does not know us: once */
    inject(0, &pkt, NULL);
    net_run(net.now_us + 1000);
    inject(0, &pkt, NULL);
    net_run(net.now_us + RTT_US * 2u);
    CHECK_EQ(net.openings[0], 4); /* a handshake, and the way through it */
    CHECK_EQ(net.openings[1], 2);
    SKY_Host_Stop(&net.host, net.now_us, NULL, SKY_STATUS_CANCELLED);
}

/* Words about openings that say nothing. */
static void test_words_about_openings_that_are_ignored(void)
{
    SKY_HostQuestion_t one = ping(1, 0);
    SKY_Packet_t       pkt;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    ask_one(2, 0, SKY_STATUS_OK);
    net.spy             = spy_last;
    net.sats[1].is_deaf = true;
    ask(&one);
    net_run(net.now_us + 1000);
    CHECK_EQ(net.openings[1], 1);
    pkt = answer_of(&last, 8, SKY_STATUS_UNAUTHENTICATED); /* not the gate */
    inject(0, &pkt, NULL);
    CHECK_EQ(peer_of(0)->opening.session.state, SKY_SESSION_ESTABLISHED);
    pkt = answer_of(&last, 0, SKY_STATUS_UNAUTHENTICATED); /* the gate, too soon after its own handshake */
    inject(0, &pkt, NULL);
    CHECK_EQ(peer_of(0)->opening.session.state, SKY_SESSION_ESTABLISHED);
    CHECK_EQ(one.status, SKY_STATUS_RUNNING);

    /* A word about an association that has ended is too late. */
    net_run_all();
    net.sats[1].is_deaf = false;
    net_wait(SECOND_US);
    ask_one(1, 0, SKY_STATUS_OK);
    net.sats[1].is_deaf = true;
    one                 = ping(1, 0);
    ask(&one);
    net_run(net.now_us + 1000);
    pkt = answer_of(&last, 1, SKY_STATUS_UNAUTHENTICATED);
    SKY_Session_End(&peer_of(1)->opening.session, &net.crypto.crypto);
    inject(0, &pkt, NULL);
    CHECK_EQ(one.status, SKY_STATUS_RUNNING);
    CHECK_EQ(peer_of(1)->opening.session.state, SKY_SESSION_NONE);

    /* A renewal: what repeats nothing is ignored there, too. */
    net_run_all();
    net_wait(SKY_COOKIE_PERIOD_US);
    one = ping(2, 0);
    ask(&one);
    net_run(net.now_us + 1000);
    CHECK_EQ(net.openings[0], 3);
    pkt     = answer_of(&last, 0, SKY_STATUS_UNAUTHENTICATED);
    pkt.spi = last.spi + 1u;
    inject(0, &pkt, NULL);
    CHECK_EQ(peer_of(0)->opening.session.state, SKY_SESSION_ESTABLISHED);
    pkt.status = SKY_STATUS_COOKIE; /* of a satellite that has no keys now: with the cookie it will say so */
    pkt.cookie = 77;
    inject(0, &pkt, NULL);
    net_run(net.now_us + 1000);
    CHECK_EQ(peer_of(0)->opening.cookie, 77);
    net_run_all();
    check_answered(&one, SKY_STATUS_OK);
    CHECK_EQ(net.openings[0], 3);
}

/* ---- telemetry ------------------------------------------------------------------------------------------------------- */

static uint32_t told;

static void on_telemetry(void *context, const SKY_Packet_t *pkt)
{
    CHECK(context == &told);
    CHECK_EQ(pkt->length, 4);
    ++told;
}

/* Messages of one lease answer one request, so only their sequence numbers tell one that is sent again. */
static void test_telemetry_is_handed_over_once_and_in_order(void)
{
    static const uint8_t message[4] = {9, 8, 7, 6};
    SKY_HostQuestion_t   one;
    SKY_Packet_t         pkt;
    SKY_TagKey_t         key;

    net_open(MODE_KEYED, MODE_KEYED, usual);
    told = 0;
    SKY_Host_Listen(&net.host, on_telemetry, &told);
    ask_one(0, 0, SKY_STATUS_OK);
    one       = ping(0, 0);
    one.op    = SKY_OP_RELAY;
    one.flags = SKY_FLAG_TLM;
    ask(&one);
    net_run_all();
    key         = key_of(0);
    pkt         = one.answer;
    pkt.flags   = SKY_FLAG_TLM;
    pkt.status  = SKY_STATUS_OK;
    pkt.payload = message;
    pkt.length  = sizeof(message);
    for (uint32_t i = 0; i < 2u; ++i) /* the number after that of the last answer, and the one after that */
    {
        ++pkt.sequence;
        inject(0, &pkt, &key);
        CHECK_EQ(told, i + 1u);
        inject(0, &pkt, &key);
        CHECK_EQ(told, i + 1u);
        CHECK_EQ(net.host.counters.stale, 2u * i + 1u);
        pkt.sequence -= i;
        inject(0, &pkt, &key);
        CHECK_EQ(told, i + 1u);
        CHECK_EQ(net.host.counters.stale, 2u * i + 2u);
        pkt.sequence += i;
    }
    CHECK_EQ(net.host.counters.untrusted, 0);
}

int main(void)
{
    RUN(test_answers_without_the_right_tag_do_not_count);
    RUN(test_blocks_take_nothing_without_a_tag);
    RUN(test_errors_of_the_way_need_no_tag);
    RUN(test_forged_answers_to_openings);
    RUN(test_forged_cookies);
    RUN(test_a_host_without_keys_takes_no_tags);
    RUN(test_unauthenticated_that_repeats_nothing_is_ignored);
    RUN(test_words_about_openings_that_are_ignored);
    RUN(test_telemetry_is_handed_over_once_and_in_order);
    net_close();
    return CHECK_RESULT();
}
