/**
 * @file
 * What the core tells of an operation while it runs: where its shares are looked for, that its block has moved, whom it has asked.
 */
#include "twin_break.h"
#include "twin_priv.h"

void SKYT_Op_Placed(SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t share, SKY_Addr_t home, const SKY_Addr_t *found,
                    uint32_t count)
{
    SKY_Shares_t  *shares = &twin->grounds[active->host - 1u].core.shares;
    const uint32_t server = SKYT_Content_Server(twin, active->block, active->core.facts.version, share);

    if (active->phase == SKYT_PHASE_TOUCH)
    {
        return; /* of one of several blocks */
    }
    if (share == 0u)
    {
        active->astray = 0;
        if (active->phase == SKYT_PHASE_MOVE)
        {
            if (active->kind == SKYT_OP_GET && active->core.facts.version != active->version)
            {
                SKYT_Register_Got(twin, active, active->core.facts.version);
            }
            active->deadline_us  = twin->now_us + (uint64_t)active->deadline_ms * US_PER_MS;
            active->is_unsettled = false;
        }
    }
    active->epoch   = active->core.facts.epoch;
    active->version = active->core.facts.version;
    active->astray |= home.plane != 0u ? SKYT_ShareRecord_Bit(twin, share) : 0u;
    if (active->kind != SKYT_OP_PUT && !active->core.attempts.is_searched)
    {
        count = SKYT_Break_Places(twin, &shares->found[(size_t)server * SKY_PLACES_MAX], count);

        shares->counts[server] = count;
    }
    SKYT_ShareRecord_Places(twin, active, share, found, count);
}

void SKYT_Op_Moved(SKYT_Twin_t *twin, SKYT_Active_t *active, bool is_done)
{
    SKY_HostBlock_t *block = &active->core.block;

    active->at_stand_in = block->at_stand_in;
    for (uint32_t chunk = 0; block->kind == SKY_HOST_GET && block->status == SKY_STATUS_DONE && chunk < block->stripe.chunk_total;
         ++chunk)
    {
        if (!SKY_Stripe_IsParity(&block->stripe, chunk)) /* parity is the host's own */
        {
            SKYT_Check_Chunk(twin, active, chunk);
        }
    }
    if (is_done)
    {
        SKYT_Register_Ended(twin, active);
    }
    block->is_unsettled = block->is_unsettled && twin->broken != SKYT_BREAK_RUTHLESS;
}

/* Note of each chunk whether nobody holds it. If nothing was taken from a block somebody holds each: that is checked
 * elsewhere. */
static void note_nowhere(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Truth_t *truth    = &twin->truth[active->block];
    const bool          is_whole = truth->is_held && truth->taint == 0;

    for (uint32_t chunk = 0; !is_whole && chunk < SKYT_Content_Total(twin, active->block); ++chunk)
    {
        uint32_t holder;

        if (SKYT_Holders(twin, active->block, chunk, &holder, 1) == 0)
        {
            active->have[chunk / 8u] = (uint8_t)(active->have[chunk / 8u] | 0x80u >> chunk % 8u);
        }
    }
}

void SKYT_Op_Checked(SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t share, SKY_Addr_t satellite)
{
    if (active->noted_us != active->core.check.began_us)
    {
        active->noted_us = active->core.check.began_us;
        note_nowhere(twin, active);
    }
    SKYT_ShareRecord_Share(twin, active, SKYT_NodeOf(twin, satellite), share);
}
