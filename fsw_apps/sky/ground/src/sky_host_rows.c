/**
 * @file
 * Rows of blocks: which chunks are here, which are lost, whether the others suffice, and the erasure code. A block without one is a
 * single row of which no chunk may be lost.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_code.h"
#include "sky_host_priv.h"

#define WEIGHTS_MAX (127u * 128u) /* of the row with the most, k = 127 or 128 */

static bool IsCoded(const SKY_HostBlock_t *block)
{
    return block->stripe.code_m > 0u;
}

static SKY_HostRow_t *RowOf(SKY_HostWork_t *work, uint32_t row)
{
    SKY_ASSERT(work->block != NULL);
    SKY_ASSERT(row < SKY_Stripe_Rows(&work->block->stripe));
    return IsCoded(work->block) ? &work->block->rows[row] : &work->only_row;
}

/* Return how many chunks of a row may be lost. */
static uint32_t MostLost(const SKY_HostBlock_t *block)
{
    SKY_ASSERT(!block->needs_all || block->kind == SKY_HOST_PUT);
    return block->needs_all ? 0u : block->stripe.code_m;
}

void SKY_HostRows_Begin(SKY_HostWork_t *work)
{
    SKY_HostBlock_t *block = work->block;

    SKY_ASSERT(block != NULL);
    SKY_ASSERT(!IsCoded(block) || block->rows != NULL);
    work->rows_left = SKY_Stripe_Rows(&block->stripe);
    work->only_row  = (SKY_HostRow_t){0};
    if (IsCoded(block))
    {
        (void)memset(block->rows, 0, work->rows_left * sizeof(*block->rows));
    }
    if (block->have != NULL)
    {
        (void)memset(block->have, 0, ((size_t)block->stripe.chunk_total + 7u) / 8u);
    }
    SKY_ASSERT(work->rows_left >= 1u);
}

bool SKY_HostRows_IsHere(const SKY_HostBlock_t *block, uint32_t chunk_id)
{
    SKY_ASSERT(chunk_id < block->stripe.chunk_total);
    return block->have != NULL && (block->have[chunk_id / 8u] & 1u << chunk_id % 8u) != 0u;
}

bool SKY_HostRows_Needs(SKY_HostWork_t *work, uint32_t chunk_id)
{
    const SKY_Stripe_t *stripe = &work->block->stripe;
    const uint32_t      row    = SKY_Stripe_RowOf(stripe, chunk_id);
    SKY_ASSERT(chunk_id < stripe->chunk_total);

    return !SKY_HostRows_IsHere(work->block, chunk_id) && RowOf(work, row)->here < SKY_Stripe_Row(stripe, row).data;
}

void SKY_HostRows_Take(SKY_HostWork_t *work, uint32_t chunk_id)
{
    SKY_HostBlock_t *block  = work->block;
    const uint32_t   number = SKY_Stripe_RowOf(&block->stripe, chunk_id);
    SKY_HostRow_t   *row    = RowOf(work, number);
    SKY_ASSERT(!SKY_HostRows_IsHere(block, chunk_id)); /* a chunk is asked for at one place at a time, until it comes */

    if (block->have != NULL)
    {
        block->have[chunk_id / 8u] = (uint8_t)(block->have[chunk_id / 8u] | 1u << chunk_id % 8u);
    }
    ++row->here;
    if (row->here == SKY_Stripe_Row(&block->stripe, number).data)
    {
        SKY_ASSERT(work->rows_left > 0u);
        --work->rows_left;
    }
}

bool SKY_HostRows_MayLose(SKY_HostWork_t *work, uint32_t chunk_id)
{
    const SKY_HostRow_t *row = RowOf(work, SKY_Stripe_RowOf(&work->block->stripe, chunk_id));
    SKY_ASSERT(chunk_id < work->block->stripe.chunk_total);

    SKY_ASSERT(work->block->kind == SKY_HOST_PUT);
    return row->denied + row->doubted < MostLost(work->block);
}

SKY_HostLoss_t SKY_HostRows_Lose(SKY_HostWork_t *work, uint32_t chunk_id, bool is_denied, bool is_gone)
{
    SKY_HostRow_t *row = RowOf(work, SKY_Stripe_RowOf(&work->block->stripe, chunk_id));
    const uint32_t may = MostLost(work->block);
    SKY_ASSERT(chunk_id < work->block->stripe.chunk_total);

    SKY_ASSERT(work->block->lost < work->block->stripe.chunk_total);
    SKY_ASSERT(is_denied || !is_gone);
    ++work->block->lost;
    row->denied += is_denied ? 1u : 0u;
    row->gone += is_gone ? 1u : 0u;
    row->doubted += is_denied ? 0u : 1u;
    if (row->denied > may)
    {
        return row->gone > may ? SKY_HOST_LOSS_SURE : SKY_HOST_LOSS_DENIED;
    }
    return row->denied + row->doubted > may ? SKY_HOST_LOSS_DOUBTED : SKY_HOST_LOSS_BORNE;
}

/* ---- the code -------------------------------------------------------------------------------------------------------- */

/** A row whose chunks are summed up. */
typedef struct
{
    SKY_CodeRow_t   lengths;
    SKY_CodeChunk_t sources[SKY_CODE_CHUNKS_MAX];
    uint8_t         have[SKY_CODE_CHUNKS_MAX]; /* which chunks of the row these are */
    uint8_t        *sums[SKY_CODE_CHUNKS_MAX];
    uint8_t         weights[WEIGHTS_MAX];
    uint32_t        sum_count;
} sum_t;

static uint8_t *MemoryOf(const SKY_HostBlock_t *block, uint32_t chunk_id)
{
    const bool is_parity = SKY_Stripe_IsParity(&block->stripe, chunk_id);

    SKY_ASSERT(block->data != NULL);
    SKY_ASSERT(block->parity != NULL);
    return (is_parity ? block->parity : block->data) + SKY_Stripe_Offset(&block->stripe, chunk_id);
}

/* Get the first chunks of a row that are here, as many as give the row. All are here when a block is put. */
static void FindSources(const SKY_HostBlock_t *block, SKY_StripeRow_t row, sum_t *sum)
{
    uint32_t count = 0;

    SKY_ASSERT(row.data >= 1u);
    SKY_ASSERT(row.data + row.parity <= SKY_CODE_CHUNKS_MAX);
    sum->lengths = (SKY_CodeRow_t){(uint8_t)row.data, (uint8_t)row.parity};
    for (uint32_t i = 0; i < row.data; ++i)
    {
        sum->sources[i] = (SKY_CodeChunk_t){NULL, 0};
    }
    for (uint32_t place = 0; place < row.data + row.parity && count < row.data; ++place)
    {
        const uint32_t id = row.first + place;

        if (block->kind == SKY_HOST_PUT || SKY_HostRows_IsHere(block, id))
        {
            sum->have[count]    = (uint8_t)place;
            sum->sources[count] = (SKY_CodeChunk_t){MemoryOf(block, id), SKY_Stripe_ChunkBytes(&block->stripe, id)};
            ++count;
        }
    }
    SKY_ASSERT(count == row.data);
}

/* Sum up the chunks of a row from @p from to before @p end that are not here, and are @p len bytes long. */
static void SumUp(const SKY_HostBlock_t *block, SKY_StripeRow_t row, sum_t *sum, uint32_t from, uint32_t end, uint32_t len)
{
    SKY_ASSERT(from <= end);
    SKY_ASSERT(end <= row.data + row.parity);
    sum->sum_count = 0;
    for (uint32_t place = from; place < end; ++place)
    {
        const uint32_t id = row.first + place;

        if (!SKY_HostRows_IsHere(block, id) && SKY_Stripe_ChunkBytes(&block->stripe, id) == len)
        {
            const bool known =
                SKY_Code_Weights(sum->lengths, (uint8_t)place, sum->have, &sum->weights[(size_t)sum->sum_count * row.data]);
            SKY_ASSERT(known); /* the sources are different chunks of the row */
            (void)known;
            sum->sums[sum->sum_count] = MemoryOf(block, id);
            ++sum->sum_count;
        }
    }
    for (uint32_t i = 0; i < row.data; ++i)
    {
        sum->sources[i].len = sum->sources[i].len < len ? sum->sources[i].len : len;
    }
    if (sum->sum_count > 0u)
    {
        SKY_Code_Sums(sum->sums, (uint8_t)sum->sum_count, len, sum->sources, (uint8_t)row.data, sum->weights);
    }
}

void SKY_HostRows_Encode(SKY_HostWork_t *work, uint32_t chunk_id)
{
    const SKY_HostBlock_t *block  = work->block;
    const uint32_t         number = SKY_Stripe_RowOf(&block->stripe, chunk_id);
    SKY_HostRow_t         *state  = RowOf(work, number);
    sum_t                  sum;

    SKY_ASSERT(block->kind == SKY_HOST_PUT);
    SKY_ASSERT(chunk_id < block->stripe.chunk_total);
    if (IsCoded(block) && state->here == 0u)
    {
        const SKY_StripeRow_t row = SKY_Stripe_Row(&block->stripe, number);

        FindSources(block, row, &sum);
        SumUp(block, row, &sum, row.data, row.data + row.parity, SKY_Stripe_ChunkBytes(&block->stripe, row.first));
        state->here = row.data + row.parity;
    }
}

/* Return how many data chunks of a row have not come. */
static uint32_t Missing(const SKY_HostBlock_t *block, SKY_StripeRow_t row)
{
    uint32_t missing = 0;

    SKY_ASSERT(IsCoded(block));
    SKY_ASSERT(row.data >= 1u);
    for (uint32_t place = 0; place < row.data; ++place)
    {
        missing += SKY_HostRows_IsHere(block, row.first + place) ? 0u : 1u;
    }
    return missing;
}

/* Rebuild the data chunks of a row that have not come, at least one. */
static void DecodeRow(const SKY_HostBlock_t *block, SKY_StripeRow_t row)
{
    const uint32_t full = SKY_Stripe_ChunkBytes(&block->stripe, row.first);
    const uint32_t tail = SKY_Stripe_ChunkBytes(&block->stripe, row.first + row.data - 1u);
    sum_t          sum;

    SKY_ASSERT(row.data >= 1u);
    SKY_ASSERT(tail <= full);
    FindSources(block, row, &sum);
    SumUp(block, row, &sum, 0, row.data, full);
    if (tail != full) /* shorter, and summed up last, because what is behind it does not count then */
    {
        SumUp(block, row, &sum, row.data - 1u, row.data, tail);
    }
}

bool SKY_HostRows_Decode(SKY_HostBlock_t *block)
{
    const uint32_t rows    = IsCoded(block) ? SKY_Stripe_Rows(&block->stripe) : 0u;
    uint32_t       missing = 0;

    SKY_ASSERT(block->kind == SKY_HOST_GET);
    while (missing == 0u && block->row_next < rows)
    {
        const SKY_StripeRow_t row = SKY_Stripe_Row(&block->stripe, block->row_next);

        missing = Missing(block, row);
        if (missing > 0u)
        {
            DecodeRow(block, row);
        }
        ++block->row_next;
    }
    block->decoded += missing;
    SKY_ASSERT(block->row_next <= SKY_Stripe_Rows(&block->stripe));
    return block->row_next == rows;
}
