/**
 * @file
 * Hellos between satellites, and news of links (sky_hello.h).
 *
 * A hello over a link that nothing disturbs, between two satellites that know the same, would change nothing, so it is not sent.
 * A satellite all of whose links are so has no event. A disturbance of a link wakes both its ends. They then know when they would
 * have heard each other last, and greet until all is calm again.
 */
#include "twin_priv.h"

static bool loses(const SKYT_Model_t *model)
{
    return model != NULL && (model->loss_ppm | model->burst_enter_ppm | model->flip_ppm | model->attack_ppm) != 0;
}

static uint32_t opposite_of(uint32_t link)
{
    static const uint32_t opposite[SKY_ISL_COUNT] = {SKY_LINK_SOUTH, SKY_LINK_WEST, SKY_LINK_NORTH, SKY_LINK_EAST};

    return opposite[link];
}

/* Return true if every hello between the ends of this ISL arrives. */
static bool is_heard(const SKYT_Twin_t *twin, uint32_t node, uint32_t link)
{
    const uint32_t     far  = SKYT_Network_Neighbour(twin, node, link);
    const SKYT_Node_t *here = &twin->nodes[node];

    if (far == SKYT_NONE || here->core.hello.links[link].is_cut)
    {
        return true;
    }
    const SKYT_Node_t *there = &twin->nodes[far];
    const uint32_t     back  = opposite_of(link);

    return there->is_up && SKYT_Network_IsWhole(SKYT_LinkOf(twin, node, link)) &&
           SKYT_Network_IsWhole(SKYT_LinkOf(twin, far, back)) && !loses(twin->model) &&
           !loses(SKYT_LinkOf(twin, node, link)->model) && !loses(SKYT_LinkOf(twin, far, back)->model) &&
           (here->core.router.usable & 1u << link) != 0 && (there->core.router.usable & 1u << back) != 0;
}

/* Return true if a hello over this ISL would tell neither end anything. */
static bool is_calm(const SKYT_Twin_t *twin, uint32_t node, uint32_t link)
{
    const uint32_t     far  = SKYT_Network_Neighbour(twin, node, link);
    const SKYT_Node_t *here = &twin->nodes[node];

    if (far == SKYT_NONE || here->core.hello.links[link].is_cut)
    {
        return true;
    }
    const SKYT_Node_t *there = &twin->nodes[far];

    return is_heard(twin, node, link) && here->core.map.digest == there->core.map.digest &&
           here->core.map.unsent_count[link] == 0 && there->core.map.unsent_count[opposite_of(link)] == 0;
}

static bool is_all_calm(const SKYT_Twin_t *twin, uint32_t node)
{
    bool calm = true;

    for (uint32_t link = 0; calm && link < SKY_ISL_COUNT; ++link)
    {
        calm = is_calm(twin, node, link);
    }
    return calm;
}

/* Make up for the hellos that were not sent: note when the satellite would have greeted, and heard, last. */
static void catch_up(SKYT_Twin_t *twin, uint32_t node)
{
    SKY_Hello_t *hello = &twin->nodes[node].core.hello;

    if (hello->due_us > twin->now_us)
    {
        return;
    }
    hello->due_us += (twin->now_us - hello->due_us) / hello->period_us * hello->period_us;
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        if (is_heard(twin, node, link) && hello->links[link].heard_us < hello->due_us) /* news counts, too */
        {
            hello->links[link].heard_us = hello->due_us;
        }
    }
    hello->due_us += hello->period_us;
}

static void schedule(SKYT_Twin_t *twin, uint32_t node)
{
    const uint64_t due_us = SKY_Hello_NextDue(&twin->nodes[node].core.hello);

    SKYT_Queue_Set(&twin->queue, SKYT_EventOfHello(twin, node), due_us > twin->now_us ? due_us : twin->now_us);
}

void SKYT_Hello_Wake(SKYT_Twin_t *twin, uint32_t node)
{
    SKYT_Node_t *awake = &twin->nodes[node];

    if (awake->is_up && !awake->is_greeting)
    {
        awake->is_greeting = true;
        catch_up(twin, node);
        schedule(twin, node);
    }
}

void SKYT_Hello_WakeEnds(SKYT_Twin_t *twin, uint32_t node, uint32_t link)
{
    const uint32_t far = link < SKY_ISL_COUNT ? SKYT_Network_Neighbour(twin, node, link) : SKYT_NONE;

    SKYT_Hello_Wake(twin, node);
    if (far != SKYT_NONE)
    {
        SKYT_Hello_Wake(twin, far);
    }
}

void SKYT_Hello_WakeAll(SKYT_Twin_t *twin)
{
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        SKYT_Hello_Wake(twin, node);
    }
}

/* ---- the node runs ---------------------------------------------------------------------------------------------------- */

void SKYT_Hello_CatchUp(SKYT_Twin_t *twin, uint32_t node)
{
    if (!twin->nodes[node].is_greeting)
    {
        catch_up(twin, node);
    }
}

void SKYT_Hello_Settle(SKYT_Twin_t *twin, uint32_t node)
{
    SKYT_Node_t *here = &twin->nodes[node];

    if (here->core.map.digest != here->digest)
    {
        here->digest         = here->core.map.digest;
        twin->map_changed_us = twin->now_us;
        SKYT_Hello_Wake(twin, node); /* the news may be lost on its way to a neighbour */
    }
    if (here->is_greeting)
    {
        schedule(twin, node);
    }
}

void SKYT_Hello_Run(SKYT_Twin_t *twin, uint32_t node)
{
    SKYT_Node_t *here = &twin->nodes[node];

    if (twin->now_us >= here->core.hello.due_us && is_all_calm(twin, node))
    {
        here->is_greeting = false;
        return;
    }
    SKYT_Node_Run(twin, node);
}

void SKYT_Hello_SetSky(SKYT_Twin_t *twin, uint32_t node)
{
    for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
    {
        const SKY_HelloLink_t *hello   = &twin->nodes[node].core.hello.links[link];
        const bool             is_down = SKYT_LinkOf(twin, node, link)->sky_down;

        if (hello->is_present && hello->is_cut != is_down)
        {
            const SKY_LinkModel_t model = {0, 0, 0, 0, is_down};

            SKYT_Hello_Wake(twin, node);
            SKY_Node_SetModel(&twin->nodes[node].core, twin->now_us, (SKY_LinkId_t)link, &model);
        }
    }
}

/* ---- truth ----------------------------------------------------------------------------------------------------------- */

bool SKYT_Hello_AllKnow(const SKYT_Twin_t *twin, uint64_t since_us)
{
    bool same = twin->map_changed_us < since_us;

    for (uint32_t node = 0; same && node < twin->node_count; ++node)
    {
        for (uint32_t link = 0; same && twin->nodes[node].is_up && link < SKY_ISL_COUNT; ++link)
        {
            const uint32_t far = SKYT_Network_Neighbour(twin, node, link);

            same = far == SKYT_NONE || !twin->nodes[far].is_up || (twin->nodes[node].core.router.usable & 1u << link) == 0 ||
                   twin->nodes[node].core.map.digest == twin->nodes[far].core.map.digest;
        }
    }
    return same;
}
