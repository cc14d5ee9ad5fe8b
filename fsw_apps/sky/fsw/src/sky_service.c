/**
 * @file
 * The hashtable service: see sky_service.h. It calls the features, each with the core and its own structure, in their order.
 */
#include "sky_service.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_service_answer.h"
#include "sky_service_arrivals.h"
#include "sky_service_census.h"
#include "sky_service_core.h"
#include "sky_service_gossip.h"
#include "sky_service_handover.h"
#include "sky_service_hints.h"
#include "sky_service_migrate.h"
#include "sky_service_scrub.h"
#include "sky_service_stats.h"
#include "sky_service_survey.h"

static bool is_sound(const SKY_ServiceCfg_t *cfg, const SKY_Store_t *store)
{
    return SKY_Torus_Contains(&cfg->torus, cfg->self) && cfg->packet_bytes >= SKY_SERVICE_PACKET_MIN &&
           cfg->packet_bytes <= SKY_LIMIT_PACKET_BYTES && cfg->credit != 0 && cfg->credit <= SKY_LIMIT_CHUNK_SET &&
           (cfg->packet_bytes - SKY_RESPONSE_OVERHEAD) * SKY_LIMIT_FRAGMENTS >= store->cfg.slot_bytes;
}

bool SKY_Service_Init(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg, SKY_Store_t *store, uint64_t now_us, uint64_t random)
{
    if (!is_sound(cfg, store))
    {
        return false;
    }
    (void)memset(svc, 0, sizeof(*svc));
    svc->core.cfg             = *cfg;
    svc->core.store           = store;
    svc->core.started_us      = now_us;
    svc->core.next_request_id = random;
    SKY_ASSERT(store->counters.partial <= store->counters.chunks);
    return true;
}

bool SKY_Service_Configure(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg)
{
    SKY_ServiceCore_t *core = &svc->core;
    SKY_ASSERT(core->store != NULL);

    if (!is_sound(cfg, core->store) || !SKY_Addr_Equal(cfg->self, core->cfg.self) ||
        cfg->torus.planes != core->cfg.torus.planes || cfg->torus.slots != core->cfg.torus.slots ||
        cfg->torus.seam_cut != core->cfg.torus.seam_cut)
    {
        return false;
    }
    core->cfg = *cfg;
    SKY_ASSERT(core->schedule == NULL || core->schedule->placement.torus.planes == cfg->torus.planes);
    SKY_ASSERT(core->schedule == NULL || core->schedule->placement.torus.slots == cfg->torus.slots);
    return true;
}

bool SKY_Service_SetSchedule(SKY_Service_t *svc, const SKY_Schedule_t *schedule)
{
    const SKY_Torus_t *torus = &svc->core.cfg.torus;

    if (schedule != NULL &&
        (schedule->placement.torus.planes != torus->planes || schedule->placement.torus.slots != torus->slots))
    {
        return false;
    }
    svc->core.schedule = schedule;
    svc->core.row      = 0; /* a chunk may come before the new schedule is looked at: no row of it yet */
    SKY_Handover_Reset(&svc->migrations, &svc->handover);
    SKY_Survey_Reset(&svc->survey);
    SKY_Scrub_Reset(&svc->scrub);
    SKY_Census_Reset(&svc->census);
    SKY_Arrivals_Reset(&svc->core, &svc->arrivals);
    SKY_ASSERT(svc->handover.left == 0);
    SKY_ASSERT(!svc->survey.is_wanted);
    SKY_ASSERT(svc->scrub.state == SKY_SCRUB_IDLE);
    SKY_ASSERT(!svc->migrations.jobs[SKY_SERVICE_MIGRATIONS].active);
    SKY_ASSERT(svc->handover.since_us == 0);
    SKY_ASSERT(svc->core.schedule == schedule);
    SKY_ASSERT(svc->scrub.row == SKY_SCHEDULE_NONE);
    SKY_ASSERT(svc->survey.waiting == 0);
    return true;
}

bool SKY_Service_SetWindow(SKY_Service_t *svc, const SKY_Schedule_t *window)
{
    const SKY_Torus_t *torus = &svc->core.cfg.torus;

    if (window != NULL &&
        (window->count != 1u || window->placement.torus.planes != torus->planes || window->placement.torus.slots != torus->slots))
    {
        return false;
    }
    svc->core.window = window;
    if (svc->core.schedule == NULL)
    {
        SKY_Scrub_Reset(&svc->scrub);
        SKY_Census_Reset(&svc->census);
        SKY_Arrivals_Reset(&svc->core, &svc->arrivals);
    }
    SKY_ASSERT(svc->core.window == window);
    SKY_ASSERT(window == NULL || window->placement.servers >= 1);
    SKY_ASSERT(svc->core.schedule != NULL || svc->census.state == SKY_CENSUS_IDLE);
    return true;
}

/* ---- in and out --------------------------------------------------------------------------------------------------- */

/* Drop packets that were not pulled. */
static void begin_pull(SKY_Service_t *svc)
{
    svc->answer.stage = SKY_ANSWER_IDLE;
    SKY_Migrate_Pull(&svc->core, &svc->migrations);
    SKY_Census_Pull(&svc->census);
    SKY_ASSERT(svc->migrations.pulled == 0);
    SKY_ASSERT(svc->answer.stage == SKY_ANSWER_IDLE);
}

void SKY_Service_Begin(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_ServiceCore_t *core = &svc->core;

    SKY_ASSERT(core->store != NULL); /* the service was set up */
    SKY_ASSERT(core->cfg.credit != 0);
    begin_pull(svc);
    SKY_Arrivals_Check(core, &svc->arrivals, now_us);
    if (pkt->is_request)
    {
        ++core->counters.requests;
        SKY_Answer_Begin(svc, now_us, pkt);
    }
    else if (!SKY_Migrate_Response(core, &svc->migrations, now_us, pkt) &&
             !SKY_Scrub_Response(core, &svc->scrub, &svc->gossip, &svc->survey, now_us, pkt) &&
             !SKY_Survey_Response(core, &svc->survey, now_us, pkt) && !SKY_Census_Response(core, &svc->census, now_us, pkt) &&
             !SKY_Hints_Response(core, &svc->migrations, &svc->hints, now_us, pkt) &&
             !SKY_Arrivals_Response(core, &svc->arrivals, now_us, pkt))
    {
        ++core->counters.unsolicited;
    }
    SKY_ASSERT(svc->migrations.pulled == 0); /* nothing is sent before it is pulled */
}

bool SKY_Service_Next(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out)
{
    SKY_ServiceCore_t *core = &svc->core;

    if (svc->answer.stage != SKY_ANSWER_IDLE)
    {
        return SKY_Answer_Next(core, &svc->answer, now_us, out);
    }
    SKY_ASSERT(svc->migrations.pulled <= SKY_SERVICE_JOBS);
    SKY_ASSERT(core->seq_count <= SKY_SEQ_COUNT_MASK);
    return SKY_Migrate_Next(core, &svc->migrations, now_us, out) || SKY_Gossip_Next(core, &svc->gossip, now_us, out) ||
           SKY_Scrub_Next(core, &svc->scrub, now_us, out) || SKY_Survey_Next(core, &svc->survey, now_us, out) ||
           SKY_Census_Next(core, &svc->census, now_us, out) || SKY_Hints_Next(core, &svc->hints, now_us, out) ||
           SKY_Arrivals_Next(core, &svc->arrivals, now_us, out);
}

void SKY_Service_Poll(SKY_Service_t *svc, uint64_t now_us, uint64_t *next_us)
{
    SKY_ServiceCore_t *core = &svc->core;
    uint64_t           next;

    begin_pull(svc);
    const uint64_t handover_us = SKY_Handover_OnTime(core, &svc->migrations, &svc->handover, now_us);
    const uint64_t hints_us    = SKY_Hints_OnTime(core, &svc->migrations, &svc->hints, now_us);

    next = SKY_Migrate_OnTime(core, &svc->migrations, now_us);
    next = handover_us < next ? handover_us : next;
    next = hints_us < next ? hints_us : next;
    (void)SKY_Store_Expire(core->store, now_us, SKY_SERVICE_EXPIRE_SLOTS); /* the store counts the parts that expire */
    if (core->store->counters.partial > 0 && next > now_us + SKY_SERVICE_EXPIRE_US)
    {
        next = now_us + SKY_SERVICE_EXPIRE_US;
    }
    if (core->store->counters.leaving > 0 && next > now_us + SKY_SERVICE_LEAVE_LOOK_US)
    {
        next = now_us + SKY_SERVICE_LEAVE_LOOK_US;
    }
    const uint64_t scrub_us  = SKY_Scrub_OnTime(core, &svc->scrub, &svc->gossip, &svc->survey, now_us);
    const uint64_t census_us = SKY_Census_OnTime(core, &svc->census, &svc->scrub, &svc->gossip, &svc->survey, now_us);
    const uint64_t survey_us = SKY_Survey_OnTime(core, &svc->survey, now_us);
    const uint64_t arrive_us = SKY_Arrivals_OnTime(core, &svc->arrivals, now_us);

    next     = scrub_us < next ? scrub_us : next;
    next     = census_us < next ? census_us : next;
    next     = arrive_us < next ? arrive_us : next;
    *next_us = survey_us < next ? survey_us : next;
    SKY_ASSERT(core->store->counters.partial == 0 || *next_us <= now_us + SKY_SERVICE_EXPIRE_US);
    SKY_ASSERT(svc->answer.stage == SKY_ANSWER_IDLE); /* a service that was only polled owes no answer */
}

void SKY_Service_Unreachable(SKY_Service_t *svc, SKY_Addr_t dst)
{
    SKY_ASSERT(svc->core.store != NULL);
    SKY_Migrate_Unreachable(&svc->migrations, dst);
    SKY_Scrub_Unreachable(&svc->scrub, dst);
    SKY_Survey_Unreachable(&svc->core, &svc->survey, dst);
    SKY_Census_Unreachable(&svc->core, &svc->census, dst);
    SKY_ASSERT(svc->migrations.pulled <= SKY_SERVICE_JOBS);
}

/* ---- handover ----------------------------------------------------------------------------------------------------- */

SKY_Status_t SKY_Service_Evacuate(SKY_Service_t *svc, uint64_t now_us, SKY_Addr_t target)
{
    SKY_ASSERT(svc->core.store != NULL);
    SKY_ASSERT(svc->migrations.pulled <= SKY_SERVICE_JOBS);
    return SKY_Handover_Evacuate(&svc->core, &svc->migrations, now_us, target);
}

uint32_t SKY_Service_HandoverLeft(const SKY_Service_t *svc, uint64_t now_us)
{
    SKY_ASSERT(svc->core.store != NULL);
    SKY_ASSERT(svc->core.schedule == NULL || svc->core.row <= svc->core.schedule->count);
    return SKY_Handover_Left(&svc->core, &svc->migrations, &svc->handover, now_us);
}

uint64_t SKY_Service_HandoverMs(const SKY_Service_t *svc, uint64_t now_us)
{
    SKY_ASSERT((svc->handover.left == 0) == (svc->handover.since_us == 0));
    SKY_ASSERT(svc->handover.late >= svc->handover.late_done);
    return SKY_Handover_Ms(&svc->handover, now_us);
}

bool SKY_Service_HandoverIsLate(SKY_Service_t *svc, uint64_t now_us)
{
    SKY_ASSERT(svc->handover.late >= svc->handover.late_done);
    SKY_ASSERT(svc->handover.late - svc->handover.late_done <= 1u);
    return SKY_Handover_IsLate(&svc->core, &svc->handover, now_us);
}

/* ---- counters ----------------------------------------------------------------------------------------------------- */

void SKY_Service_CountError(SKY_Service_t *svc, SKY_Status_t status)
{
    SKY_ASSERT(svc->core.store != NULL);
    SKY_ASSERT(svc->core.cfg.credit != 0);
    SKY_ServiceCore_CountError(&svc->core, status);
}

void SKY_Service_Stats(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out)
{
    SKY_ASSERT(svc->core.store != NULL);
    SKY_ASSERT(now_us >= svc->core.started_us);
    SKY_Stats_Collect(svc, now_us, out);
}

void SKY_Service_ResetCounters(SKY_Service_t *svc)
{
    SKY_Store_t *store = svc->core.store;

    (void)memset(&svc->core.counters, 0, sizeof(svc->core.counters));
    store->counters.evicted_blocks  = 0;
    store->counters.evicted_chunks  = 0;
    store->counters.expired_partial = 0;
    store->counters.evicted_hinted  = 0;
    for (uint32_t row = 0; row < store->tenant_count; ++row)
    {
        store->tenants[row].evicted_chunks = 0;
        store->tenants[row].refused        = 0;
    }
    SKY_ASSERT(store->counters.blocks <= store->counters.chunks); /* each block that is held has a chunk */
    SKY_ASSERT(store->counters.partial <= store->counters.chunks);
}
