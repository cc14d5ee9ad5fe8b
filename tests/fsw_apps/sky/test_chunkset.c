/* Chunk sets: members, order, and what a peer may not send. */
#include "sky_chunkset.h"

#include <string.h>

#include "check.h"

static SKY_ChunkSet_t set, decoded;
static uint8_t        wire[SKY_CHUNKSET_MAX_BYTES];

static void Limits(void)
{
    CHECK(SKY_ChunkSet_Init(&set, 0, 1, 1));
    CHECK(SKY_ChunkSet_Init(&set, 0, 1, SKY_LIMIT_CHUNK_SET));
    CHECK(!SKY_ChunkSet_Init(&set, 0, 1, 0));
    CHECK(!SKY_ChunkSet_Init(&set, 0, 1, SKY_LIMIT_CHUNK_SET + 1u));
    CHECK(!SKY_ChunkSet_Init(&set, 0, 0, 1));
    CHECK(SKY_ChunkSet_Init(&set, UINT32_MAX, UINT32_MAX, 1)); /* the stride of one chunk leads nowhere */
    CHECK(SKY_ChunkSet_Init(&set, UINT32_MAX - 70u, 10, 8));
    CHECK_EQ(SKY_ChunkSet_ChunkId(&set, 7), UINT32_MAX);
    CHECK(!SKY_ChunkSet_Init(&set, UINT32_MAX - 69u, 10, 8));
    CHECK(!SKY_ChunkSet_Init(&set, 0, UINT32_MAX, SKY_LIMIT_CHUNK_SET));
}

static void Members(void)
{
    uint32_t seen = 0;

    CHECK(SKY_ChunkSet_Init(&set, 3, 10, 50)); /* share of server 3 of 10 in a block of 496 chunks */
    CHECK_EQ(SKY_ChunkSet_Size(&set), 0);
    CHECK_EQ(SKY_ChunkSet_Next(&set, 0), 50);
    SKY_ChunkSet_Add(&set, 0);
    SKY_ChunkSet_Add(&set, 7);
    SKY_ChunkSet_Add(&set, 8);
    SKY_ChunkSet_Add(&set, 49);
    SKY_ChunkSet_Add(&set, 50);         /* not of this set */
    SKY_ChunkSet_Add(&set, UINT32_MAX); /* nor this */
    CHECK_EQ(SKY_ChunkSet_Size(&set), 4);
    for (uint32_t i = 0; i < 60u; ++i)
    {
        CHECK_EQ(SKY_ChunkSet_Has(&set, i), i == 0u || i == 7u || i == 8u || i == 49u);
    }
    for (uint32_t i = SKY_ChunkSet_Next(&set, 0); i < set.count; i = SKY_ChunkSet_Next(&set, i + 1u))
    {
        CHECK(SKY_ChunkSet_Has(&set, i));
        ++seen;
    }
    CHECK_EQ(seen, 4);
    CHECK_EQ(SKY_ChunkSet_Next(&set, 1), 7);
    CHECK_EQ(SKY_ChunkSet_Next(&set, 9), 49);
    CHECK_EQ(SKY_ChunkSet_Next(&set, 1000), 50);
    SKY_ChunkSet_Remove(&set, 7);
    SKY_ChunkSet_Remove(&set, 50);
    CHECK_EQ(SKY_ChunkSet_Size(&set), 3);
    CHECK_EQ(SKY_ChunkSet_Next(&set, 1), 8);
}

static void ChunkIds(void)
{
    CHECK(SKY_ChunkSet_Init(&set, 3, 10, 50));
    for (uint32_t i = 0; i < 50u; ++i)
    {
        CHECK_EQ(SKY_ChunkSet_ChunkId(&set, i), 3u + 10u * i);
        CHECK_EQ(SKY_ChunkSet_IndexOf(&set, 3u + 10u * i), i);
    }
    CHECK_EQ(SKY_ChunkSet_IndexOf(&set, 2), 50);
    CHECK_EQ(SKY_ChunkSet_IndexOf(&set, 4), 50);
    CHECK_EQ(SKY_ChunkSet_IndexOf(&set, 503), 50);
    CHECK_EQ(SKY_ChunkSet_IndexOf(&set, UINT32_MAX), 50);
}

static void SizeCountsEveryByte(void)
{
    CHECK(SKY_ChunkSet_Init(&set, 0, 1, 8));
    for (uint32_t byte = 0; byte < 256u; ++byte)
    {
        uint32_t bits = 0;

        set.map[0] = (uint8_t)byte;
        for (uint32_t i = 0; i < 8u; ++i)
        {
            bits += SKY_ChunkSet_Has(&set, i) ? 1u : 0u;
        }
        CHECK_EQ(SKY_ChunkSet_Size(&set), bits);
    }
}

static SKY_Packet_t Carrier(uint32_t chunk_id, size_t length)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.chunk_id = chunk_id;
    pkt.payload  = wire;
    pkt.length   = (uint32_t)length;
    return pkt;
}

static void RoundTrip(void)
{
    for (uint32_t count = 1; count <= SKY_LIMIT_CHUNK_SET; count += count < 40u ? 1u : 251u)
    {
        SKY_Packet_t pkt;
        size_t       len;

        CHECK(SKY_ChunkSet_Init(&set, 77, 0x01020304u % (1u << 20), count));
        for (uint32_t i = 0; i < count; i += 3u)
        {
            SKY_ChunkSet_Add(&set, i);
        }
        len = SKY_ChunkSet_Encode(&set, wire, sizeof(wire));
        CHECK_EQ(len, SKY_CHUNK_SET_BYTES + (count + 7u) / 8u);
        CHECK_EQ(SKY_ChunkSet_Encode(&set, wire, len - 1u), 0);
        CHECK_EQ(SKY_ChunkSet_Encode(&set, wire, len), len);
        (void)memset(&decoded, 0xFF, sizeof(decoded));
        pkt = Carrier(77, len);
        CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &decoded), SKY_STATUS_OK);
        CHECK(decoded.base == set.base && decoded.stride == set.stride && decoded.count == set.count);
        CHECK(memcmp(set.map, decoded.map, sizeof(set.map)) == 0);
    }
}

static void WireFormat(void)
{
    static const uint8_t expected[] = {0, 0, 0, 10, 0, 9, 0, 0, 0x81, 0x80};

    CHECK(SKY_ChunkSet_Init(&set, 0, 10, 9));
    SKY_ChunkSet_Add(&set, 0);
    SKY_ChunkSet_Add(&set, 7);
    SKY_ChunkSet_Add(&set, 8);
    CHECK_EQ(SKY_ChunkSet_Encode(&set, wire, sizeof(wire)), sizeof(expected));
    CHECK(memcmp(wire, expected, sizeof(expected)) == 0);
}

static void BadInput(void)
{
    SKY_Packet_t pkt;

    CHECK(SKY_ChunkSet_Init(&set, 0, 10, 20));
    (void)SKY_ChunkSet_Encode(&set, wire, sizeof(wire));

    pkt = Carrier(0, SKY_CHUNK_SET_BYTES - 1u);
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &decoded), SKY_STATUS_BAD_LENGTH);
    pkt = Carrier(0, SKY_CHUNK_SET_BYTES + 2u);
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &decoded), SKY_STATUS_BAD_LENGTH);
    pkt = Carrier(0, SKY_CHUNK_SET_BYTES + 4u);
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &decoded), SKY_STATUS_BAD_LENGTH);
    pkt = Carrier(UINT32_MAX - 189u, SKY_CHUNK_SET_BYTES + 3u);
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &decoded), SKY_STATUS_BAD_CHUNK);

    wire[SKY_CHUNK_SET_OFF_COUNT] = 0xFF;
    pkt                           = Carrier(0, SKY_CHUNK_SET_BYTES + 3u);
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &decoded), SKY_STATUS_BAD_CHUNK);
    wire[SKY_CHUNK_SET_OFF_COUNT] = 0;

    wire[SKY_CHUNK_SET_BYTES + 2u] = 0xFF; /* 20 bits: the last four of this byte are not of the set */
    CHECK_EQ(SKY_ChunkSet_Decode(&pkt, &decoded), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&decoded), 4);
    CHECK_EQ(decoded.map[2], 0xF0);
}

int main(void)
{
    RUN(Limits);
    RUN(Members);
    RUN(ChunkIds);
    RUN(SizeCountsEveryByte);
    RUN(RoundTrip);
    RUN(WireFormat);
    RUN(BadInput);
    return CHECK_RESULT();
}
