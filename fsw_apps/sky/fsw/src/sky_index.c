/**
 * @file
 * Open-addressing index and keyed hash: see sky_index.h. At least half of the cells are empty, so a search ends soon. Every loop
 * over cells is bounded all the same.
 */
#include "sky_index.h"

#include <string.h>

#include "sky_assert.h"

#define INDEX_ENTRIES_MAX (1u << 22) /* sky_index.h promises this number */

static uint32_t cell_count(uint32_t entries)
{
    uint32_t cells = 2;
    SKY_ASSERT(entries >= 1);
    SKY_ASSERT(entries <= INDEX_ENTRIES_MAX); /* the number of cells does not overflow */

    while (cells < 2u * entries)
    {
        cells *= 2u;
    }
    SKY_ASSERT(cells >= 2u * entries);
    return cells;
}

size_t SKY_Index_MemoryBytes(uint32_t entries)
{
    return cell_count(entries) * sizeof(SKY_IndexCell_t);
}

void SKY_Index_Init(SKY_Index_t *index, void *memory, uint32_t entries)
{
    index->cells = memory;
    index->mask  = cell_count(entries) - 1u;
    SKY_ASSERT(index->mask >= 1);
    SKY_ASSERT((index->mask & (index->mask + 1u)) == 0); /* the number of cells is a power of two */
    SKY_ASSERT(index->mask >= entries);                  /* at least one cell is always empty */
    SKY_ASSERT((uintptr_t)memory % sizeof(uint32_t) == 0);
    SKY_Index_Clear(index);
}

void SKY_Index_Clear(SKY_Index_t *index)
{
    SKY_ASSERT(index->cells != NULL);
    SKY_ASSERT((index->mask & (index->mask + 1u)) == 0);
    /* Bytes of 0xFF make every entry SKY_INDEX_NONE. */
    (void)memset(index->cells, 0xFF, ((size_t)index->mask + 1u) * sizeof(SKY_IndexCell_t));
}

void SKY_Index_Insert(SKY_Index_t *index, uint32_t hash, uint32_t entry)
{
    uint32_t at = hash & index->mask;
    SKY_ASSERT(entry != SKY_INDEX_NONE);

    /* Insert an entry. The loop is bounded: if no cell were empty, an entry would be lost, but the satellite would not stop. */
    for (uint32_t looked = 0; looked < index->mask && index->cells[at].entry != SKY_INDEX_NONE; ++looked)
    {
        at = (at + 1u) & index->mask;
    }
    SKY_ASSERT(at <= index->mask);
    SKY_ASSERT(index->cells[at].entry == SKY_INDEX_NONE); /* the index has a cell for every entry */
    index->cells[at].hash  = hash;
    index->cells[at].entry = entry;
}

void SKY_Index_Remove(SKY_Index_t *index, uint32_t hash, uint32_t entry)
{
    SKY_IndexCell_t *cells = index->cells;
    const uint32_t   mask  = index->mask;
    uint32_t         hole  = hash & mask;

    for (uint32_t looked = 0; looked < mask && cells[hole].entry != entry; ++looked)
    {
        hole = (hole + 1u) & mask;
    }
    SKY_ASSERT(cells[hole].entry == entry);
    SKY_ASSERT(cells[hole].hash == hash);
    if (cells[hole].entry != entry)
    {
        return; /* there is nothing to remove, and the other cells stay as they are */
    }
    /* A cell behind the hole moves into it unless that would put it before its home. The loop ends at the hole at the latest. */
    cells[hole].entry = SKY_INDEX_NONE;
    for (uint32_t at = (hole + 1u) & mask; cells[at].entry != SKY_INDEX_NONE; at = (at + 1u) & mask)
    {
        if (((at - cells[at].hash) & mask) >= ((at - hole) & mask))
        {
            cells[hole]     = cells[at];
            cells[at].entry = SKY_INDEX_NONE;
            hole            = at;
        }
    }
    SKY_ASSERT(hole <= mask);
}

uint32_t SKY_Index_Find(const SKY_Index_t *index, uint32_t hash, uint32_t *step)
{
    const SKY_IndexCell_t *cell = &index->cells[(hash + *step) & index->mask];

    while (*step <= index->mask && cell->entry != SKY_INDEX_NONE)
    {
        ++*step;
        if (cell->hash == hash)
        {
            SKY_ASSERT(*step <= index->mask + 1u);
            return cell->entry;
        }
        cell = &index->cells[(hash + *step) & index->mask];
    }
    SKY_ASSERT(*step <= index->mask + 1u);
    return SKY_INDEX_NONE;
}

static uint64_t rotl(uint64_t x, unsigned bits)
{
    SKY_ASSERT(bits >= 1u);
    SKY_ASSERT(bits < 64u);
    return (x << bits) | (x >> (64u - bits));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[0] = rotl(v[0], 32);
    v[2] += v[3];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[2] = rotl(v[2], 32);
}

uint32_t SKY_Hash(const uint64_t secret[2], const uint64_t *words, uint32_t count)
{
    const uint64_t length = (uint64_t)(count * 8u) << 56;
    uint64_t       v[4]   = {secret[0] ^ 0x736f6d6570736575u, secret[1] ^ 0x646f72616e646f6du, secret[0] ^ 0x6c7967656e657261u,
                             secret[1] ^ 0x7465646279746573u};
    SKY_ASSERT(count >= 1);
    SKY_ASSERT(count < 32); /* the bytes are counted in 8 bits */

    for (uint32_t i = 0; i < count; ++i)
    {
        v[3] ^= words[i];
        sip_round(v);
        v[0] ^= words[i];
    }
    v[3] ^= length;
    sip_round(v);
    v[0] ^= length;
    v[2] ^= 0xFFu;
    for (uint32_t i = 0; i < 3; ++i)
    {
        sip_round(v);
    }
    const uint64_t hash = v[0] ^ v[1] ^ v[2] ^ v[3];
    return (uint32_t)(hash ^ (hash >> 32));
}
