/**
 * @file
 * PURGE: satellites forget a block, wherever a share of it may be. sky_purge.h decides who is asked next, and when the block counts as gone.
 *
 *     FIRST  if way is made: servers of a look-up --> they had all, and nothing is on its way ----> DONE
 *       v
 *     ALL    all places, and late satellites      --> nothing is left ----------------------------> DONE
 *       |  ^                                      --> in the third round, of a lazy one the first -> EXPIRED
 *       v  |                                      --> nobody can be asked then -------------------> NO_SATELLITE
 *     LOOK: others stand in for who is lost
 *
 * Late satellites are searched for before each step, unless they are known, or the purge is lazy.
 *
 * The rest of a block that was missed is purged in one round, where the schedule says that shares may be. Spared are newer versions then, other
 * contents of the same version, and what waits for a row to come that this host does not know of: another host may have put or prefetched it.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"
#include "sky_spread.h"

/* ---- who is asked ---------------------------------------------------------------------------------------------------- */

/* Add a satellite to those that are asked, unless the host leaves it alone. */
static void Add(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_Addr_t satellite)
{
    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(op->kind == SKY_GROUND_PURGE);
    if (!op->is_hurried || SKY_Presence_IsAwake(&ground->presence, ground->now_us, satellite))
    {
        SKY_GroundAsk_Add(ground, op, satellite);
    }
}

/* Add the places of a share. */
static void AddPlaces(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t share)
{
    SKY_ASSERT(share < ground->limits.servers);
    SKY_ASSERT(op->block.rounds < SKY_PLACES_MAX);
    for (uint32_t round = 0; round <= op->block.rounds; ++round)
    {
        const SKY_HostPlace_t *place = &op->places[(size_t)round * ground->limits.servers + share];

        if (place->plane != 0u)
        {
            Add(ground, op, (SKY_Addr_t){place->plane, place->slot});
        }
    }
}

/* Find all satellites that are asked in a step. There are none if nobody is in sight. */
static void FindAll(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_PurgeStep_t step)
{
    const uint32_t servers = ground->limits.servers;

    SKY_ASSERT(step == SKY_PURGE_FIRST || step == SKY_PURGE_ALL);
    SKY_ASSERT(op->asking == 0u);
    op->asks = 0;
    if (!SKY_GroundWays_Find(ground, op))
    {
        return;
    }
    if (step == SKY_PURGE_FIRST)
    {
        uint32_t       rows[SKY_PLACES_ROWS_MAX];
        const uint32_t count = SKY_GroundWays_Rows(ground, rows);

        SKY_ASSERT(count >= 1u);
        for (uint32_t i = 0; i <= ground->sky.parity; ++i)
        {
            const uint32_t server = (SKY_Spread_OfKey(op->key, servers) + i) % servers;

            AddPlaces(ground, op, SKY_Spread_Share(op->key, op->facts.stripe.chunk_total, servers, server));
        }
        for (uint32_t row = 0; row < count; ++row)
        {
            SKY_GroundWays_Servers(ground, rows[row]);
            for (uint32_t behind = 0; behind <= ground->sky.parity; ++behind)
            {
                Add(ground, op, ground->placed[(SKY_Spread_OfKey(op->key, servers) + behind) % servers]);
            }
        }
        return;
    }
    for (uint32_t share = 0; share < servers; ++share)
    {
        AddPlaces(ground, op, share);
    }
    if (!op->is_lazy)
    {
        SKY_GroundAsk_AddLate(ground, op);
    }
}

/* Ask the satellites. @return false if there are none */
static bool AskAll(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const uint32_t     row = op->purge.row;
    SKY_HostQuestion_t what;

    (void)memset(&what, 0, sizeof(what));
    what.op            = SKY_OP_PURGE;
    what.block_version = op->facts.version;
    what.epoch         = SKY_SCHEDULE_STAYS;
    if (op->is_lazy)
    {
        what.content = op->facts.content;
        what.epoch   = op->facts.epoch > row ? op->facts.epoch : row;
    }
    SKY_ASSERT(row >= 1u);
    SKY_ASSERT(op->purge.has_asked);
    return SKY_GroundAsk_All(ground, op, &what, SKY_GroundAsk_WaitUs(ground, op, op->is_hurried));
}

/* ---- what they say --------------------------------------------------------------------------------------------------- */

/* Return true if a satellite that was asked has confirmed. */
static bool HasConfirmed(const SKY_GroundOp_t *op, const SKY_HostPlace_t *place)
{
    uint32_t at = 0;

    SKY_ASSERT(place->plane != 0u);
    SKY_ASSERT(op->asking == 0u);
    while (at < op->asks && (op->questions[at].place.plane != place->plane || op->questions[at].place.slot != place->slot))
    {
        ++at;
    }
    return at < op->asks && op->questions[at].status == SKY_STATUS_DONE && op->questions[at].answer.status == SKY_STATUS_OK;
}

/* Return true if all places of a share have confirmed, and no lost satellite may have it. */
static bool IsGone(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share)
{
    bool is_gone = true;

    SKY_ASSERT(share < ground->limits.servers);
    SKY_ASSERT(op->asks >= 1u);
    for (uint32_t round = 0; is_gone && round <= op->block.rounds; ++round)
    {
        const SKY_HostPlace_t *place = &op->places[(size_t)round * ground->limits.servers + share];

        is_gone = !SKY_HostPlace_IsStandIn(place) && (place->plane == 0u || HasConfirmed(op, place));
    }
    return is_gone;
}

/* Sum up what satellites said in the step. */
static SKY_PurgeAnswers_t AnswersOf(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_PurgeAnswers_t answers = {0};

    answers.code_m = ground->sky.parity;
    for (uint32_t i = 0; i < op->asks; ++i)
    {
        const SKY_HostQuestion_t *question = &op->questions[i];
        const bool                is_done  = question->status == SKY_STATUS_DONE;

        SKY_PurgeAnswers_Add(&answers, is_done ? &question->answer : NULL, question->sent > 1u);
        if (!is_done && op->failed_on.plane == 0u)
        {
            op->failed_on = (SKY_Addr_t){question->place.plane, question->place.slot};
        }
    }
    for (uint32_t share = 0; op->asks > 0u && share < ground->limits.servers; ++share)
    {
        SKY_PurgeAnswers_AddShare(&answers, IsGone(ground, op, share));
    }
    SKY_ASSERT(answers.asked == op->asks);
    SKY_ASSERT(answers.confirmed <= answers.asked);
    SKY_ASSERT(answers.gone <= ground->limits.servers);
    return answers;
}

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

static void Tell(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_PurgeAnswers_t answers = AnswersOf(ground, op);
    SKY_GroundPurge_t       *purge   = &op->purge;

    SKY_ASSERT(purge->has_asked);
    SKY_ASSERT(purge->row >= 1u);
    op->purged += answers.chunks;
    SKY_Purge_Told(&purge->core, &answers, purge->is_over, purge->row == SKY_GroundWays_Row(ground));
    purge->has_asked   = false;
    op->has_asked_lost = false;
    op->has_searched   = false;
}

/* Ask the satellites of a step, or tell what they said. @return true if the operation waits */
static bool RunStep(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_PurgeStep_t step)
{
    SKY_GroundPurge_t *purge = &op->purge;

    SKY_ASSERT(step == SKY_PURGE_FIRST || step == SKY_PURGE_ALL);
    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    if (!purge->has_asked)
    {
        const SKY_GroundMay_t may = SKY_GroundInquiry_May(ground, op);

        if (may == SKY_GROUND_MAY_LATER || (may == SKY_GROUND_MAY_NOW && !op->is_lazy && SKY_GroundInquiry_WaitsLate(ground, op)))
        {
            return true;
        }
        const SKY_Late_t late = SKY_GroundWays_Late(ground);

        purge->is_over   = late.is_known && late.is_over;
        purge->has_asked = true;
        purge->row       = SKY_GroundWays_Row(ground);
        op->asks         = 0;
        if (may == SKY_GROUND_MAY_NOW)
        {
            FindAll(ground, op, step);
        }
        if (AskAll(ground, op))
        {
            return true;
        }
    }
    Tell(ground, op);
    return false;
}

void SKY_GroundPurge_Begin(SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_PURGE);
    SKY_ASSERT(!op->is_lazy || !op->is_way_made);
    if (op->facts.stripe.chunk_total == 0u)
    {
        op->facts.stripe.chunk_total = 1; /* as the places of all shares are asked, it does not matter which are whose */
    }
    SKY_Purge_Init(&op->purge.core, op->is_way_made);
}

bool SKY_GroundPurge_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_Purge_t *core = &op->purge.core;

    SKY_ASSERT(op->kind == SKY_GROUND_PURGE);
    SKY_ASSERT(op->asking == 0u);
    for (;;)
    {
        const SKY_PurgeStep_t step = SKY_Purge_Next(core);

        if (step == SKY_PURGE_END || (op->is_lazy && core->rounds > 0u))
        {
            SKY_ASSERT(!core->is_confirmed || op->asks > 0u);
            op->status = core->is_confirmed ? SKY_STATUS_DONE : (op->asks > 0u ? SKY_STATUS_EXPIRED : SKY_STATUS_NO_SATELLITE);
            return false;
        }
        if (step == SKY_PURGE_LOOK)
        {
            SKY_GroundInquiry_Wait(ground, op, SKY_GROUND_WAIT_LOOK);
            return true;
        }
        if (RunStep(ground, op, step))
        {
            return true;
        }
    }
}
