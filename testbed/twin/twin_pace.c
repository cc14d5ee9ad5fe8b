/**
 * @file
 * The check that the twin gets on. Steps are counted since an operation last began or ended: events, packets sent, answers pulled
 * from a service. Too many of them for the time that has passed are a livelock. Then the next steps are looked at more closely,
 * the run stops, and the violation says what goes round: satellite, operation and kind of packet.
 */
#include <stdio.h>
#include <string.h>

#include "twin_priv.h"

#define BASE_STEPS   UINT64_C(1000000) /* steps that are allowed at once: 64 honest seeds needed 106,499 at most */
#define NODE_STEPS   UINT64_C(200)     /* more steps for each satellite in a second: an estimate, well above hellos */
#define CENSUS_STEPS UINT64_C(65536)   /* steps that are looked at */
#define US_PER_S     UINT64_C(1000000)
#define REQUEST_BIT  1u

bool SKYT_Pace_Init(SKYT_Twin_t *twin)
{
    twin->pace.from_us = twin->now_us;
    twin->pace.nodes   = SKYT_Take(twin, twin->node_count, sizeof(*twin->pace.nodes));
    twin->pace.actives = SKYT_Take(twin, twin->config.active_max, sizeof(*twin->pace.actives));
    return !twin->is_short;
}

void SKYT_Pace_Restart(SKYT_Twin_t *twin)
{
    if (twin->pace.census_until != 0)
    {
        return; /* there were too many steps already, which are being looked at */
    }
    twin->pace.steps   = 0;
    twin->pace.from_us = twin->now_us;
    twin->pace.limit   = 0;
}

static uint64_t allowed(const SKYT_Twin_t *twin)
{
    const uint64_t base     = twin->config.livelock_steps != 0 ? twin->config.livelock_steps : BASE_STEPS;
    const uint64_t passed_s = (twin->now_us - twin->pace.from_us) / US_PER_S;

    return base + passed_s * NODE_STEPS * twin->node_count;
}

/* ---- what goes round ------------------------------------------------------------------------------------------------- */

static uint32_t most_of(const uint32_t *counts, uint32_t count)
{
    uint32_t most = 0;

    for (uint32_t i = 1; i < count; ++i)
    {
        most = counts[i] > counts[most] ? i : most;
    }
    return most;
}

static void begin_census(SKYT_Twin_t *twin)
{
    SKYT_Pace_t *pace = &twin->pace;

    pace->census_until = pace->steps + CENSUS_STEPS;
    (void)memset(pace->kinds, 0, sizeof(pace->kinds));
    (void)memset(pace->nodes, 0, twin->node_count * sizeof(*pace->nodes));
    (void)memset(pace->actives, 0, twin->config.active_max * sizeof(*pace->actives));
}

/* Return the kind of a packet: twice the operation, and one more for a request; 0 if it does not decode. */
static uint32_t kind_of(const SKYT_Twin_t *twin, const uint8_t *data, uint32_t len, uint32_t *active)
{
    SKY_Packet_t pkt;

    *active = SKYT_NONE;
    if (SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK || 2u * pkt.op + REQUEST_BIT >= SKYT_PACE_KINDS)
    {
        return 0;
    }
    const uint64_t lane_id = SKY_REQUEST_FIRST(pkt.request_id);
    const uint32_t lane    = SKY_HOST_LANE_OF(pkt.request_id);

    for (uint32_t i = 0; i < twin->config.hosts; ++i)
    {
        const SKY_HostBlockMemory_t *blocks = &twin->grounds[i].core.host.blocks;

        if (lane < blocks->lane_count && lane_id != 0u && blocks->lanes[lane].request_id == lane_id)
        {
            *active = (uint32_t)(SKYT_Op_Of(blocks->works[blocks->pieces[blocks->lanes[lane].piece].work].block) - twin->active);
        }
    }
    return 2u * pkt.op + (pkt.is_request ? REQUEST_BIT : 0);
}

static void tell(SKYT_Twin_t *twin)
{
    static const char *const names[SKYT_PACE_KINDS / 2u] = {"?",       "PUT",  "GET",   "HAS",   "PURGE",
                                                            "MIGRATE", "PING", "STATS", "RELAY", "HELLO"};

    const SKYT_Pace_t *pace   = &twin->pace;
    const uint32_t     kind   = most_of(pace->kinds, SKYT_PACE_KINDS);
    const uint32_t     node   = most_of(pace->nodes, twin->node_count);
    const uint32_t     active = most_of(pace->actives, twin->config.active_max);
    const bool         is_of  = pace->actives[active] > 0;
    char               text[SKYT_TEXT_BYTES];

    (void)snprintf(text, sizeof(text), "%llu steps since an operation last began or ended; most packets now are %s of %s",
                   (unsigned long long)pace->steps, (kind & REQUEST_BIT) != 0 ? "requests" : "responses",
                   pace->kinds[kind] > 0 ? names[kind / 2u] : "no kind");
    SKYT_Check_Fail(twin, SKYT_INVARIANT_LIVELOCK, pace->nodes[node] > 0 ? node : SKYT_NONE,
                    is_of ? twin->active[active].op : SKYT_NONE, is_of ? twin->active[active].block : SKYT_NONE, SKYT_NONE, text);
    twin->stopped = SKYT_STOP_LIVELOCK;
}

uint32_t SKYT_Pace_OpOf(const SKYT_Twin_t *twin, uint32_t ground)
{
    for (uint32_t i = 0; twin->pace.census_until != 0 && i < twin->config.active_max; ++i)
    {
        if (twin->active[i].is_active && twin->active[i].host == ground + 1u)
        {
            return i;
        }
    }
    return SKYT_NONE;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

void SKYT_Pace_TooMany(SKYT_Twin_t *twin, uint32_t node, uint32_t active, const uint8_t *data, uint32_t len)
{
    SKYT_Pace_t *pace = &twin->pace;

    if (twin->stopped != SKYT_STOP_NOT)
    {
        return;
    }
    if (pace->census_until == 0)
    {
        pace->limit = allowed(twin);
        if (pace->steps > pace->limit)
        {
            begin_census(twin);
        }
        return;
    }
    if (data != NULL)
    {
        ++pace->kinds[kind_of(twin, data, len, &active)];
    }
    if (node != SKYT_NONE)
    {
        ++pace->nodes[node];
    }
    if (active != SKYT_NONE)
    {
        ++pace->actives[active];
    }
    if (pace->steps > pace->census_until)
    {
        tell(twin);
    }
}
