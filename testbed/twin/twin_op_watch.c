/**
 * @file
 * Operations have to come further: by when, and what counts as further.
 */
#include "twin_priv.h"

#define WAIT_US  UINT64_C(120000000) /* inquiries end long before: each round waits for some seconds at most */
#define GRACE_US UINT64_C(1000000)   /* time after the last deadline of a question */
#define MIX      UINT64_C(0x100000001b3)

/* Return a digest of how far an operation has come. */
static uint64_t mark_of(const SKYT_Active_t *active)
{
    const SKY_GroundOp_t *core    = &active->core;
    const uint64_t        parts[] = {
               active->phase,       core->is_queued,   core->wants,         core->waits,           core->waits_for,
               core->asks,          core->asking > 0u, core->tries,         core->attempts.step,   core->attempts.asks,
               core->attempts.ways, core->confirms,    core->check.step,    core->purge.core.step, core->purge.core.rounds,
               core->block.status,  core->touched,     core->prefetch.step, core->prefetch.at,     core->wakes_us};
    uint64_t mark = active->op + 1u;

    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i)
    {
        mark = (mark ^ parts[i]) * MIX;
    }
    return mark;
}

/* Return the time by which an operation has to come further. */
static uint64_t limit_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKY_GroundOp_t *core  = &active->core;
    uint64_t              until = twin->now_us;

    if (core->is_queued) /* a large one has no deadline before it begins: it waits for all that are ahead of it */
    {
        return twin->now_us + WAIT_US + (uint64_t)twin->config.active_max * active->deadline_ms * US_PER_MS;
    }
    if (core->wants > 0u || core->waits != SKY_GROUND_WAIT_NOT)
    {
        return twin->now_us + WAIT_US;
    }
    if (core->wakes_us != 0u)
    {
        return core->wakes_us + GRACE_US;
    }
    if (core->asking == 0u)
    {
        return active->deadline_us + 1u;
    }
    for (uint32_t i = 0; i < twin->grounds[active->host - 1u].core.asks_most; ++i)
    {
        const SKY_HostQuestion_t *question = &core->questions[i];
        const bool                is_its   = question->owner == core && question->status == SKY_STATUS_RUNNING;

        until = is_its && question->deadline_us > until ? question->deadline_us : until;
    }
    return until + GRACE_US;
}

void SKYT_Op_Watch(SKYT_Twin_t *twin, uint32_t ground)
{
    for (uint32_t i = 0; i < twin->config.active_max; ++i)
    {
        SKYT_Active_t *active = &twin->active[i];

        if (!active->is_active || active->host != ground + 1u || active->core.status != SKY_STATUS_RUNNING)
        {
            continue;
        }
        const uint64_t mark = mark_of(active);

        if (mark != active->mark)
        {
            const uint64_t limit_us = active->core.is_due ? twin->now_us + WAIT_US : limit_of(twin, active);

            active->mark = mark;
            SKYT_Pace_Restart(twin);
            SKYT_Queue_Set(&twin->queue, SKYT_EventOfActive(twin, i),
                           limit_us < active->cancel_us ? limit_us : active->cancel_us);
        }
    }
}
