/**
 * @file
 * Tags of packets: what they cover, and what they leave out.
 */
#include "crypto_rig.h"
#include "fixture.h"
#include "sky_tag.h"

#define PLACE         5u
#define SEQUENCE      UINT64_C(0x0000000300000007)
#define PAYLOAD_BYTES 40u
#define WIRE_BYTES    (SKY_HEAD_MAX + PAYLOAD_BYTES + SKY_TAIL_MAX)

static crypto_rig_t rig;

static uint8_t wire[WIRE_BYTES];
static uint8_t payload[PAYLOAD_BYTES];
static uint8_t large[SKY_LIMIT_PACKET_BYTES];

static const uint8_t pair[SKY_CRYPTO_KEY_BYTES]        = {4, 5, 6};
static const uint8_t session_key[SKY_CRYPTO_KEY_BYTES] = {7, 8, 9};
static const uint8_t word[SKY_WORD_BYTES]              = "word of request";

typedef enum
{
    REQUEST,
    PUT,      /* a request with bytes of a chunk */
    RESPONSE, /* to HAS */
    CHUNK,    /* a response to GET */
    NOT_FOUND /* a response to GET without a chunk */
} kind_t;

static void open(void)
{
    crypto_rig_open(&rig);
    for (size_t i = 0; i < sizeof(payload); ++i)
    {
        payload[i] = (uint8_t)(3u * i);
    }
}

static bool has(uint8_t suite)
{
    return suite == SKY_SUITE_HANDSHAKE || (rig.crypto.suites & SKY_SUITE_BIT(suite)) != 0u;
}

/* Return the key of a suite, which is loaded. */
static SKY_TagKey_t key_of(uint8_t suite)
{
    if (suite == SKY_SUITE_HANDSHAKE)
    {
        return (SKY_TagKey_t){&rig.crypto, 0, pair, NULL};
    }
    CHECK(rig.crypto.LoadKey(rig.crypto.context, PLACE, suite, session_key));
    return (SKY_TagKey_t){&rig.crypto, PLACE, NULL, NULL};
}

static SKY_Packet_t a_packet(kind_t kind, uint8_t suite)
{
    const fx_block_t block = {1, 0, 1, PAYLOAD_BYTES, PAYLOAD_BYTES};
    SKY_Packet_t     pkt;

    fx_put(&block, 0, payload, &pkt);
    pkt.is_request = kind == REQUEST || kind == PUT;
    pkt.op         = kind == PUT ? SKY_OP_PUT : kind == REQUEST || kind == RESPONSE ? SKY_OP_HAS : SKY_OP_GET;
    pkt.status     = kind == NOT_FOUND ? SKY_STATUS_NOT_FOUND : SKY_STATUS_OK;
    pkt.gateway    = (SKY_Addr_t){3, 4};
    pkt.security   = suite;
    pkt.spi        = 9;
    pkt.sequence   = SEQUENCE;
    pkt.request_id = UINT64_C(0x123456789ABCDEF0);
    pkt.cookie     = UINT64_C(0xFEDCBA9876543210);
    return pkt;
}

/* Put head, payload and tail together. Return the bytes, 0 if the packet cannot be encoded. */
static size_t encode(const SKY_Packet_t *pkt, const SKY_TagKey_t *key, const uint16_t *payload_crc16)
{
    uint8_t      tail[SKY_TAIL_MAX];
    const size_t head_len = SKY_Tag_EncodeAround(pkt, key, payload_crc16, wire, tail);
    const size_t tail_len = SKY_Packet_TailBytes(pkt);

    if (head_len == 0u)
    {
        return 0;
    }
    (void)memcpy(wire + head_len, pkt->payload, pkt->length);
    (void)memcpy(wire + head_len + pkt->length, tail, tail_len);
    return head_len + pkt->length + tail_len;
}

/* Make checksum and PEC right again, as who forges a packet can. */
static void mend(size_t len)
{
    if ((wire[0] & 0x10u) != 0u)
    {
        wire[SKY_PRIMARY_BYTES + 1u] = 0;
        wire[SKY_PRIMARY_BYTES + 1u] = SKY_Xor8(0xFF, wire, len - SKY_PEC_BYTES);
    }
    const uint16_t pec = SKY_Crc16(SKY_CRC16_INIT, wire, len - SKY_PEC_BYTES);

    wire[len - 2u] = (uint8_t)(pec >> 8);
    wire[len - 1u] = (uint8_t)(pec & 0xFFu);
}

static void flip(size_t bit)
{
    wire[bit / 8u] = (uint8_t)(wire[bit / 8u] ^ (1u << (bit % 8u)));
}

/* Return true if the packet on the wire would be taken. */
static bool is_taken(size_t len, const SKY_TagKey_t *key, uint8_t suite)
{
    SKY_Packet_t pkt;

    return SKY_Packet_Decode(wire, len, &pkt) == SKY_STATUS_OK && pkt.security == suite && SKY_Tag_IsRight(&pkt, key);
}

/* Return true if a byte of the head may change on the way. */
static bool may_change(size_t byte, bool is_request)
{
    const size_t offset = (is_request ? SKY_REQUEST_HEAD : SKY_RESPONSE_HEAD) - SKY_HEADER_BYTES;

    return (is_request && byte == SKY_PRIMARY_BYTES + 1u) || byte == offset + SKY_OFF_HOP_LIMIT ||
           (byte >= offset + SKY_OFF_GATEWAY_PLANE && byte < offset + SKY_OFF_GATEWAY_SLOT + 2u);
}

/* Whoever flips a bit makes checksum and PEC right again. */
static void test_every_bit_counts_but_those_that_change_on_the_way(void)
{
    uint8_t sent[WIRE_BYTES];

    open();
    for (uint8_t suite = SKY_SUITE_GMAC_HEADER; suite <= SKY_SUITE_HANDSHAKE; ++suite)
    {
        for (kind_t kind = REQUEST; kind <= NOT_FOUND && has(suite); ++kind)
        {
            const SKY_Packet_t pkt      = a_packet(kind, suite);
            const SKY_TagKey_t key      = key_of(suite);
            const size_t       len      = encode(&pkt, &key, NULL);
            const size_t       head_len = pkt.is_request ? SKY_REQUEST_HEAD : SKY_RESPONSE_HEAD;
            const bool         is_free =
                (kind == PUT || kind == CHUNK) && (suite == SKY_SUITE_GMAC_HEADER || suite == SKY_SUITE_BLAKE2B_HEADER);

            CHECK_EQ(len, head_len + PAYLOAD_BYTES + SKY_TAIL_MAX);
            CHECK(is_taken(len, &key, suite));
            (void)memcpy(sent, wire, len);
            for (size_t bit = 0; bit < 8u * (len - SKY_PEC_BYTES); ++bit)
            {
                const size_t byte       = bit / 8u;
                const bool   in_payload = byte >= head_len && byte < head_len + PAYLOAD_BYTES;
                const bool   right      = byte < head_len ? may_change(byte, pkt.is_request) : is_free && in_payload;

                flip(bit);
                mend(len);
                if (is_taken(len, &key, suite) != right)
                {
                    (void)printf("suite %u, kind %u, bit %u of byte %zu\n", suite, (unsigned)kind, (unsigned)(bit % 8u), byte);
                    CHECK(false);
                }
                (void)memcpy(wire, sent, len);
            }
        }
    }
    crypto_rig_close(&rig);
}

/* A satellite on the way changes hop limit and gateway by the means that it has. */
static void test_a_packet_that_was_passed_on_is_right(void)
{
    open();
    for (kind_t kind = REQUEST; kind <= NOT_FOUND; ++kind)
    {
        const SKY_Packet_t pkt = a_packet(kind, SKY_SUITE_BLAKE2B_PACKET);
        const SKY_TagKey_t key = key_of(SKY_SUITE_BLAKE2B_PACKET);
        const size_t       len = encode(&pkt, &key, NULL);

        SKY_Packet_Relabel(wire, len, 3, (SKY_Addr_t){8, 9});
        CHECK(is_taken(len, &key, SKY_SUITE_BLAKE2B_PACKET));
    }
    crypto_rig_close(&rig);
}

static void test_another_key_or_place_makes_another_tag(void)
{
    const uint8_t other[SKY_CRYPTO_KEY_BYTES] = {1};
    SKY_TagKey_t  place;
    size_t        len;

    open();
    for (uint8_t suite = SKY_SUITE_GMAC_HEADER; suite <= SKY_SUITE_BLAKE2B_PACKET; ++suite)
    {
        if (has(suite))
        {
            const SKY_Packet_t pkt = a_packet(REQUEST, suite);
            const SKY_TagKey_t key = key_of(suite);

            len         = encode(&pkt, &key, NULL);
            place       = key;
            place.place = PLACE + 1u;
            CHECK(!is_taken(len, &place, suite)); /* there is no key */
            CHECK(rig.crypto.LoadKey(rig.crypto.context, PLACE + 1u, suite, other));
            CHECK(!is_taken(len, &place, suite));
            CHECK(rig.crypto.LoadKey(rig.crypto.context, PLACE + 1u, suite, session_key));
            CHECK(is_taken(len, &place, suite));
            rig.crypto.EraseKey(rig.crypto.context, PLACE + 1u);
        }
    }
    const SKY_Packet_t pkt  = a_packet(REQUEST, SKY_SUITE_HANDSHAKE);
    const SKY_TagKey_t key  = key_of(SKY_SUITE_HANDSHAKE);
    const SKY_TagKey_t pair = {&rig.crypto, 0, other, NULL};

    len = encode(&pkt, &key, NULL);
    CHECK(is_taken(len, &key, SKY_SUITE_HANDSHAKE));
    CHECK(!is_taken(len, &pair, SKY_SUITE_HANDSHAKE));
    crypto_rig_close(&rig);
}

/* The answer to a handshake answers that request alone. */
static void test_the_answer_to_a_handshake_covers_the_word(void)
{
    static const uint8_t other[SKY_WORD_BYTES] = "another word";

    open();
    const SKY_Packet_t pkt     = a_packet(RESPONSE, SKY_SUITE_HANDSHAKE);
    const SKY_TagKey_t request = {&rig.crypto, 0, pair, NULL};
    const SKY_TagKey_t right   = {&rig.crypto, 0, pair, word};
    const SKY_TagKey_t wrong   = {&rig.crypto, 0, pair, other};
    const size_t       len     = encode(&pkt, &right, NULL);

    CHECK(is_taken(len, &right, SKY_SUITE_HANDSHAKE));
    CHECK(!is_taken(len, &wrong, SKY_SUITE_HANDSHAKE));
    CHECK(!is_taken(len, &request, SKY_SUITE_HANDSHAKE));
    crypto_rig_close(&rig);
}

static void test_a_packet_without_payload_has_a_tag(void)
{
    open();
    for (uint8_t suite = SKY_SUITE_GMAC_HEADER; suite <= SKY_SUITE_HANDSHAKE; ++suite)
    {
        if (has(suite))
        {
            SKY_Packet_t       pkt = a_packet(REQUEST, suite);
            const SKY_TagKey_t key = key_of(suite);

            pkt.length       = 0;
            const size_t len = encode(&pkt, &key, NULL);

            CHECK_EQ(len, SKY_REQUEST_OVERHEAD);
            CHECK(is_taken(len, &key, suite));
            wire[len - SKY_TAIL_MAX] = (uint8_t)(wire[len - SKY_TAIL_MAX] ^ 1u);
            mend(len);
            CHECK(!is_taken(len, &key, suite));
        }
    }
    crypto_rig_close(&rig);
}

/* The CRC of a payload that was read before makes the same packet. */
static void test_a_known_crc_makes_the_same_packet(void)
{
    uint8_t before[WIRE_BYTES];

    open();
    const SKY_Packet_t pkt = a_packet(CHUNK, SKY_SUITE_BLAKE2B_HEADER);
    const SKY_TagKey_t key = key_of(SKY_SUITE_BLAKE2B_HEADER);
    const size_t       len = encode(&pkt, &key, NULL);

    (void)memcpy(before, wire, sizeof(before));
    CHECK_EQ(encode(&pkt, &key, &pkt.payload_crc16), len);
    CHECK(memcmp(before, wire, len) == 0);
    crypto_rig_close(&rig);
}

static void test_without_a_suite_a_packet_is_as_ever(void)
{
    uint8_t      plain[WIRE_BYTES];
    SKY_Packet_t pkt;

    open();
    const SKY_Packet_t sent = a_packet(PUT, SKY_SUITE_NONE);
    const size_t       len  = encode(&sent, NULL, NULL);

    CHECK_EQ(len, SKY_Packet_Encode(&sent, plain, sizeof(plain)));
    CHECK(memcmp(plain, wire, len) == 0);
    CHECK_EQ(SKY_Packet_Decode(wire, len, &pkt), SKY_STATUS_OK);
    CHECK(pkt.tag == NULL);
    crypto_rig_close(&rig);
}

static void test_what_is_too_large_is_not_encoded(void)
{
    uint8_t head[SKY_HEAD_MAX];
    uint8_t tail[SKY_TAIL_MAX];

    open();
    const SKY_TagKey_t key = key_of(SKY_SUITE_BLAKE2B_PACKET);
    SKY_Packet_t       pkt = a_packet(REQUEST, SKY_SUITE_BLAKE2B_PACKET);

    pkt.payload = large;
    pkt.length  = SKY_LIMIT_PACKET_BYTES - SKY_REQUEST_OVERHEAD;
    CHECK_EQ(SKY_Tag_EncodeAround(&pkt, &key, NULL, head, tail), SKY_REQUEST_HEAD);
    pkt.length += 1u;
    CHECK_EQ(SKY_Tag_EncodeAround(&pkt, &key, NULL, head, tail), 0);
    pkt.security = SKY_SUITE_NONE;
    pkt.length   = SKY_LIMIT_PACKET_BYTES - SKY_REQUEST_BYTES;
    CHECK_EQ(SKY_Tag_EncodeAround(&pkt, NULL, NULL, head, tail), SKY_REQUEST_HEAD);
    pkt.length += 1u;
    CHECK_EQ(SKY_Tag_EncodeAround(&pkt, NULL, NULL, head, tail), 0);
    crypto_rig_close(&rig);
}

static void test_without_a_key_nothing_is_encoded(void)
{
    open();
    const SKY_Packet_t pkt = a_packet(REQUEST, SKY_SUITE_BLAKE2B_PACKET);
    const SKY_TagKey_t key = key_of(SKY_SUITE_BLAKE2B_PACKET);

    rig.crypto.EraseKey(rig.crypto.context, PLACE);
    CHECK_EQ(encode(&pkt, &key, NULL), 0);
    crypto_rig_close(&rig);
}

int main(void)
{
    RUN(test_every_bit_counts_but_those_that_change_on_the_way);
    RUN(test_a_packet_that_was_passed_on_is_right);
    RUN(test_another_key_or_place_makes_another_tag);
    RUN(test_the_answer_to_a_handshake_covers_the_word);
    RUN(test_a_packet_without_payload_has_a_tag);
    RUN(test_a_known_crc_makes_the_same_packet);
    RUN(test_without_a_suite_a_packet_is_as_ever);
    RUN(test_what_is_too_large_is_not_encoded);
    RUN(test_without_a_key_nothing_is_encoded);
    return CHECK_RESULT();
}
