/**
 * @file
 * How much a node does for those who have shown nothing, or only where they are.
 */
#include "guard_rig.h"
#include "sky_slab.h"

#define ELSEWHERE      (GROUND + (UINT64_C(1) << 16)) /* another address */
#define ANOTHER_PORT   (GROUND + 5u)
#define FLOOD          100000u
#define ANSWERS        1024u
#define ALL_ANSWERS    16384u
#define HANDSHAKES     1024u
#define ALL_HANDSHAKES 4096u
#define CHUNKS         16u   /* of as many processes of one address */
#define SLOT_OF_STORE  6208u /* a chunk of 6,144 bytes behind its entry */
#define CHUNK_ENTRY    64u
#define BLOCK_ENTRY    144u
#define BURST          (1u << 26)
#define SLOTS          (BURST / 6144u)
#define LARGE          2864u /* bytes of a chunk that pays for a slot */

/* Send a request again and again, until it is not answered any more. @return the answers */
static uint32_t answers_to(uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    uint32_t count = 0;

    do
    {
        come(now_us, pkt, endpoint);
        count += sent_count;
    } while (sent_count > 0u && count < FLOOD);
    return count;
}

/* All ports of an address count together, and other addresses not at all. */
static void test_an_address_is_told_so_often_why_it_is_not_served(void)
{
    for (unsigned is_keyed = 0; is_keyed < 2u; ++is_keyed)
    {
        SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_PING);

        secure(is_keyed != 0u, 0);
        CHECK_EQ(answers_to(1, &pkt, GROUND), ANSWERS);
        CHECK_EQ(answers_to(1, &pkt, ANOTHER_PORT), 0);
        CHECK_EQ(security.counters.limited, 2);
        come(1, &pkt, ELSEWHERE);
        CHECK_EQ(sent_count, 1);
        CHECK_EQ(answers_to(1u + SECOND_US / 4u, &pkt, GROUND), ANSWERS / 4u);
        end();
    }
}

static void test_all_addresses_together_are_told_so_often(void)
{
    SKY_Packet_t pkt   = request_of(SKY_APID_ISL, SKY_OP_PING);
    uint32_t     count = 0;

    secure(false, 0);
    for (uint64_t address = 1; address <= FLOOD; ++address)
    {
        come(1, &pkt, address << 16 | 7u);
        count += sent_count;
    }
    CHECK_EQ(count, ALL_ANSWERS);

    /* Who has a cookie is served all the same. */
    pkt.cookie = SKY_Security_CookieOf(&security, 1, GROUND);
    come(1, &pkt, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_OK);
    pkt.hop_limit = 0;
    pkt.dst       = in_the_east;
    come(1, &pkt, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_HOP_LIMIT); /* and told why, if not */
    end();
}

/* What answers packets of any kind leaves what answers openings alone, and the other way round: a host gets a cookie in each flood. */
static void test_openings_are_answered_in_a_flood_of_other_packets(void)
{
    for (unsigned is_keyed = 0; is_keyed < 2u; ++is_keyed)
    {
        SKY_Packet_t ping  = request_of(SKY_APID_ISL, SKY_OP_PING);
        SKY_Packet_t open  = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);
        uint32_t     count = 0;

        secure(is_keyed != 0u, 0);
        for (uint64_t address = 1; address <= FLOOD; ++address)
        {
            come(1, &ping, address << 16 | 7u);
        }
        CHECK_EQ(answers_to(1, &ping, ELSEWHERE), 0);
        CHECK_EQ(answers_to(1, &open, GROUND), ANSWERS); /* even to the address of which most was forged */
        for (uint64_t address = 1; address <= FLOOD; ++address)
        {
            come(1, &open, address << 16 | 7u);
            count += sent_count;
        }
        CHECK_EQ(count + ANSWERS, ALL_ANSWERS);
        open.apid = SKY_APID_KVC; /* no opening */
        CHECK_EQ(answers_to(1, &open, ELSEWHERE), 0);
        come(SECOND_US, &ping, GROUND);
        CHECK_EQ(sent_count, 1);
        end();
    }
}

/* A host needs no second cookie: with the first one its handshake is answered in whatever flood. */
static void test_a_handshake_without_a_cookie_gets_one_in_a_flood(void)
{
    static uint8_t wire[PARTY_WIRE];
    SKY_Packet_t   ping = request_of(SKY_APID_ISL, SKY_OP_PING);
    SKY_Packet_t   pkt  = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);

    secure(true, 0);
    for (uint64_t address = 1; address <= FLOOD; ++address)
    {
        come(1, &ping, address << 16 | 7u);
    }
    while (SKY_Security_MayGreet(&security, 1, &(SKY_HandshakeOrigin_t){ELSEWHERE, false}))
    {
    }
    come_bytes(1, wire, party_handshake(&host, &pkt, 1, wire), GROUND);
    CHECK(sent_count == 1u && answer().status == SKY_STATUS_COOKIE);
    CHECK(associate_with(3, &host, answer().cookie));
    end();
}

/* Strangers use up what there is for strangers. A cookie gives a share of its own, which they cannot use. */
static void test_invented_addresses_lock_no_host_out(void)
{
    static uint8_t wire[PARTY_WIRE];
    SKY_Packet_t   pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);
    uint32_t       len = 0, taken = 0;

    secure(true, 0);
    while (taken < FLOOD && SKY_Security_MayGreet(&security, 1, &(SKY_HandshakeOrigin_t){ELSEWHERE, false}))
    {
        ++taken;
    }
    CHECK_EQ(taken, ALL_HANDSHAKES);
    len = party_handshake(&host, &pkt, 1, wire);
    come_bytes(1, wire, len, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_COOKIE);
    CHECK_EQ(security.associations.half_open, 0);
    CHECK(sent_bytes <= len);
    pkt.cookie = answer().cookie;

    /* That cookie is for handshakes alone: it opens no way to others, and no place in the table of hosts. */
    SKY_Packet_t away = request_of(SKY_APID_ISL, SKY_OP_PING);

    away.dst    = in_the_east;
    away.cookie = pkt.cookie;
    come(1, &away, GROUND);
    CHECK_EQ(answer().status, SKY_STATUS_UNAUTHENTICATED);
    CHECK_EQ(known_hosts(), 0);
    len = party_handshake(&host, &pkt, 2, wire);
    come_bytes(2, wire, len, GROUND + 1u); /* who has only seen it */
    CHECK_EQ(answer().status, SKY_STATUS_COOKIE);
    len = party_handshake(&host, &pkt, 3, wire);
    come_bytes(3, wire, len, GROUND);
    const SKY_Packet_t granted = answer();

    CHECK(party_take(&host, &granted));
    CHECK(associate(SECOND_US, &mission)); /* without a cookie there is room again later */
    end();
}

static void test_handshakes_of_an_address_are_limited(void)
{
    static uint8_t wire[PARTY_WIRE];
    SKY_Packet_t   pkt   = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);
    uint32_t       taken = 0;

    secure(true, 0);
    while (taken < FLOOD && SKY_Security_MayGreet(&security, 1, &(SKY_HandshakeOrigin_t){GROUND, true}))
    {
        ++taken;
    }
    CHECK_EQ(taken, HANDSHAKES);
    pkt.cookie = SKY_Security_CookieOf(&security, 1, GROUND);
    come_bytes(1, wire, party_handshake(&host, &pkt, 1, wire), GROUND);
    CHECK_EQ(sent_count, 0);
    CHECK_EQ(security.associations.half_open, 0);
    CHECK(associate(SECOND_US, &host));
    end();
}

/* A handshake comes from the neighbour in the east. @return true if it was granted */
static bool comes_from_the_east(uint64_t now_us, party_t *party)
{
    static uint8_t wire[PARTY_WIRE];
    SKY_Packet_t   pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);

    party->session.next_us = 0;
    pkt.gateway            = party->addr.plane == 0u ? in_the_east : (SKY_Addr_t){0, 0};
    come_bytes(now_us, wire, party_handshake(party, &pkt, now_us, wire), endpoint_of(SKY_LINK_EAST));
    return sent_count == 1u && answer().status == SKY_STATUS_OK;
}

/* Over a link a share is that of a credential. So one that asks too often takes from itself alone, whoever it is that sends. */
static void test_handshakes_of_a_credential_over_a_link_are_limited(void)
{
    for (uint32_t i = 0; i < 2u; ++i)
    {
        party_t *const who[] = {&host, &east};
        uint64_t       now   = 0;

        secure(true, 0);
        while (now < FLOOD && comes_from_the_east(now + 1u, who[i]))
        {
            ++now;
        }
        CHECK(now >= HANDSHAKES && now <= HANDSHAKES + 1u);
        CHECK_EQ(sent_count, 0);
        CHECK_EQ(security.counters.limited, 1);
        CHECK(comes_from_the_east(now + 1u, who[1u - i]));
        CHECK(comes_from_the_east(now + 2u, &mission));
        CHECK(comes_from_the_east(now + SECOND_US, who[i]));
        end();
    }
}

/* Wrong tags take nothing from anybody, even if they come from a neighbour's address and name it. Only so many are told so. */
static void test_wrong_handshakes_over_a_link_shut_nobody_out(void)
{
    for (uint32_t i = 0; i < 2u; ++i)
    {
        uint32_t told = 0;

        secure(true, 0);
        party_t forger = i == 0u ? host : east;

        (void)memset(forger.pair, 0x55, sizeof(forger.pair));
        for (uint64_t count = 0; count < FLOOD; ++count)
        {
            CHECK(!comes_from_the_east(1, &forger));
            told += sent_count;
        }
        CHECK_EQ(told, ANSWERS);
        CHECK_EQ(security.counters.handshakes, FLOOD);
        CHECK_EQ(security.counters.limited, FLOOD - ANSWERS);
        CHECK(comes_from_the_east(1, &host));
        CHECK(comes_from_the_east(1, &east));
        CHECK(!comes_from_the_east(SECOND_US, &forger) && sent_count == 1u && answer().status == SKY_STATUS_UNAUTHENTICATED);
        end();
    }
}

/* A right tag is never too much: a flood from the same address, whether forged or not, takes nothing from it. */
static void test_a_right_tag_is_always_served(void)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_PING);

    secure(true, 0);
    CHECK(associate(1, &host));
    CHECK_EQ(answers_to(1, &pkt, GROUND), ANSWERS);
    for (uint32_t i = 0; i < 100u; ++i)
    {
        pkt = request_of(SKY_APID_ISL, SKY_OP_PING);
        ask(1, &host, &pkt);
        CHECK_EQ(answer().status, SKY_STATUS_OK);
    }
    end();
}

/* A PUT of one byte of a chunk that takes a slot, from the ground, with its cookie. @param number  chooses the key */
static SKY_Packet_t put_of(uint32_t number, uint64_t endpoint)
{
    SKY_Packet_t pkt = request_of(SKY_APID_KVC, SKY_OP_PUT);

    pkt.apid      = APID; /* the rig's service */
    pkt.payload   = body;
    pkt.length    = 1;
    pkt.chunk_len = LARGE;
    pkt.cookie    = SKY_Security_CookieOf(&security, 1, endpoint);
    (void)memcpy(pkt.key, &number, sizeof(number));
    return pkt;
}

/* Return how many requests, each of another key if @p is_each, may be asked now. Nothing was asked in the last second. */
static uint32_t asked_of(uint64_t now_us, SKY_Packet_t pkt, bool is_each)
{
    uint32_t count = 0;

    while (count < FLOOD * 10u && SKY_Security_MayAsk(&security, now_us, &pkt, GROUND))
    {
        ++count;
        if (is_each)
        {
            (void)memcpy(pkt.key, &count, sizeof(count));
        }
    }
    return count;
}

/* Without keys a byte of a large chunk costs as much as the slot that it takes, also if only a later part of it comes. */
static void test_puts_of_large_chunks_are_charged_by_the_slot(void)
{
    for (uint32_t offset = 0; offset < LARGE; offset += LARGE - 1u)
    {
        SKY_Packet_t pkt;

        secure(false, 0);
        for (uint32_t i = 0; i < 2u * SLOTS; ++i)
        {
            pkt        = put_of(i, GROUND);
            pkt.offset = offset;
            come(1, &pkt, GROUND);
        }
        CHECK_EQ(begun, SLOTS);
        CHECK_EQ(node.router.counters.drops[SKY_STATUS_BUSY], SLOTS);
        CHECK_EQ(security.counters.limited, SLOTS);
        CHECK_EQ(sent_count, 0); /* it is not even answered */

        SKY_Packet_t other = put_of(0, ELSEWHERE); /* another address takes nothing from it, and gets as much */

        come(1, &other, ELSEWHERE);
        CHECK_EQ(begun, SLOTS + 1u);
        come(SECOND_US, &pkt, GROUND); /* a second later there is a whole burst again */
        CHECK_EQ(begun, SLOTS + 2u);
        end();
    }
}

/* A chunk that shares a slot costs its cell and the entry of its block at least, and twice as much at most. */
static void test_puts_of_small_chunks_are_charged_by_the_cell(void)
{
    static const uint32_t lengths[] = {1, 100, 128, 129, 500, 963, 1000, 1488, 2000, 2005, LARGE - 1u};
    static uint8_t        memory[8192];
    SKY_Slab_t            slab;
    uint64_t              now_us = 0;

    secure(false, 0);
    SKY_Slab_Init(&slab, SLOT_OF_STORE, 1, BLOCK_ENTRY, memory + (0u - (uintptr_t)memory) % SKY_SLAB_ALIGNMENT);
    for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i)
    {
        SKY_Packet_t   pkt      = put_of(0, GROUND);
        const uint32_t class_id = SKY_Slab_ClassFor(&slab, CHUNK_ENTRY + lengths[i]);
        const uint64_t taken    = slab.units[class_id] * SKY_SLAB_UNIT + BLOCK_ENTRY;

        pkt.chunk_len = lengths[i];
        pkt.offset    = lengths[i] - 1u;
        now_us += SECOND_US;
        const uint64_t count = asked_of(now_us, pkt, true);

        CHECK(count * taken <= BURST);
        CHECK(count * taken * 2u > BURST / 100u * 99u);
    }
    end();
}

/* Whole chunks cost what they have, and requests that take no memory, too. */
static void test_what_takes_no_memory_is_charged_by_its_bytes(void)
{
    static const uint8_t full[6144];
    SKY_Packet_t         pkt;

    secure(false, 0);
    pkt                   = put_of(0, GROUND);
    pkt.payload           = full;
    pkt.length            = sizeof(full);
    pkt.chunk_len         = sizeof(full);
    const uint32_t wholes = asked_of(SECOND_US, pkt, true);

    CHECK(wholes < SLOTS && wholes > SLOTS * 9u / 10u);
    pkt    = put_of(0, GROUND);
    pkt.op = SKY_OP_GET;
    CHECK(asked_of(2u * SECOND_US, pkt, true) > 39u * SLOTS);
    end();
}

/* A chunk in parts takes memory once, even if the parts of a few chunks come in turn. */
static void test_parts_of_a_chunk_are_charged_for_once(void)
{
    SKY_Packet_t pkt;
    uint32_t     whole, turns = 0;

    secure(false, 0);
    pkt        = put_of(0, GROUND);
    pkt.offset = 1;
    whole      = asked_of(SECOND_US, pkt, false);
    CHECK(whole > 39u * SLOTS);
    for (uint32_t chunks = CHUNKS; chunks <= CHUNKS + 1u; ++chunks)
    {
        const uint64_t now_us = (2u + chunks) * SECOND_US;

        for (turns = 0; turns < FLOOD * 10u; ++turns)
        {
            const uint32_t number = 1u + turns % chunks;

            (void)memcpy(pkt.key, &number, sizeof(number));
            if (!SKY_Security_MayAsk(&security, now_us, &pkt, GROUND))
            {
                break;
            }
        }
        CHECK_EQ(turns > 39u * SLOTS, chunks == CHUNKS);
        CHECK(turns >= SLOTS);
    }
    end();
}

/* The largest part of a chunk may come first. It pays for the slot, and for all parts that follow. */
static void test_a_large_part_pays_for_those_that_follow(void)
{
    static const uint8_t large[7000];
    SKY_Packet_t         pkt;

    secure(false, 0);
    pkt           = put_of(0, GROUND);
    pkt.payload   = large;
    pkt.length    = sizeof(large);
    pkt.chunk_len = sizeof(large) + 1u;
    CHECK(SKY_Security_MayAsk(&security, SECOND_US, &pkt, GROUND));
    pkt.offset = sizeof(large);
    pkt.length = 1;
    CHECK(asked_of(SECOND_US, pkt, false) > 39u * SLOTS);
    end();
}

/* Chunks of other tenants, satellites, numbers, keys and lengths take other memory. */
static void test_what_names_memory(void)
{
    for (uint32_t kind = 0; kind < 5u; ++kind)
    {
        uint32_t count = 0;

        secure(false, 0);
        SKY_Packet_t pkt = put_of(0, GROUND);

        while (count < FLOOD && SKY_Security_MayAsk(&security, 1, &pkt, GROUND))
        {
            ++count;
            pkt.tenant                  = kind == 0u ? count : pkt.tenant;
            pkt.dst                     = kind == 1u ? (SKY_Addr_t){3, (uint16_t)count} : pkt.dst;
            pkt.chunk_id                = kind == 2u ? count : pkt.chunk_id;
            pkt.key[SKY_KEY_BYTES - 1u] = (uint8_t)(kind == 3u ? count : 0u);
            pkt.chunk_len               = kind == 4u ? LARGE + count : pkt.chunk_len;
        }
        CHECK_EQ(count, SLOTS);
        end();
    }
}

int main(void)
{
    RUN(test_an_address_is_told_so_often_why_it_is_not_served);
    RUN(test_all_addresses_together_are_told_so_often);
    RUN(test_openings_are_answered_in_a_flood_of_other_packets);
    RUN(test_a_handshake_without_a_cookie_gets_one_in_a_flood);
    RUN(test_invented_addresses_lock_no_host_out);
    RUN(test_handshakes_of_an_address_are_limited);
    RUN(test_handshakes_of_a_credential_over_a_link_are_limited);
    RUN(test_wrong_handshakes_over_a_link_shut_nobody_out);
    RUN(test_a_right_tag_is_always_served);
    RUN(test_puts_of_large_chunks_are_charged_by_the_slot);
    RUN(test_puts_of_small_chunks_are_charged_by_the_cell);
    RUN(test_what_takes_no_memory_is_charged_by_its_bytes);
    RUN(test_parts_of_a_chunk_are_charged_for_once);
    RUN(test_a_large_part_pays_for_those_that_follow);
    RUN(test_what_names_memory);
    return CHECK_RESULT();
}
