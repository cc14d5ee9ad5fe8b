/**
 * @file
 * Verdict: judges what a census has counted. It takes in what servers say, and tells what follows for each row: it is whole, lacks
 * chunks that others of it can give, or cannot be decoded any more. It sends nothing.
 *
 * What is said of a chunk:
 *  - It is held.
 *  - It is lost. Its home holds nothing of the block and is in the same row of the schedule; or other chunks of the block; or another
 *    version or content.
 *  - It is lost, but that is not sure: it suffices to rebuild the chunk, but not to purge the block. Its home knows the block and denies
 *    all chunks it was asked about, so it may be moving its share away, and refuses what is rebuilt; or it holds nothing and has no
 *    schedule, as after a restart.
 *  - Nothing. Its home is silent, in another row, or keeps the block for a later row. In the last case chunks that are lost here may lie where
 *    that row has them: nothing is purged.
 */
#include "sky_service_verdict.h"

#include "sky_service_repair.h"
#include "sky_spread.h"

uint32_t SKY_Verdict_Places(const SKY_Census_t *census, uint32_t row)
{
    const SKY_StripeRow_t of = SKY_Stripe_Row(&census->block.stripe, census->first + row);
    SKY_ASSERT(row < census->rows);
    SKY_ASSERT(of.data + of.parity <= SKY_STRIPE_ROW_MAX);
    return of.data + of.parity;
}

/* ---- words -------------------------------------------------------------------------------------------------------- */

/* Note the chunks of a share that its server names. A set that is not of the question says nothing. */
static void take_set(SKY_Census_t *census, uint32_t share, uint32_t servers, uint32_t count, uint64_t all,
                     const SKY_Packet_t *pkt)
{
    SKY_ChunkSet_t set;
    SKY_ASSERT(share < servers);
    SKY_ASSERT(count <= census->rows);

    if (SKY_ChunkSet_Decode(pkt, &set) != SKY_STATUS_OK || set.base != census->first * servers + share || set.stride != servers ||
        set.count != count)
    {
        return;
    }
    for (uint32_t i = SKY_ChunkSet_Next(&set, 0); i < set.count; i = SKY_ChunkSet_Next(&set, i + 1u))
    {
        census->held[share] |= SKY_Verdict_Bit(i);
    }
    census->lost[share]   = all & ~census->held[share];
    census->unsure[share] = census->held[share] == 0;
    SKY_ASSERT((census->held[share] & ~all) == 0);
    SKY_ASSERT((census->held[share] & census->lost[share]) == 0);
}

void SKY_Verdict_TakeWord(SKY_Census_t *census, uint32_t share, uint32_t servers, uint32_t count, const SKY_Packet_t *pkt)
{
    const SKY_BlockInfo_t *block = &census->block;
    uint64_t               all   = 0;
    SKY_Stripe_t           stripe;
    SKY_ASSERT(count >= 1);
    SKY_ASSERT(share != census->self);
    SKY_ASSERT(census->held[share] == 0);
    SKY_ASSERT(census->lost[share] == 0); /* its first word counts */
    for (uint32_t i = 0; i < count; ++i)
    {
        all |= SKY_Verdict_Bit(i);
    }

    if (pkt->status == SKY_STATUS_NOT_FOUND && (pkt->epoch == census->row || pkt->epoch == SKY_SCHEDULE_NONE))
    {
        census->lost[share]   = all;
        census->unsure[share] = pkt->epoch != census->row;
    }
    census->is_ahead = census->is_ahead || (pkt->status == SKY_STATUS_OK && pkt->epoch > census->row);
    if (pkt->status != SKY_STATUS_OK || pkt->epoch > census->row || !SKY_Stripe_OfPacket(&stripe, pkt))
    {
        return;
    }
    if (pkt->block_version != block->version || pkt->content != block->content || !SKY_Stripe_Equal(&stripe, &block->stripe))
    {
        census->lost[share] = all;
        return;
    }
    take_set(census, share, servers, count, all, pkt);
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

/* Return the chunks of a row that are gone for sure. */
static uint32_t gone_in(const SKY_Census_t *census, uint32_t row)
{
    const uint32_t places = SKY_Verdict_Places(census, row);
    uint32_t       count  = 0;

    for (uint32_t i = 0; i < places; ++i)
    {
        count += (census->lost[i] & SKY_Verdict_Bit(row)) != 0 && !census->unsure[i] ? 1u : 0u;
    }
    SKY_ASSERT(count <= places);
    return count;
}

/* Count the servers that have a bit of a row. */
static uint32_t count_of(const uint64_t *servers, uint32_t places, uint32_t row)
{
    uint32_t count = 0;
    SKY_ASSERT(places <= SKY_STRIPE_ROW_MAX);

    for (uint32_t i = 0; i < places; ++i)
    {
        count += (servers[i] & SKY_Verdict_Bit(row)) != 0 ? 1u : 0u;
    }
    SKY_ASSERT(count <= places);
    return count;
}

bool SKY_Verdict_IsDead(const SKY_Census_t *census)
{
    SKY_ASSERT(census->rows <= SKY_SERVICE_CENSUS_ROWS);
    bool is_dead = false;
    SKY_ASSERT(census->rows <= SKY_SERVICE_CENSUS_ROWS);

    for (uint32_t i = 0; i < census->rows; ++i)
    {
        is_dead = is_dead || gone_in(census, i) > SKY_Stripe_Row(&census->block.stripe, census->first + i).parity;
    }
    return is_dead;
}

bool SKY_Verdict_IsDegraded(const SKY_Census_t *census)
{
    SKY_ASSERT(census->rows <= SKY_SERVICE_CENSUS_ROWS);
    bool is_degraded = false;

    for (uint32_t i = 0; i < census->rows; ++i)
    {
        const SKY_StripeRow_t of   = SKY_Stripe_Row(&census->block.stripe, census->first + i);
        const uint32_t        lost = count_of(census->lost, of.data + of.parity, i);
        const uint32_t        held = count_of(census->held, of.data + of.parity, i);
        SKY_ASSERT(lost + held <= of.data + of.parity);

        is_degraded = is_degraded || (lost > 0 && held >= of.data);
    }
    return is_degraded;
}

bool SKY_Verdict_IsWhole(const SKY_Census_t *census)
{
    SKY_ASSERT(census->rows >= 1);
    SKY_ASSERT(census->rows <= SKY_SERVICE_CENSUS_ROWS);
    bool is_whole = true;

    for (uint32_t i = 0; i < census->rows; ++i)
    {
        const uint32_t places = SKY_Verdict_Places(census, i);

        is_whole = is_whole && count_of(census->held, places, i) == places;
    }
    return is_whole;
}

/* ---- repairs ------------------------------------------------------------------------------------------------------ */

/* Choose as many chunks of a row as suffice, this satellite's own first. @return false if there are too few */
static bool choose(const SKY_Census_t *census, uint32_t row, uint32_t lost, uint8_t *have)
{
    const SKY_StripeRow_t of     = SKY_Stripe_Row(&census->block.stripe, census->first + row);
    const uint32_t        places = of.data + of.parity;
    uint32_t              count  = 0;
    SKY_ASSERT(lost < places);
    SKY_ASSERT((census->held[lost] & SKY_Verdict_Bit(row)) == 0);

    if (census->self < places && (census->held[census->self] & SKY_Verdict_Bit(row)) != 0)
    {
        have[count++] = (uint8_t)census->self;
    }
    for (uint32_t i = 1; i < places && count < of.data; ++i)
    {
        const uint32_t place = (lost + i) % places; /* not always the same ones */

        if (place != census->self && (census->held[place] & SKY_Verdict_Bit(row)) != 0)
        {
            have[count++] = (uint8_t)place;
        }
    }
    SKY_ASSERT(count <= of.data);
    SKY_ASSERT(of.data < places);
    return count == of.data;
}

/* Return true if the home of a share had no room for a block of this tenant not long ago. */
static bool is_full(const SKY_Census_t *census, uint64_t now_us, uint32_t servers, uint32_t share)
{
    const uint32_t server = SKY_Spread_Server(census->block.key, census->block.stripe.chunk_total, servers, share);
    SKY_ASSERT(server < SKY_STRIPE_ROW_MAX);
    return now_us < census->full_until_us[server] && census->block.tenant == census->full_tenant[server];
}

bool SKY_Verdict_NextLost(SKY_Census_t *census, uint64_t now_us, uint32_t servers, uint8_t *have)
{
    SKY_ASSERT(servers <= SKY_STRIPE_ROW_MAX);
    SKY_ASSERT(census->at <= census->rows * servers);

    for (; census->at < census->rows * servers; ++census->at)
    {
        const uint32_t row   = census->at / servers;
        const uint32_t place = census->at % servers;

        if ((census->lost[place] & SKY_Verdict_Bit(row)) != 0 && !is_full(census, now_us, servers, place) &&
            choose(census, row, place, have))
        {
            SKY_ASSERT(place < SKY_Verdict_Places(census, row));
            return true;
        }
    }
    return false;
}

bool SKY_Verdict_TakeRepair(SKY_Census_t *census, uint32_t servers)
{
    const SKY_Repair_t *repair  = &census->repair;
    const uint32_t      row     = census->at / servers;
    const uint32_t      place   = census->at % servers;
    const uint32_t      source  = repair->have[repair->added < repair->needed ? repair->added : 0];
    const bool          is_home = repair->state == SKY_REPAIR_DONE;
    SKY_ASSERT(!SKY_Repair_GoesOn(repair));
    SKY_ASSERT(source < servers);
    SKY_ASSERT(repair->state == SKY_REPAIR_IDLE || row < census->rows);

    switch (repair->state)
    {
        case SKY_REPAIR_DONE:
            census->held[place] |= SKY_Verdict_Bit(row);
            census->lost[place] &= ~SKY_Verdict_Bit(row);
            break;
        case SKY_REPAIR_NO_SOURCE:
            census->held[source] = 0;
            break;
        case SKY_REPAIR_NO_CHUNK:
            census->held[source] &= ~SKY_Verdict_Bit(row);
            break;
        case SKY_REPAIR_NO_HOME:
        case SKY_REPAIR_FULL:
            census->lost[place] = 0; /* this home is left alone until the next census */
            break;
        default:
            break; /* no repair has ended */
    }
    census->repair.state = SKY_REPAIR_IDLE;
    return is_home;
}
