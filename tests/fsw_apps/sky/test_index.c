/**
 * @file
 * sky_index.c: the keyed hash against published SipHash-1-3 values, the index against an array.
 */
#include "check.h"
#include "fixture.h"

#define ENTRIES 100u

static SKY_IndexCell_t cells[256];

static uint32_t fold(uint64_t hash)
{
    return (uint32_t)(hash ^ (hash >> 32));
}

/* CPython 3.11 and later hash bytes by SipHash-1-3; with PYTHONHASHSEED=0 the secret is zero. */
static void test_hash(void)
{
    const uint64_t zero[2]  = {0, 0};
    const uint64_t other[2] = {0, 1};
    uint8_t        bytes[40];
    uint64_t       words[5];

    for (uint32_t i = 0; i < sizeof(bytes); ++i)
    {
        bytes[i] = (uint8_t)i;
    }
    for (uint32_t i = 0; i < 5; ++i)
    {
        words[i] = 0;
        for (uint32_t j = 0; j < 8; ++j)
        {
            words[i] |= (uint64_t)bytes[8 * i + j] << (8 * j);
        }
    }
    CHECK_EQ(SKY_Hash(zero, words, 5), fold(0x95bc321ab41d8206ull));
    words[0] = 0x0807060504030201ull;
    CHECK_EQ(SKY_Hash(zero, words, 1), fold(0x884ccc87cb0e5fb0ull));
    words[0] = 0;
    CHECK_EQ(SKY_Hash(zero, words, 1), fold(0xbd60acb658c79e45ull));
    CHECK(SKY_Hash(other, words, 1) != SKY_Hash(zero, words, 1));
}

static void test_sizes(void)
{
    CHECK_EQ(SKY_Index_MemoryBytes(1), 2 * sizeof(SKY_IndexCell_t));
    CHECK_EQ(SKY_Index_MemoryBytes(100), 256 * sizeof(SKY_IndexCell_t));
    CHECK_EQ(SKY_Index_MemoryBytes(128), 256 * sizeof(SKY_IndexCell_t));
    CHECK_EQ(SKY_Index_MemoryBytes(1u << 22), ((size_t)1 << 23) * sizeof(SKY_IndexCell_t));
}

static bool finds(const SKY_Index_t *index, uint32_t hash, uint32_t entry)
{
    uint32_t step  = 0;
    uint32_t found = SKY_Index_Find(index, hash, &step);

    while (found != SKY_INDEX_NONE && found != entry)
    {
        found = SKY_Index_Find(index, hash, &step);
    }
    return found == entry;
}

/* Hashes from a small range, so that runs grow long, wrap round the end, and several entries share a hash. */
static void test_against_array(void)
{
    uint64_t    random = 42;
    uint32_t    hashes[ENTRIES];
    bool        held[ENTRIES] = {false};
    SKY_Index_t index;

    SKY_Index_Init(&index, cells, ENTRIES);
    for (uint32_t round = 0; round < 20000; ++round)
    {
        const uint32_t entry = fx_below(&random, ENTRIES);

        if (held[entry])
        {
            SKY_Index_Remove(&index, hashes[entry], entry);
        }
        else
        {
            hashes[entry] = 200u + fx_below(&random, 90) + (fx_below(&random, 2) << 20);
            SKY_Index_Insert(&index, hashes[entry], entry);
        }
        held[entry] = !held[entry];
        if (round % 50 == 0)
        {
            uint32_t used = 0;

            for (uint32_t i = 0; i < ENTRIES; ++i)
            {
                CHECK(!held[i] || finds(&index, hashes[i], i));
                used += held[i] ? 1u : 0u;
            }
            for (uint32_t i = 0; i <= index.mask; ++i)
            {
                used -= cells[i].entry != SKY_INDEX_NONE ? 1u : 0u;
            }
            CHECK_EQ(used, 0);
            CHECK(held[entry] || !finds(&index, hashes[entry], entry));
        }
    }
    SKY_Index_Clear(&index);
    CHECK(!finds(&index, hashes[0], 0));
}

int main(void)
{
    RUN(test_hash);
    RUN(test_sizes);
    RUN(test_against_array);
    return CHECK_RESULT();
}
