/**
 * @file
 * Bytes of chunks that a fetch receives: whole ones, and parts.
 */
#include "sky_fetch_chunk.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_crc.h"

/* Return the entry of a chunk's parts; the oldest entry makes room for a new one. */
static SKY_Parts_t *fetch_parts(SKY_Fetch_t *fetch, uint32_t index)
{
    SKY_Partial_t *partial;
    SKY_ASSERT(index < fetch->cfg.count);

    for (uint32_t i = 0; i < SKY_FETCH_PARTIALS; ++i)
    {
        partial = &fetch->partials[i];
        if (partial->index == index)
        {
            return &partial->parts;
        }
    }
    SKY_ASSERT(fetch->partial_next < SKY_FETCH_PARTIALS);
    partial             = &fetch->partials[fetch->partial_next];
    fetch->partial_next = (fetch->partial_next + 1) % SKY_FETCH_PARTIALS;
    (void)memset(partial, 0, sizeof(*partial));
    partial->index = index;
    SKY_ASSERT(fetch->partial_next < SKY_FETCH_PARTIALS);
    return &partial->parts;
}

/* Put a part into its chunk. @return true if the chunk is complete now and its checksum is right */
static bool fetch_part(SKY_Fetch_t *fetch, const SKY_Packet_t *pkt, uint8_t *chunk, uint32_t index)
{
    SKY_Parts_t *parts = fetch_parts(fetch, index);
    SKY_ASSERT(pkt->offset + pkt->length <= pkt->chunk_len);
    SKY_ASSERT(pkt->length < pkt->chunk_len); /* a part is shorter than its chunk */
    SKY_ASSERT(pkt->chunk_len <= fetch->cfg.stripe.chunk_len);

    if (!SKY_Parts_Add(parts, pkt->chunk_len, pkt->offset, pkt->length))
    {
        /* Another link cuts the chunk in another way than before: begin anew. */
        (void)memset(parts, 0, sizeof(*parts));
        (void)SKY_Parts_Add(parts, pkt->chunk_len, pkt->offset, pkt->length);
    }
    (void)memcpy(chunk + pkt->offset, pkt->payload, pkt->length);
    if (!SKY_Parts_AllHere(parts))
    {
        return false;
    }
    (void)memset(parts, 0, sizeof(*parts));
    if (SKY_Crc32c(0, chunk, pkt->chunk_len) != pkt->chunk_crc)
    {
        ++fetch->corrupt;
        return false;
    }
    return true;
}

static bool fetch_whole(SKY_Fetch_t *fetch, const SKY_Packet_t *pkt, uint8_t *chunk)
{
    SKY_ASSERT(pkt->offset == 0);
    SKY_ASSERT(pkt->length == pkt->chunk_len);
    SKY_ASSERT(pkt->chunk_len <= fetch->cfg.stripe.chunk_len);
    if (SKY_Crc32c(0, pkt->payload, pkt->chunk_len) != pkt->chunk_crc)
    {
        ++fetch->corrupt;
        return false;
    }
    (void)memcpy(chunk, pkt->payload, pkt->chunk_len);
    return true;
}

/* Return the memory of a chunk. */
static uint8_t *memory_of(const SKY_Fetch_t *fetch, uint32_t id)
{
    const bool   is_parity = SKY_Stripe_IsParity(&fetch->cfg.stripe, id);
    const size_t offset    = SKY_Stripe_Offset(&fetch->cfg.stripe, id);
    SKY_ASSERT(!is_parity || fetch->parity != NULL);
    SKY_ASSERT(is_parity || offset + SKY_Stripe_ChunkBytes(&fetch->cfg.stripe, id) <= fetch->cfg.stripe.block_len);

    return (is_parity ? fetch->parity : fetch->block) + offset;
}

bool SKY_FetchChunk_Take(SKY_Fetch_t *fetch, const SKY_Packet_t *pkt, uint32_t index)
{
    uint8_t *chunk = memory_of(fetch, pkt->chunk_id);
    SKY_ASSERT(index < fetch->cfg.count);
    SKY_ASSERT(pkt->length >= 1);

    return pkt->length == pkt->chunk_len ? fetch_whole(fetch, pkt, chunk) : fetch_part(fetch, pkt, chunk, index);
}
