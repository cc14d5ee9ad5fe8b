/**
 * @file
 * Stripe of a block: see sky_stripe.h.
 */
#include "sky_stripe.h"

#include "sky_assert.h"

/* Return the chunks of a full row; 0 without a code. */
static uint32_t Width(const SKY_Stripe_t *stripe)
{
    SKY_ASSERT(stripe != NULL);
    return (uint32_t)stripe->code_k + stripe->code_m;
}

static bool IsCode(uint32_t code_k, uint32_t code_m)
{
    SKY_ASSERT(code_k <= UINT8_MAX);
    SKY_ASSERT(code_m <= UINT8_MAX);
    return (code_k == 0u) == (code_m == 0u) && code_k + code_m <= SKY_STRIPE_ROW_MAX;
}

bool SKY_Stripe_Cut(SKY_Stripe_t *stripe, uint32_t block_len, uint32_t chunk_len, uint8_t code_k, uint8_t code_m)
{
    SKY_ASSERT(stripe != NULL);
    if (block_len == 0u || chunk_len == 0u || !IsCode(code_k, code_m))
    {
        return false;
    }
    const uint32_t data   = (block_len - 1u) / chunk_len + 1u;
    const uint64_t parity = code_k == 0u ? 0u : ((data - 1u) / (uint64_t)code_k + 1u) * code_m;

    SKY_ASSERT(data >= 1u);
    SKY_ASSERT(parity >= code_m || code_k == 0u);
    *stripe = (SKY_Stripe_t){block_len, chunk_len, (uint32_t)(data + parity), code_k, code_m};
    return data + parity <= UINT32_MAX && SKY_Stripe_Check(stripe);
}

bool SKY_Stripe_Check(const SKY_Stripe_t *stripe)
{
    const uint32_t width = Width(stripe);

    if (stripe->block_len == 0u || stripe->chunk_len == 0u || stripe->chunk_len > SKY_LIMIT_CHUNK_BYTES ||
        stripe->chunk_total == 0u || !IsCode(stripe->code_k, stripe->code_m))
    {
        return false;
    }
    if (width > 0u && ((stripe->chunk_total - 1u) % width < stripe->code_m || /* the last row has no data chunk */
                       (stripe->chunk_total - 1u) / width >= SKY_STRIPE_ROWS_MAX))
    {
        return false;
    }
    const uint64_t data = SKY_Stripe_DataChunks(stripe);
    SKY_ASSERT(data >= 1u);
    SKY_ASSERT(data <= stripe->chunk_total);

    return (data - 1u) * stripe->chunk_len < stripe->block_len && stripe->block_len <= data * stripe->chunk_len;
}

static bool KnowsCode(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt != NULL);
    return pkt->code_scheme == (pkt->code_k == 0u ? SKY_CODE_NONE : SKY_CODE_CAUCHY);
}

bool SKY_Stripe_OfPacket(SKY_Stripe_t *stripe, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(stripe != NULL);
    SKY_ASSERT(pkt != NULL);
    *stripe = (SKY_Stripe_t){pkt->block_len, pkt->chunk_len, pkt->chunk_total, pkt->code_k, pkt->code_m};
    return KnowsCode(pkt) && SKY_Stripe_Check(stripe);
}

/* Return the length of a full chunk, which that of a chunk suggests. The stripe's own is that of the chunk. */
static uint32_t FullOf(const SKY_Stripe_t *stripe, uint32_t id)
{
    const uint32_t        others = SKY_Stripe_DataChunks(stripe) - 1u;
    const SKY_StripeRow_t row    = SKY_Stripe_Row(stripe, SKY_Stripe_RowOf(stripe, id));
    const bool            ends   = row.first + row.data + row.parity == stripe->chunk_total;
    SKY_ASSERT(id < stripe->chunk_total);
    SKY_ASSERT(row.data >= 1u);

    if (others > 0u && ends && (id + 1u == row.first + row.data || row.data == 1u))
    {
        return stripe->block_len > stripe->chunk_len ? (stripe->block_len - stripe->chunk_len) / others : 0u;
    }
    return stripe->chunk_len;
}

bool SKY_Stripe_OfChunk(SKY_Stripe_t *stripe, const SKY_Packet_t *pkt)
{
    const uint32_t width = (uint32_t)pkt->code_k + pkt->code_m;

    *stripe = (SKY_Stripe_t){pkt->block_len, pkt->chunk_len, pkt->chunk_total, pkt->code_k, pkt->code_m};
    if (!KnowsCode(pkt) || !IsCode(pkt->code_k, pkt->code_m) || pkt->chunk_id >= pkt->chunk_total ||
        (width > 0u && (pkt->chunk_total - 1u) % width < pkt->code_m))
    {
        return false;
    }
    SKY_ASSERT(pkt->chunk_id < stripe->chunk_total);
    SKY_ASSERT(stripe->chunk_len == pkt->chunk_len);
    stripe->chunk_len = FullOf(stripe, pkt->chunk_id);
    return SKY_Stripe_Check(stripe) && SKY_Stripe_ChunkBytes(stripe, pkt->chunk_id) == pkt->chunk_len;
}

bool SKY_Stripe_IsChunk(const SKY_Stripe_t *stripe, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(stripe->chunk_total >= 1u);
    SKY_ASSERT(stripe->chunk_len >= 1u);
    return pkt->block_len == stripe->block_len && pkt->chunk_total == stripe->chunk_total && pkt->code_k == stripe->code_k &&
           pkt->code_m == stripe->code_m && KnowsCode(pkt) && pkt->chunk_id < pkt->chunk_total &&
           SKY_Stripe_ChunkBytes(stripe, pkt->chunk_id) == pkt->chunk_len;
}

void SKY_Stripe_ToPacket(const SKY_Stripe_t *stripe, SKY_Packet_t *pkt)
{
    SKY_ASSERT(stripe->chunk_total >= 1u);
    SKY_ASSERT((stripe->code_k == 0u) == (stripe->code_m == 0u));
    pkt->block_len   = stripe->block_len;
    pkt->chunk_len   = stripe->chunk_len;
    pkt->chunk_total = stripe->chunk_total;
    pkt->code_k      = stripe->code_k;
    pkt->code_m      = stripe->code_m;
    pkt->code_scheme = stripe->code_k == 0u ? (uint8_t)SKY_CODE_NONE : (uint8_t)SKY_CODE_CAUCHY;
}

/* Return the bytes of the first chunk. A block of one data chunk may be shorter than a full one. */
static uint32_t FirstBytes(const SKY_Stripe_t *stripe)
{
    SKY_ASSERT(stripe != NULL);
    return stripe->chunk_len < stripe->block_len ? stripe->chunk_len : stripe->block_len;
}

bool SKY_Stripe_Equal(const SKY_Stripe_t *a, const SKY_Stripe_t *b)
{
    SKY_ASSERT(a != NULL);
    SKY_ASSERT(b != NULL);
    return a->block_len == b->block_len && FirstBytes(a) == FirstBytes(b) && a->chunk_total == b->chunk_total &&
           a->code_k == b->code_k && a->code_m == b->code_m;
}

uint32_t SKY_Stripe_Rows(const SKY_Stripe_t *stripe)
{
    SKY_ASSERT(stripe->chunk_total >= 1u);
    const uint32_t width = Width(stripe);

    SKY_ASSERT((width == 0u) == (stripe->code_k == 0u));
    return width == 0u ? 1u : (stripe->chunk_total - 1u) / width + 1u;
}

uint32_t SKY_Stripe_DataChunks(const SKY_Stripe_t *stripe)
{
    const uint32_t parity = SKY_Stripe_Rows(stripe) * stripe->code_m;
    SKY_ASSERT(parity < stripe->chunk_total);
    SKY_ASSERT(parity % (stripe->code_m == 0u ? 1u : stripe->code_m) == 0u);
    return stripe->chunk_total - parity;
}

uint32_t SKY_Stripe_RowOf(const SKY_Stripe_t *stripe, uint32_t id)
{
    SKY_ASSERT(id < stripe->chunk_total);
    const uint32_t width = Width(stripe);

    SKY_ASSERT((width == 0u) == (stripe->code_k == 0u));
    return width == 0u ? 0u : id / width;
}

SKY_StripeRow_t SKY_Stripe_Row(const SKY_Stripe_t *stripe, uint32_t row)
{
    const uint32_t first = row * Width(stripe);
    const uint32_t left  = stripe->chunk_total - first;
    SKY_ASSERT(first < stripe->chunk_total); /* there is such a row */
    SKY_ASSERT(left > stripe->code_m);

    const uint32_t chunks = stripe->code_k == 0u || left < Width(stripe) ? left : Width(stripe);
    SKY_ASSERT(chunks > stripe->code_m);
    SKY_ASSERT(chunks <= left);
    return (SKY_StripeRow_t){first, chunks - stripe->code_m, stripe->code_m};
}

bool SKY_Stripe_IsParity(const SKY_Stripe_t *stripe, uint32_t id)
{
    const SKY_StripeRow_t row = SKY_Stripe_Row(stripe, SKY_Stripe_RowOf(stripe, id));
    SKY_ASSERT(id >= row.first);
    SKY_ASSERT(id - row.first < row.data + row.parity);
    return id - row.first >= row.data;
}

/* Return the number among the data chunks of chunk @p id of a row, which is one. */
static uint32_t DataIndex(const SKY_Stripe_t *stripe, uint32_t row, uint32_t id)
{
    SKY_ASSERT(id >= row * Width(stripe));
    SKY_ASSERT(stripe->code_k == 0u || id - row * Width(stripe) < stripe->code_k);
    return id - row * stripe->code_m;
}

uint32_t SKY_Stripe_ChunkBytes(const SKY_Stripe_t *stripe, uint32_t id)
{
    const uint32_t        number    = SKY_Stripe_RowOf(stripe, id);
    const SKY_StripeRow_t row       = SKY_Stripe_Row(stripe, number);
    const bool            is_parity = id - row.first >= row.data;
    const uint32_t        index =
        DataIndex(stripe, number, is_parity ? row.first : id); /* the first data chunk is the longest of a row */
    const uint64_t begin = (uint64_t)index * stripe->chunk_len;
    SKY_ASSERT(id >= row.first);
    SKY_ASSERT(begin < stripe->block_len); /* each data chunk has a byte */

    const uint64_t left = stripe->block_len - begin;
    return left < stripe->chunk_len ? (uint32_t)left : stripe->chunk_len;
}

size_t SKY_Stripe_Offset(const SKY_Stripe_t *stripe, uint32_t id)
{
    const uint32_t        number = SKY_Stripe_RowOf(stripe, id);
    const SKY_StripeRow_t row    = SKY_Stripe_Row(stripe, number);
    const uint32_t        place  = id - row.first;
    SKY_ASSERT(id >= row.first);
    SKY_ASSERT(place < row.data + row.parity);

    if (place >= row.data)
    {
        return ((size_t)number * row.parity + (place - row.data)) * stripe->chunk_len;
    }
    return (size_t)DataIndex(stripe, number, id) * stripe->chunk_len;
}

uint64_t SKY_Stripe_ParityBytes(const SKY_Stripe_t *stripe)
{
    SKY_ASSERT(stripe->chunk_len >= 1u);
    SKY_ASSERT(stripe->chunk_total >= 1u);
    return (uint64_t)SKY_Stripe_Rows(stripe) * stripe->code_m * stripe->chunk_len;
}
