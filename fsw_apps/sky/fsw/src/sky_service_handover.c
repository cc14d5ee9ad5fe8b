/**
 * @file
 * Handover by the schedule: as the window moves, chunks follow it to the satellites that have come in (paper, section 3.4;
 * sky_schedule.h). What carries them is an ordinary migration with a place of its own.
 *
 * A chunk's server is its id modulo the number of servers, so a satellite can tell of every chunk where it belongs in the row that
 * holds. That is asked, and not only whether the satellite is in the window: where window and step together are longer than the
 * torus, a satellite leaves the window on one side and is in it again on the other, for another server.
 *
 * In a row every chunk has one home, which does not give it away, so nothing goes in circles. Satellites whose clocks differ may
 * disagree for a moment; then SKY_Service_MigrateGuard keeps either from letting go on the word of one that is letting go itself.
 */
#include "sky_service_migrate.h"
#include "sky_service_scrub.h"

#define US_PER_MS 1000u

static bool is_home(const SKY_Service_t *svc, uint32_t row, uint32_t server, SKY_Addr_t satellite)
{
    return SKY_Addr_Equal(SKY_Schedule_Server(svc->handover.schedule, row, server), satellite);
}

/* The server that @p satellite is in a row; the number of servers: none. */
static uint32_t server_of(const SKY_Service_t *svc, uint32_t row, SKY_Addr_t satellite)
{
    const uint32_t servers = svc->handover.schedule->placement.servers;
    uint32_t       server  = 0;

    while (server < servers && !is_home(svc, row, server, satellite))
    {
        ++server;
    }
    return server;
}

/* Complete chunks held here. */
static uint32_t chunks_held(const SKY_Service_t *svc)
{
    return svc->store->counters.slots_used - svc->store->counters.partial;
}

uint64_t SKY_Service_HandoverMs(const SKY_Service_t *svc, uint64_t now_us)
{
    return svc->handover.since_us == 0 ? 0 : (now_us - svc->handover.since_us) / US_PER_MS;
}

static bool is_late(const SKY_Handover_t *handover)
{
    return handover->late != handover->late_done;
}

bool SKY_Service_HandoverIsLate(SKY_Service_t *svc, uint64_t now_us)
{
    SKY_Handover_t *handover = &svc->handover;

    if (!is_late(handover) && svc->cfg.handover_ms != 0 && SKY_Service_HandoverMs(svc, now_us) > svc->cfg.handover_ms)
    {
        ++handover->late;
    }
    return is_late(handover);
}

static void set_left(SKY_Service_t *svc, uint64_t now_us, uint32_t left)
{
    SKY_Handover_t *handover = &svc->handover;

    if (left == 0)
    {
        if (SKY_Service_HandoverIsLate(svc, now_us))
        {
            handover->lasted_ms = SKY_Service_HandoverMs(svc, now_us);
            handover->late_done = handover->late;
        }
        handover->since_us = 0;
    }
    else if (handover->since_us == 0)
    {
        handover->since_us = now_us;
    }
    handover->left = left;
}

bool SKY_Service_SetSchedule(SKY_Service_t *svc, const SKY_Schedule_t *schedule)
{
    if (schedule != NULL &&
        (schedule->placement.torus.planes != svc->cfg.torus.planes || schedule->placement.torus.slots != svc->cfg.torus.slots))
    {
        return false;
    }
    svc->handover.schedule   = schedule;
    svc->handover.row_end_us = 0;
    svc->handover.last       = 0; /* the new one may have fewer servers */
    svc->handover.left       = 0;
    svc->handover.since_us   = 0;
    svc->handover.late       = 0;
    svc->handover.late_done  = 0;
    SKY_Service_MigrateEnd(svc, &svc->migrations[SKY_SERVICE_MIGRATIONS]);
    SKY_Service_ScrubReset(svc);
    return true;
}

void SKY_Service_HandoverShare(const SKY_Service_t *svc, uint32_t epoch, SKY_Addr_t target, uint32_t *stride, uint32_t *server)
{
    const SKY_Schedule_t *schedule = svc->handover.schedule;

    *stride = 1;
    *server = 0;
    if (schedule != NULL && epoch != SKY_SCHEDULE_NONE && epoch <= schedule->count)
    {
        const uint32_t found = server_of(svc, epoch, target);

        if (found < schedule->placement.servers)
        {
            *stride = schedule->placement.servers;
            *server = found;
        }
    }
}

void SKY_Service_HandoverPut(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *req)
{
    SKY_Handover_t *handover = &svc->handover;

    if (handover->schedule == NULL || handover->schedule->placement.layout == SKY_LAYOUT_HOP || req->epoch > handover->row ||
        is_home(svc, handover->row, req->chunk_id, svc->cfg.self))
    {
        return;
    }
    set_left(svc, now_us, handover->left + 1u);
    if (handover->look_us > now_us + SKY_SERVICE_HANDOVER_LOOK_US)
    {
        handover->look_us  = now_us + SKY_SERVICE_HANDOVER_LOOK_US;
        handover->pause_us = SKY_SERVICE_HANDOVER_LOOK_US;
    }
}

bool SKY_Service_HandoverWaits(const SKY_Service_t *svc, uint32_t epoch, uint32_t server)
{
    const SKY_Schedule_t *schedule = svc->handover.schedule;

    return epoch > svc->handover.row &&
           (schedule == NULL || epoch > schedule->count || is_home(svc, epoch, server, svc->cfg.self));
}

/* ---- looking ------------------------------------------------------------------------------------------------------ */

/* Another row has begun. Has a handover gone on since the one before began? What came later in that row does not count: a host
 * whose clock is fast puts where the next row has it. */
static bool outlasts_row(const SKY_Handover_t *handover)
{
    const uint64_t start_us = SKY_Schedule_EndUs(handover->schedule, handover->row - 1u);
    const uint64_t after_us = handover->since_us - start_us;

    return handover->row_end_us != 0 && handover->since_us != 0 &&
           (after_us <= SKY_SERVICE_HANDOVER_LOOK_US || after_us > INT64_MAX); /* or before it */
}

static void begin_row(SKY_Service_t *svc, uint64_t now_us)
{
    SKY_Handover_t  *handover = &svc->handover;
    SKY_Migration_t *job      = &svc->migrations[SKY_SERVICE_MIGRATIONS];

    if (outlasts_row(handover) && !is_late(handover))
    {
        ++handover->late;
    }
    handover->row        = SKY_Schedule_RowAt(handover->schedule, now_us);
    handover->row_end_us = SKY_Schedule_EndUs(handover->schedule, handover->row);
    handover->home       = server_of(svc, handover->row, svc->cfg.self);
    handover->look_us    = now_us;
    handover->pause_us   = SKY_SERVICE_HANDOVER_LOOK_US;
    handover->begun      = false;
    job->row             = handover->row;
    if (!is_home(svc, handover->row, job->server, job->target))
    {
        SKY_Service_MigrateEnd(svc, job);
    }
    /* All may be left until a look says otherwise. While a job goes on there is none; what it has moved was of the row before. */
    job->moved = 0;
    set_left(svc, now_us, chunks_held(svc));
}

/* A server whose chunks are held here and belong elsewhere: of several the next in turn, so that one whose satellite is silent does
 * not hold up the others. @p left counts all such chunks. @return the number of servers if there is none */
static uint32_t next_stray(const SKY_Service_t *svc, uint32_t *left)
{
    const SKY_Handover_t *handover = &svc->handover;
    const uint32_t        servers  = handover->schedule->placement.servers;
    uint32_t              nearest  = servers; /* turns after the last */
    uint32_t              cursor   = 0;
    SKY_BlockInfo_t       info;

    *left = 0;
    while (SKY_Store_NextBlock(svc->store, &cursor, &info))
    {
        uint32_t at = 0;
        uint32_t id = 0;

        while (SKY_Store_EachChunk(svc->store, cursor - 1u, &at, &id))
        {
            const uint32_t server = id % servers;
            const uint32_t turns  = (server + servers - 1u - handover->last) % servers;

            if (server != handover->home && !SKY_Service_HandoverWaits(svc, info.epoch, server))
            {
                nearest = turns < nearest ? turns : nearest;
                ++*left;
            }
        }
    }
    return nearest == servers ? servers : (handover->last + 1u + nearest) % servers;
}

static void look(SKY_Service_t *svc, uint64_t now_us)
{
    SKY_Handover_t  *handover = &svc->handover;
    SKY_Migration_t *job      = &svc->migrations[SKY_SERVICE_MIGRATIONS];
    const uint32_t   servers  = handover->schedule->placement.servers;
    uint32_t         left     = 0;
    const uint32_t   server   = next_stray(svc, &left);
    const bool       moves    = job->moved > 0;

    job->moved = 0;
    set_left(svc, now_us, left);
    if (server == servers)
    {
        handover->look_us = UINT64_MAX;
        return;
    }
    handover->pause_us = moves ? SKY_SERVICE_HANDOVER_LOOK_US : handover->pause_us;
    handover->look_us  = now_us + handover->pause_us;
    handover->pause_us = handover->pause_us < SKY_SERVICE_HANDOVER_MAX_US ? 2u * handover->pause_us : handover->pause_us;
    handover->last     = server;
    svc->counters.handovers += handover->begun ? 0u : 1u;
    handover->begun = true;
    (void)SKY_Service_MigrateAll(svc, job, SKY_Schedule_Server(handover->schedule, handover->row, server), UINT64_MAX,
                                 handover->row, servers, server); /* it begins: there is a chunk */
}

uint64_t SKY_Service_HandoverOnTime(SKY_Service_t *svc, uint64_t now_us)
{
    SKY_Handover_t        *handover = &svc->handover;
    const SKY_Migration_t *job      = &svc->migrations[SKY_SERVICE_MIGRATIONS];

    if (handover->schedule == NULL || handover->schedule->placement.layout == SKY_LAYOUT_HOP)
    {
        return UINT64_MAX;
    }
    if (now_us >= handover->row_end_us)
    {
        begin_row(svc, now_us);
    }
    if (svc->store->counters.blocks == 0)
    {
        set_left(svc, now_us, 0);
        return UINT64_MAX;
    }
    /* What was put or used while chunks moved may have been passed over: after a job that moved some there is a look at once. */
    if (!job->active && (now_us >= handover->look_us || job->moved > 0))
    {
        look(svc, now_us);
    }
    if (job->active || handover->row_end_us < handover->look_us)
    {
        return handover->row_end_us; /* a job has timers of its own */
    }
    return handover->look_us;
}

uint32_t SKY_Service_HandoverLeft(const SKY_Service_t *svc, uint64_t now_us)
{
    const SKY_Handover_t  *handover = &svc->handover;
    const SKY_Migration_t *job      = &svc->migrations[SKY_SERVICE_MIGRATIONS];
    const uint32_t         held     = chunks_held(svc);

    if (handover->schedule == NULL || handover->schedule->placement.layout == SKY_LAYOUT_HOP)
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
