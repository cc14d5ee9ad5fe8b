/**
 * @file
 * Handover by the schedule: as the window moves, chunks follow it to the satellites that have come in (paper, section 3.4;
 * sky_schedule.h). An ordinary migration with a place of its own carries them.
 *
 * A chunk's server follows from its id and its block (sky_spread.h), so a satellite can tell of every chunk where it belongs in the current
 * row. It does not only ask whether it is in the window: where window and step together are longer than the torus, a satellite
 * leaves the window on one side and is in it again on the other, for another server.
 *
 * In a row every chunk has one home, which does not give it away, so nothing goes in circles. Satellites whose clocks differ may
 * disagree for a moment. SKY_Guard_Check then keeps a satellite from letting go on the word of one that is letting go itself.
 */
#include "sky_service_handover.h"

#include "sky_assert.h"
#include "sky_service_home.h"
#include "sky_service_job.h"
#include "sky_service_migrate.h"
#include "sky_spread.h"

#define US_PER_MS 1000u

/* Return the complete chunks held here. */
static uint32_t chunks_held(const SKY_ServiceCore_t *core)
{
    SKY_ASSERT(core->store->counters.partial <= core->store->counters.chunks);
    return core->store->counters.chunks - core->store->counters.partial;
}

bool SKY_Handover_Moves(const SKY_ServiceCore_t *core)
{
    return core->schedule != NULL && core->schedule->placement.layout != SKY_LAYOUT_HOP;
}

uint64_t SKY_Handover_Ms(const SKY_Handover_t *handover, uint64_t now_us)
{
    SKY_ASSERT(handover->since_us <= now_us);
    return handover->since_us == 0 ? 0 : (now_us - handover->since_us) / US_PER_MS;
}

static bool is_late(const SKY_Handover_t *handover)
{
    SKY_ASSERT(handover->late - handover->late_done <= 1u);
    SKY_ASSERT(handover->late >= handover->late_done);
    return handover->late != handover->late_done;
}

bool SKY_Handover_IsLate(const SKY_ServiceCore_t *core, SKY_Handover_t *handover, uint64_t now_us)
{
    if (!is_late(handover) && core->cfg.handover_ms != 0 && SKY_Handover_Ms(handover, now_us) > core->cfg.handover_ms)
    {
        ++handover->late;
    }
    SKY_ASSERT(!is_late(handover) || handover->since_us != 0); /* a late handover has begun */
    return is_late(handover);
}

static void set_left(const SKY_ServiceCore_t *core, SKY_Handover_t *handover, uint64_t now_us, uint32_t left)
{
    if (left == 0)
    {
        if (SKY_Handover_IsLate(core, handover, now_us))
        {
            handover->lasted_ms = SKY_Handover_Ms(handover, now_us);
            handover->late_done = handover->late;
        }
        handover->since_us = 0;
    }
    else if (handover->since_us == 0)
    {
        handover->since_us = now_us;
    }
    handover->left = left;
    SKY_ASSERT((handover->left == 0) == (handover->since_us == 0));
    SKY_ASSERT(handover->since_us <= now_us);
}

void SKY_Handover_Reset(SKY_Migrations_t *migrations, SKY_Handover_t *handover)
{
    handover->row_end_us = 0;
    handover->last       = 0; /* the new schedule may have fewer servers */
    handover->left       = 0;
    handover->since_us   = 0;
    handover->late       = 0;
    handover->late_done  = 0;
    SKY_Job_End(migrations, &migrations->jobs[SKY_SERVICE_MIGRATIONS]);
    SKY_ASSERT(!migrations->jobs[SKY_SERVICE_MIGRATIONS].active);
    SKY_ASSERT(migrations->jobs[SKY_SERVICE_MIGRATIONS].lanes == 0);
    SKY_ASSERT(!is_late(handover));
}

SKY_Status_t SKY_Handover_Evacuate(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, uint64_t now_us, SKY_Addr_t target)
{
    SKY_Migration_t *job   = &migrations->jobs[SKY_SERVICE_MIGRATIONS];
    const bool       stays = SKY_Addr_Equal(target, core->cfg.self);

    if (!stays && !SKY_Migrate_CanGoTo(core, target))
    {
        return SKY_STATUS_BAD_ADDRESS;
    }
    if (core->schedule != NULL)
    {
        return SKY_STATUS_REFUSED;
    }
    if (job->active && !job->hinted && SKY_Addr_Equal(job->target, target))
    {
        return SKY_STATUS_OK;
    }
    SKY_Job_End(migrations, job); /* the last order counts */
    SKY_ASSERT(job->lanes == 0);
    if (stays)
    {
        return SKY_STATUS_OK;
    }
    SKY_ASSERT(!job->active);
    return SKY_Migrate_All(core, migrations, target, now_us + (uint64_t)SKY_SERVICE_MIGRATION_MAX_MS * US_PER_MS,
                           SKY_SCHEDULE_STAYS - 1u, 1, 0); /* all chunks but those that never move */
}

/* Return true if the chunk of a PUT belongs here in this row, or in the row that it waits for. */
static bool is_at_home(const SKY_ServiceCore_t *core, const SKY_Packet_t *req)
{
    const uint32_t servers = core->schedule->placement.servers;
    const uint32_t server  = SKY_Spread_Server(req->key, req->chunk_total, servers, req->chunk_id);
    SKY_ASSERT(server < servers);

    return SKY_Home_Waits(core, req->epoch, server) || SKY_Home_Is(core, core->row, server, core->cfg.self);
}

void SKY_Handover_Put(const SKY_ServiceCore_t *core, SKY_Handover_t *handover, uint64_t now_us, const SKY_Packet_t *req)
{
    if (!core->store->completed || !SKY_Handover_Moves(core) || is_at_home(core, req))
    {
        return;
    }
    set_left(core, handover, now_us, handover->left + 1u);
    if (handover->look_us > now_us + SKY_SERVICE_HANDOVER_LOOK_US)
    {
        handover->look_us  = now_us + SKY_SERVICE_HANDOVER_LOOK_US;
        handover->pause_us = SKY_SERVICE_HANDOVER_LOOK_US;
    }
    SKY_ASSERT(handover->left > 0);
    SKY_ASSERT(handover->since_us != 0);
}

/* ---- looking ------------------------------------------------------------------------------------------------------ */

/* Return true if a handover has gone on since the row before began. Chunks that came later in that row do not count: a host whose
 * clock is fast puts where the next row has them. */
static bool outlasts_row(const SKY_ServiceCore_t *core, const SKY_Handover_t *handover)
{
    const uint64_t start_us = SKY_Schedule_EndUs(core->schedule, core->row - 1u);
    const uint64_t after_us = handover->since_us - start_us;
    SKY_ASSERT(core->schedule != NULL);
    SKY_ASSERT(handover->row_end_us == 0 || core->row >= 1);

    return handover->row_end_us != 0 && handover->since_us != 0 &&
           (after_us <= SKY_SERVICE_HANDOVER_LOOK_US || after_us > INT64_MAX); /* the handover began with that row or before it */
}

static void begin_row(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Handover_t *handover, uint64_t now_us)
{
    SKY_Migration_t *job = &migrations->jobs[SKY_SERVICE_MIGRATIONS];

    if (outlasts_row(core, handover) && !is_late(handover))
    {
        ++handover->late;
    }
    core->row = SKY_Schedule_RowAt(core->schedule, now_us);
    SKY_ASSERT(core->row >= 1);
    SKY_ASSERT(core->row <= core->schedule->count);
    handover->row_end_us = SKY_Schedule_EndUs(core->schedule, core->row);
    handover->home       = SKY_Home_ServerOf(core, core->row, core->cfg.self);
    handover->look_us    = now_us;
    handover->pause_us   = SKY_SERVICE_HANDOVER_LOOK_US;
    handover->begun      = false;
    job->row             = core->row;
    if (!SKY_Home_Is(core, core->row, job->server, job->target))
    {
        SKY_Job_End(migrations, job);
    }
    /* All chunks count as left until a look says otherwise. While a job goes on there is no look; what it has moved was of the
     * row before. */
    job->moved = 0;
    set_left(core, handover, now_us, chunks_held(core));
    SKY_ASSERT(handover->home <= core->schedule->placement.servers);
    SKY_ASSERT(now_us < handover->row_end_us);
    SKY_ASSERT(job->lanes == 0 || job->active);
}

/* Find a server whose chunks are held here and belong elsewhere. If there are several, the next one has its turn, so that a
 * silent satellite does not hold up the others. @p left counts all such chunks. @return the number of servers if there is none */
static uint32_t next_stray(const SKY_ServiceCore_t *core, const SKY_Handover_t *handover, uint32_t *left)
{
    const uint32_t  servers = core->schedule->placement.servers;
    uint32_t        nearest = servers; /* turns of servers after the last one */
    uint32_t        cursor  = 0;
    SKY_BlockInfo_t info;
    SKY_ASSERT(handover->last < servers); /* the turn of a server is below the number of servers */
    SKY_ASSERT(handover->home <= servers);

    *left = 0;
    while (SKY_Store_NextBlock(core->store, &cursor, &info))
    {
        uint32_t at = 0;
        uint32_t id = 0;

        while (SKY_Store_EachChunk(core->store, cursor - 1u, &at, &id))
        {
            const uint32_t server = SKY_Spread_Server(info.key, info.stripe.chunk_total, servers, id);
            const uint32_t turns  = (server + servers - 1u - handover->last) % servers;

            if (server != handover->home && !SKY_Home_Waits(core, info.epoch, server))
            {
                nearest = turns < nearest ? turns : nearest;
                ++*left;
            }
        }
    }
    SKY_ASSERT((nearest == servers) == (*left == 0));
    SKY_ASSERT(*left <= chunks_held(core));
    return nearest == servers ? servers : (handover->last + 1u + nearest) % servers;
}

static void look(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Handover_t *handover, uint64_t now_us)
{
    SKY_Migration_t *job     = &migrations->jobs[SKY_SERVICE_MIGRATIONS];
    const uint32_t   servers = core->schedule->placement.servers;
    uint32_t         left    = 0;
    const uint32_t   server  = next_stray(core, handover, &left);
    const bool       moves   = job->moved > 0;

    SKY_ASSERT(!job->active); /* there is one job at a time */
    SKY_ASSERT((server == servers) == (left == 0));
    SKY_ASSERT(core->row >= 1);
    job->moved = 0;
    set_left(core, handover, now_us, left);
    if (server == servers)
    {
        handover->look_us = UINT64_MAX;
        return;
    }
    handover->pause_us = moves ? SKY_SERVICE_HANDOVER_LOOK_US : handover->pause_us;
    handover->look_us  = now_us + handover->pause_us;
    handover->pause_us = handover->pause_us < SKY_SERVICE_HANDOVER_MAX_US ? 2u * handover->pause_us : handover->pause_us;
    handover->last     = server;
    core->counters.handovers += handover->begun ? 0u : 1u;
    handover->begun = true;
    (void)SKY_Migrate_All(core, migrations, SKY_Schedule_Server(core->schedule, core->row, server), UINT64_MAX, core->row,
                          servers, server); /* the handover begins, because there is a chunk */
    SKY_ASSERT(job->active);
    SKY_ASSERT(handover->pause_us <= SKY_SERVICE_HANDOVER_MAX_US);
    SKY_ASSERT(handover->look_us > now_us);
}

uint64_t SKY_Handover_OnTime(SKY_ServiceCore_t *core, SKY_Migrations_t *migrations, SKY_Handover_t *handover, uint64_t now_us)
{
    const SKY_Migration_t *job = &migrations->jobs[SKY_SERVICE_MIGRATIONS];

    if (!SKY_Handover_Moves(core))
    {
        return UINT64_MAX;
    }
    if (now_us >= handover->row_end_us)
    {
        begin_row(core, migrations, handover, now_us);
    }
    SKY_ASSERT(now_us < handover->row_end_us);
    SKY_ASSERT(core->row >= 1);
    SKY_ASSERT(handover->left == 0 || handover->since_us != 0);
    if (core->store->counters.blocks == 0)
    {
        set_left(core, handover, now_us, 0);
        handover->look_us = UINT64_MAX;
        return UINT64_MAX;
    }
    /* Look at once after a job that moved chunks: it may have passed over what was put or used meanwhile. */
    if (!job->active && (now_us >= handover->look_us || job->moved > 0))
    {
        look(core, migrations, handover, now_us);
    }
    if (job->active || handover->row_end_us < handover->look_us)
    {
        return handover->row_end_us; /* a job has timers of its own */
    }
    return handover->look_us;
}

uint32_t SKY_Handover_Owed(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, const SKY_Handover_t *handover,
                           uint64_t now_us, SKY_Addr_t to)
{
    const uint32_t  servers = core->schedule->placement.servers;
    const uint32_t  row     = SKY_Schedule_RowAt(core->schedule, now_us);
    uint32_t        owed    = 0;
    uint32_t        cursor  = 0;
    SKY_BlockInfo_t info;
    SKY_ASSERT(SKY_Handover_Moves(core));

    const uint32_t server = SKY_Home_ServerOf(core, row, to);
    if (server == servers || SKY_Handover_Left(core, migrations, handover, now_us) == 0)
    {
        return 0;
    }
    while (SKY_Store_NextBlock(core->store, &cursor, &info))
    {
        uint32_t at = 0;
        uint32_t id = 0;

        while (SKY_Store_EachChunk(core->store, cursor - 1u, &at, &id))
        {
            owed += SKY_Spread_Server(info.key, info.stripe.chunk_total, servers, id) == server &&
                            !SKY_Home_Waits(core, info.epoch, server)
                        ? 1u
                        : 0u;
        }
    }
    SKY_ASSERT(owed <= chunks_held(core));
    SKY_ASSERT(server < servers);
    return owed;
}

uint32_t SKY_Handover_Left(const SKY_ServiceCore_t *core, const SKY_Migrations_t *migrations, const SKY_Handover_t *handover,
                           uint64_t now_us)
{
    const SKY_Migration_t *job  = &migrations->jobs[SKY_SERVICE_MIGRATIONS];
    const uint32_t         held = chunks_held(core);
    SKY_ASSERT(held >= core->store->counters.blocks || core->store->counters.partial > 0); /* a block has a chunk */

    if (!SKY_Handover_Moves(core))
    {
        return 0;
    }
    if (now_us >= handover->row_end_us)
    {
        return held;
    }
    const uint32_t left = handover->left > job->moved ? handover->left - job->moved : 0;

    return left < held ? left : held;
}
