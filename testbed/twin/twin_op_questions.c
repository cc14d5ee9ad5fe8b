/**
 * @file
 * Questions of one operation to some satellites, and the wait for all their answers. An operation asks them to purge its block
 * (twin_clear.c), or to look it up (twin_look.c).
 */
#include <stdlib.h>
#include <string.h>

#include "twin_priv.h"

#define GRACE_US UINT64_C(1000000) /* time after the last deadline of a question */

bool SKYT_OpQuestions_Init(SKYT_Twin_t *twin)
{
    twin->questions = calloc((size_t)twin->config.active_max * twin->node_count, sizeof(*twin->questions));
    return twin->questions != NULL;
}

void SKYT_OpQuestions_Free(SKYT_Twin_t *twin)
{
    free(twin->questions);
}

SKY_HostQuestion_t *SKYT_OpQuestions_Of(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    return &twin->questions[(size_t)(active - twin->active) * twin->node_count];
}

void SKYT_OpQuestions_Add(const SKYT_Twin_t *twin, SKYT_Active_t *active, SKY_Addr_t satellite)
{
    SKY_HostQuestion_t   *questions = SKYT_OpQuestions_Of(twin, active);
    const SKY_HostPlace_t place     = SKYT_Reach_Place(&twin->grounds[active->host - 1u], satellite);
    uint32_t              at        = 0;

    if (place.plane == 0u)
    {
        return;
    }
    while (at < active->asks && (questions[at].place.plane != place.plane || questions[at].place.slot != place.slot))
    {
        ++at;
    }
    if (at == active->asks)
    {
        (void)memset(&questions[at], 0, sizeof(questions[at]));
        questions[at].place = place;
        ++active->asks;
    }
}

void SKYT_OpQuestions_AddLate(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];

    for (uint32_t i = 0; i < ground->late_count; ++i)
    {
        if (!SKYT_Reach_IsLost(ground, ground->late[i]))
        {
            SKYT_OpQuestions_Add(twin, active, ground->late[i]);
        }
    }
}

uint64_t SKYT_OpQuestions_WaitUs(const SKYT_Twin_t *twin, const SKYT_Active_t *active, bool is_hurried)
{
    const SKYT_Ground_t      *ground    = &twin->grounds[active->host - 1u];
    const SKY_HostQuestion_t *questions = SKYT_OpQuestions_Of(twin, active);
    SKY_Addr_t               *addrs     = ground->inquiry.addrs; /* there is room for all satellites */

    for (uint32_t i = 0; i < active->asks; ++i)
    {
        addrs[i].plane = questions[i].place.plane;
        addrs[i].slot  = questions[i].place.slot;
    }
    return is_hurried ? SKY_Host_HurryUs(&ground->core, addrs, active->asks)
                      : SKY_Host_PatienceUs(&ground->core, addrs, active->asks);
}

bool SKYT_OpQuestions_All(SKYT_Twin_t *twin, SKYT_Active_t *active, const SKY_HostQuestion_t *what, uint64_t wait_us)
{
    SKYT_Ground_t      *ground    = &twin->grounds[active->host - 1u];
    SKY_HostQuestion_t *questions = SKYT_OpQuestions_Of(twin, active);

    for (uint32_t i = 0; i < active->asks; ++i)
    {
        const SKY_HostPlace_t place = questions[i].place;

        questions[i]             = *what;
        questions[i].place       = place;
        questions[i].apid        = SKY_APID_KVC;
        questions[i].tenant      = SKYT_Content_Tenant(twin, active->block);
        questions[i].deadline_ms = (uint32_t)(wait_us / US_PER_MS + 1u);
        SKYT_Content_Key(twin, active->block, questions[i].key);
        (void)SKY_Host_Ask(&ground->core, twin->now_us, &questions[i]); /* the question is sound, and others may wait */
    }
    active->asking = active->asks;
    active->tries += active->asks;
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfActive(twin, (uint32_t)(active - twin->active)), twin->now_us + wait_us + GRACE_US);
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfGround(twin, active->host - 1u), twin->now_us);
    return active->asks > 0u;
}

bool SKYT_OpQuestions_WaitsLate(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];

    if (active->has_searched || ground->reach.pause_us > 0u || SKYT_Reach_Late(ground).is_known)
    {
        return false;
    }
    active->has_searched = true;
    SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_LATE);
    return true;
}

bool SKYT_OpQuestions_Answered(SKYT_Ground_t *ground, const SKY_HostQuestion_t *question)
{
    SKYT_Twin_t    *twin = ground->twin;
    const uintptr_t at   = (uintptr_t)question - (uintptr_t)twin->questions;
    const size_t    each = twin->node_count * sizeof(*question);

    if (at >= twin->config.active_max * each)
    {
        return false;
    }
    SKYT_Active_t *active = &twin->active[at / each];

    --active->asking;
    if (active->asking == 0u)
    {
        SKYT_Op_Answered(twin, active);
    }
    return true;
}
