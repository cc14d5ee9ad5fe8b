/**
 * @file
 * Hints: chunks that were put here because their home was silent, each kept with the home's address (Cassandra's hinted handoff). They
 * go home as soon as the home answers.
 *
 * A schedule that moves chunks brings them to their homes of now, so there is nothing to do here then (sky_service_handover.c). Otherwise
 * the homes for which something is kept are asked by PING, one after another. To one that answers, all goes that is kept for it, as a
 * migration in the handover's place, which is free. A home that is back asks by itself what is kept for it, and has its turn at once.
 *
 * What has gone home stays here for a minute more: a host that could not reach the home asks here until it tries the home again.
 *
 * What is kept counts for its tenant as any chunk does, and is evicted as any block is. Then the home has missed it until a repair finds
 * that, and the store counts it.
 */
#include "sky_service_hints.h"

#include "sky_assert.h"
#include "sky_service_core.h"
#include "sky_service_handover.h"
#include "sky_service_migrate.h"

#define LOOK_US 2000000u  /* between two looks */
#define TURN_US 30000000u /* of one home: then others have theirs */

static uint32_t rank(SKY_Addr_t satellite)
{
    return (uint32_t)satellite.plane << 16 | satellite.slot;
}

/* Count the chunks that are kept for a satellite. @p next gets the satellite after it, in ascending order and after the last one the first,
 * for which some are kept; it itself if there is no other. */
static uint32_t count_kept(const SKY_ServiceCore_t *core, SKY_Addr_t satellite, SKY_Addr_t *next)
{
    uint32_t        kept    = 0;
    uint32_t        nearest = 0; /* ranks from the satellite back to the next one: the most is the nearest after it */
    uint32_t        cursor  = 0;
    SKY_BlockInfo_t info;

    *next = satellite;
    while (SKY_Store_NextBlock(core->store, &cursor, &info))
    {
        uint32_t at = 0;
        uint32_t id = 0;

        while (SKY_Store_EachChunk(core->store, cursor - 1u, &at, &id))
        {
            const SKY_Addr_t home = SKY_Store_HomeOf(core->store, cursor - 1u, id);
            const uint32_t   back = rank(satellite) - rank(home); /* modulo 2^32 */

            SKY_ASSERT(home.plane != 0 || home.slot == 0);
            if (home.plane != 0)
            {
                kept += SKY_Addr_Equal(home, satellite) ? 1u : 0u;
                *next   = back > nearest ? home : *next;
                nearest = back > nearest ? back : nearest;
            }
        }
    }
    SKY_ASSERT(kept <= core->store->counters.hinted);
    SKY_ASSERT(nearest == 0 || next->plane != 0);
    return kept;
}

uint32_t SKY_Hints_Owed(const SKY_ServiceCore_t *core, SKY_Addr_t to)
{
    SKY_Addr_t next;
    SKY_ASSERT(to.plane != 0);
    SKY_ASSERT(core->store->counters.hinted <= core->store->counters.chunks);

    return core->store->counters.hinted == 0 ? 0 : count_kept(core, to, &next);
}

void SKY_Hints_Wake(SKY_Hints_t *hints, uint64_t now_us, SKY_Addr_t home)
{
    SKY_ASSERT(home.plane != 0);
    hints->home    = home;
    hints->to_ask  = true;
    hints->look_us = now_us + LOOK_US;
    SKY_ASSERT(hints->look_us > now_us);
}

uint64_t SKY_Hints_OnTime(const SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Hints_t *hints, uint64_t now_us)
{
    SKY_Migration_t *job = &migrations->jobs[SKY_SERVICE_MIGRATIONS];

    if (core->store->counters.hinted == 0 || SKY_Handover_Moves(core))
    {
        hints->to_ask = false;
        return UINT64_MAX;
    }
    SKY_ASSERT(core->store->counters.hinted <= core->store->counters.chunks);
    if (job->active)
    {
        return UINT64_MAX; /* a job has timers of its own */
    }
    if (job->hinted && job->moved > 0) /* more may have been put meanwhile */
    {
        job->moved     = 0;
        hints->look_us = now_us;
    }
    if (now_us >= hints->look_us)
    {
        (void)count_kept(core, hints->home, &hints->home);
        hints->to_ask  = true;
        hints->look_us = now_us + LOOK_US;
        SKY_ASSERT(hints->home.plane != 0); /* something is kept for somebody */
    }
    SKY_ASSERT(hints->look_us > now_us);
    return hints->look_us;
}

bool SKY_Hints_Next(SKY_ServiceCore_t *core, SKY_Hints_t *hints, uint64_t now_us, SKY_Out_t *out)
{
    SKY_Packet_t pkt;

    if (!hints->to_ask)
    {
        return false;
    }
    SKY_ASSERT(hints->home.plane != 0);
    SKY_ASSERT(!SKY_Addr_Equal(hints->home, core->cfg.self)); /* nobody stands in for itself */
    hints->to_ask     = false;
    hints->is_asked   = true;
    hints->request_id = SKY_ServiceCore_TakeIds(core);
    SKY_ServiceCore_Request(core, SKY_OP_PING, hints->home, hints->request_id, &pkt);
    SKY_ServiceCore_Emit(core, now_us, &pkt, NULL, out);
    return true;
}

bool SKY_Hints_Response(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Hints_t *hints, uint64_t now_us,
                        const SKY_Packet_t *pkt)
{
    if (!hints->is_asked || pkt->op != SKY_OP_PING || pkt->request_id != hints->request_id)
    {
        return false;
    }
    SKY_ASSERT(!pkt->is_request);
    SKY_ASSERT(hints->home.plane != 0);
    if (pkt->status == SKY_STATUS_OK && SKY_Addr_Equal(pkt->src, hints->home))
    {
        hints->is_asked = false;
        if (!SKY_Handover_Moves(core) && !migrations->jobs[SKY_SERVICE_MIGRATIONS].active)
        {
            (void)SKY_Migrate_Hinted(core, migrations, hints->home, now_us + TURN_US); /* all may have gone meanwhile */
        }
    }
    return true;
}
