/**
 * @file
 * FIND of a chain: how many of its first blocks are there (paper, section 3.8, Get steps 3 to 6)?
 *
 *     the first key, as most chains that miss do so there -> it is not there -> over
 *     the key in the middle of those that may be the last  -> until one is left
 *     what was left out before that, all at once, for a block may have been evicted alone -> over: the chain ends at the first gap
 *
 * A key that nobody answers about ends the search: the next question would take as long.
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

/* Return true if a block is there, and no longer than a block of the chain may be. */
static bool IsThere(const SKY_GroundOp_t *op, uint32_t number)
{
    const SKY_GroundFound_t *found = &op->find.found[number];

    SKY_ASSERT(number < op->find.found_count);
    SKY_ASSERT(found->status != SKY_STATUS_DONE || found->facts.stripe.chunk_len != 0u);
    return found->status == SKY_STATUS_DONE && found->facts.stripe.block_len <= op->block_bytes_max;
}

/* Narrow the search by what is known of the key in the middle. @return false if nobody answered about it */
static bool Narrow(SKY_GroundOp_t *op)
{
    SKY_GroundFind_t *find   = &op->find;
    const uint32_t    status = find->found[find->middle].status;

    SKY_ASSERT(find->middle < find->high);
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    if (status != SKY_STATUS_DONE && status != SKY_STATUS_MISS)
    {
        return false;
    }
    if (IsThere(op, find->middle))
    {
        find->low = find->middle + 1u;
    }
    else
    {
        find->high = find->middle;
    }
    return true;
}

/* Add the keys before the end that were left out. @return false if there are none */
static bool AddRest(SKY_GroundFind_t *find)
{
    bool has_added = false;

    SKY_ASSERT(!find->is_rest);
    SKY_ASSERT(find->low <= find->found_count);
    for (uint32_t number = 0; number < find->low; ++number)
    {
        if (find->found[number].status == SKY_STATUS_RUNNING)
        {
            SKY_GroundKeys_Add(find, number);
            has_added = true;
        }
    }
    find->is_rest = true;
    return has_added;
}

static uint32_t CountOf(const SKY_GroundOp_t *op)
{
    uint32_t count = 0;

    SKY_ASSERT(op->find.is_rest);
    while (count < op->find.low && IsThere(op, count))
    {
        ++count;
    }
    SKY_ASSERT(count <= op->find.found_count);
    return count;
}

void SKY_GroundChain_Begin(SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_FIND);
    SKY_ASSERT(op->found_count >= 1u);
    op->find.is_chain = op->is_chain;
    op->find.low      = 0;
    op->find.high     = op->found_count;
    op->find.middle   = SKY_HOST_NONE;
    op->chain_count   = 0;
}

bool SKY_GroundChain_Adds(SKY_GroundOp_t *op)
{
    SKY_GroundFind_t *find = &op->find;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(find->low <= find->high);
    if (!find->is_chain || (!find->is_rest && find->middle != SKY_HOST_NONE && !Narrow(op)))
    {
        return false;
    }
    if (find->low < find->high)
    {
        find->middle = find->middle == SKY_HOST_NONE ? 0u : (find->low + find->high) / 2u;
        SKY_GroundKeys_Add(find, find->middle);
        return true;
    }
    if (!find->is_rest && AddRest(find))
    {
        return true;
    }
    op->chain_count = CountOf(op);
    return false;
}
