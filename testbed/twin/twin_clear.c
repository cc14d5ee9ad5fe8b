/**
 * @file
 * A ground host purges a block: by PURGE, wherever a share of it may be. The core decides who is asked next, and when the block counts as
 * gone (sky_purge.h). As on the ground, the rest of a block that was missed is purged in one round, where the schedule says that
 * shares may be.
 */
#include <string.h>

#include "twin_priv.h"

/* ---- who is asked ---------------------------------------------------------------------------------------------------- */

/* Add a satellite to those that are asked, unless the host leaves it alone. */
static void add(const SKYT_Twin_t *twin, SKYT_Active_t *active, SKY_Addr_t satellite)
{
    const SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];

    if (!active->clear.is_hurried || SKY_Presence_IsAwake(&ground->held.presence, twin->now_us, satellite))
    {
        SKYT_OpQuestions_Add(twin, active, satellite);
    }
}

/* Add the places of a share. */
static void add_places(const SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t share)
{
    for (uint32_t round = 0; round <= active->block_state.rounds; ++round)
    {
        const SKY_HostPlace_t *place = &active->places[(size_t)round * twin->config.servers + share];

        if (place->plane != 0u)
        {
            add(twin, active, (SKY_Addr_t){place->plane, place->slot});
        }
    }
}

/* Find all satellites that are asked in a step. There are none if the host sees no satellite. */
static void find_all(SKYT_Twin_t *twin, SKYT_Active_t *active, SKY_PurgeStep_t step)
{
    const SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];
    SKY_Addr_t           first[SKYT_REACH_FIRST_MAX];

    active->asks = 0;
    if (!SKYT_Op_FindPlaces(twin, active))
    {
        return;
    }
    if (step == SKY_PURGE_FIRST)
    {
        const uint32_t count = SKYT_Reach_First(ground, active->block, first);

        for (uint32_t i = 0; i <= active->block_state.stripe.code_m; ++i)
        {
            add_places(twin, active, SKYT_Content_Asked(twin, active->block, i));
        }
        for (uint32_t i = 0; i < count; ++i)
        {
            add(twin, active, first[i]);
        }
        return;
    }
    for (uint32_t share = 0; share < twin->config.servers; ++share)
    {
        add_places(twin, active, share);
    }
    if (!active->is_lazy)
    {
        SKYT_OpQuestions_AddLate(twin, active);
    }
}

/* Ask the satellites. The rest of a block that was missed is one content, and what waits for a row to come is none of it. @return false
 * if there are none */
static bool ask_all(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const uint32_t     row = active->clear.row;
    SKY_HostQuestion_t what;

    (void)memset(&what, 0, sizeof(what));
    what.op            = SKY_OP_PURGE;
    what.block_version = active->version;
    what.epoch         = SKY_SCHEDULE_STAYS;
    if (active->is_lazy)
    {
        what.content = SKYT_Content_Instance(active->block, active->version);
        what.epoch   = active->epoch > row ? active->epoch : row;
    }
    return SKYT_OpQuestions_All(twin, active, &what, SKYT_OpQuestions_WaitUs(twin, active, active->clear.is_hurried));
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

/* Return true if all places of a share have confirmed, and no lost satellite may have it. */
static bool is_gone(const SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t share)
{
    const SKY_HostQuestion_t *questions = SKYT_OpQuestions_Of(twin, active);

    for (uint32_t round = 0; round <= active->block_state.rounds; ++round)
    {
        const SKY_HostPlace_t *place = &active->places[(size_t)round * twin->config.servers + share];
        uint32_t               at    = 0;

        while (at < active->asks && (questions[at].place.plane != place->plane || questions[at].place.slot != place->slot))
        {
            ++at;
        }
        if (SKY_HostPlace_IsStandIn(place) ||
            (place->plane != 0u &&
             (at == active->asks || questions[at].status != SKY_STATUS_DONE || questions[at].answer.status != SKY_STATUS_OK)))
        {
            return false;
        }
    }
    return true;
}

/* Take in what satellites said in the step. */
static SKY_PurgeAnswers_t cleared_of(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_HostQuestion_t *questions = SKYT_OpQuestions_Of(twin, active);
    SKY_PurgeAnswers_t        cleared   = {0};

    cleared.code_m = active->block_state.stripe.code_m;

    for (uint32_t i = 0; i < active->asks; ++i)
    {
        const bool is_done = questions[i].status == SKY_STATUS_DONE;

        SKY_PurgeAnswers_Add(&cleared, is_done ? &questions[i].answer : NULL, questions[i].sent > 1u);
        if (!is_done && active->failed_on.plane == 0u)
        {
            active->failed_on = (SKY_Addr_t){questions[i].place.plane, questions[i].place.slot};
        }
    }
    for (uint32_t share = 0; active->asks > 0u && share < twin->config.servers; ++share)
    {
        SKY_PurgeAnswers_AddShare(&cleared, is_gone(twin, active, share));
    }
    return cleared;
}

/* Tell the core what was said. */
static void told(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_PurgeAnswers_t cleared = cleared_of(twin, active);
    SKYT_Clear_t            *clear   = &active->clear;

    SKY_Purge_Told(&clear->core, &cleared, clear->is_over, clear->row == SKY_Schedule_RowAt(&twin->schedule, twin->now_us));
    clear->has_asked       = false;
    active->has_asked_lost = false;
    active->has_searched   = false;
}

/* Ask the satellites of a step, or tell what they said. @return true if the operation waits */
static bool run_step(SKYT_Twin_t *twin, SKYT_Active_t *active, SKY_PurgeStep_t step)
{
    SKYT_Clear_t *clear = &active->clear;

    if (!clear->has_asked)
    {
        const SKYT_May_t may = SKYT_Reach_May(twin, active);

        if (may == SKYT_MAY_LATER || (may == SKYT_MAY_NOW && !active->is_lazy && SKYT_OpQuestions_WaitsLate(twin, active)))
        {
            return true;
        }
        const SKY_Late_t late = SKYT_Reach_Late(&twin->grounds[active->host - 1u]);
        clear->is_over        = late.is_known && late.is_over;
        clear->has_asked      = true;
        clear->row            = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
        active->asks          = 0;
        if (may == SKYT_MAY_NOW)
        {
            find_all(twin, active, step);
        }
        if (ask_all(twin, active))
        {
            return true;
        }
    }
    told(twin, active);
    return false;
}

/* The first server's word tells of a block only if it has a share of it. */
void SKYT_Clear_Begin(SKYT_Twin_t *twin, SKYT_Active_t *active, bool is_hurried)
{
    const SKYT_Clear_t none        = {0};
    const bool         is_way_made = !active->is_lazy && active->op % 2u == 1u;
    const uint32_t     first       = SKYT_Content_Asked(twin, active->block, 0);
    uint32_t           holder;

    active->clear            = none;
    active->clear.is_hurried = is_hurried;
    active->clear.is_calm    = !active->is_lazy && !SKYT_Clear_IsLate(twin) &&
                            (!is_way_made || SKYT_Holders(twin, active->block, first, &holder, 1) > 0u);
    active->has_asked_lost = false;
    active->failed_on      = (SKY_Addr_t){0, 0};
    SKY_Purge_Init(&active->clear.core, is_way_made);
}

bool SKYT_Clear_Waits(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    SKYT_Clear_t *clear = &active->clear;

    for (;;)
    {
        const SKY_PurgeStep_t step = SKY_Purge_Next(&clear->core);

        if (step == SKY_PURGE_END || (active->is_lazy && clear->core.rounds > 0u))
        {
            return false;
        }
        if (step == SKY_PURGE_LOOK)
        {
            SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_LOOK);
            return true;
        }
        if (run_step(twin, active, step))
        {
            return true;
        }
    }
}

bool SKYT_Clear_IsLate(const SKYT_Twin_t *twin)
{
    uint32_t node = 0;

    while (node < twin->node_count && !SKYT_Op_HasLeft(twin, node))
    {
        ++node;
    }
    return node < twin->node_count;
}
