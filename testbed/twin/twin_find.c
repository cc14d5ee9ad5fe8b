/**
 * @file
 * Look-ups: of one block, and of the blocks of a prompt, which are others of its tenant. Each block is judged by itself: found as it was put, missed
 * for a reason, or not answered for a reason. Of a chain the first blocks without a gap are told, and all before its end are known.
 */
#include <string.h>

#include "twin_priv.h"

#define KINDS 3u /* of look-ups: of one block, of the blocks of a prompt, of a chain */

/* Return what is known of an operation about another block of its prompt. */
static SKYT_Active_t about(const SKYT_Active_t *active, uint32_t number)
{
    SKYT_Active_t other = *active;

    other.kind         = SKYT_OP_GET;
    other.block        = active->looked[number].block;
    other.excuse       = active->looked[number].excuse;
    other.promised     = active->looked[number].promised;
    other.acknowledged = active->looked[number].acknowledged;
    other.silences     = active->found[number].silences;
    other.is_missed    = true;
    other.denied       = 0;
    return other;
}

/* Note what a look-up may miss, as things are now. */
static void note(SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t number)
{
    SKYT_Active_t other = *active;

    other.kind     = SKYT_OP_GET;
    other.block    = active->looked[number].block;
    other.silences = 0;
    SKYT_Register_Begin(twin, &other);
    SKYT_Outcome_Begin(twin, &other);
    active->looked[number].excuse       = other.excuse;
    active->looked[number].promised     = other.promised;
    active->looked[number].acknowledged = other.acknowledged;
}

void SKYT_Find_Prepare(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    SKY_GroundOp_t *core  = &active->core;
    const uint32_t  names = twin->block_count / twin->config.tenants;
    const uint32_t  kind  = active->op / 4u % KINDS;
    const uint32_t  most  = names < SKYT_PROMPT_MAX ? names : SKYT_PROMPT_MAX;

    core->found           = active->found;
    core->found_count     = kind > 0u ? 1u + active->op % most : 1u;
    core->is_chain        = kind == 2u;
    core->is_fresh        = kind == 0u && SKYT_Version_IsValue(twin, active->block) && active->op % 2u == 1u;
    core->block_bytes_max = active->op % 5u == 0u ? twin->config.block_bytes / 2u : twin->config.block_bytes;
    for (uint32_t number = 0; number < core->found_count; ++number)
    {
        const uint32_t block = (active->block + number * twin->config.tenants) % (names * twin->config.tenants);

        (void)memset(&active->found[number], 0, sizeof(active->found[number]));
        active->looked[number].block = block;
        SKYT_Content_Key(twin, block, active->found[number].key);
        note(twin, active, number);
    }
}

/* Check that a block was found as it was put. */
static void check_facts(SKYT_Twin_t *twin, const SKYT_Active_t *other, const SKY_BlockFacts_t *facts)
{
    const bool         is_value = SKYT_Version_IsValue(twin, other->block);
    const SKY_Stripe_t stripe   = SKYT_Content_Stripe(twin, other->block, facts->version);

    if ((facts->version != 0u) != is_value || !SKY_Stripe_Equal(&facts->stripe, &stripe))
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_EXACT, SKYT_NONE, other->op, other->block, SKYT_NONE,
                        "a look-up found a block of other lengths than was put");
    }
    if (is_value)
    {
        SKYT_Register_Got(twin, other, facts->version);
    }
}

/* Judge what was found of one block. */
static void judge(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t number)
{
    const SKY_GroundFound_t *found = &active->found[number];
    const SKYT_Active_t      other = about(active, number);

    switch (found->status)
    {
        case SKY_STATUS_DONE:
            check_facts(twin, &other, &found->facts);
            break;
        case SKY_STATUS_MISS:
            SKYT_Register_Got(twin, &other, 0);
            (void)SKYT_Outcome_Missed(twin, &other);
            break;
        case SKY_STATUS_RUNNING: /* behind the end of a chain */
            break;
        default:
            (void)SKYT_Outcome_End(twin, &other,
                                   active->core.find.row_count == 0u ? SKYT_CAUSE_NOBODY
                                   : twin->sky_links_down > 0u       ? SKYT_CAUSE_UNREACHABLE
                                                                     : SKYT_CAUSE_EXPIRED);
            break;
    }
}

static bool is_there(const SKYT_Active_t *active, uint32_t number)
{
    const SKY_GroundFound_t *found = &active->found[number];

    return number < active->core.found_count && found->status == SKY_STATUS_DONE &&
           found->facts.stripe.block_len <= active->core.block_bytes_max;
}

/* Check that a chain ends at the first block that is not there, and that all before it are known. */
static void check_chain(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const uint32_t count = active->core.chain_count;
    bool           is_it = active->core.status == SKY_STATUS_UNANSWERED || active->core.status == SKY_STATUS_NO_SATELLITE ||
                 !is_there(active, count);

    for (uint32_t number = 0; number < count; ++number)
    {
        is_it = is_it && is_there(active, number);
    }
    for (uint32_t number = 0; number < active->core.found_count; ++number)
    {
        is_it = is_it && (active->core.is_chain || active->found[number].status != SKY_STATUS_RUNNING);
    }
    if (!is_it)
    {
        SKYT_Check_Fail(twin, SKYT_INVARIANT_HELD, SKYT_NONE, active->op, active->block, SKYT_NONE,
                        "a look-up of a chain tells of more or fewer first blocks than it found");
    }
}

void SKYT_Find_Judge(SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    for (uint32_t number = 1; number < active->core.found_count;
         ++number) /* what follows from the first one is the operation's */
    {
        judge(twin, active, number);
    }
    if (active->core.is_chain)
    {
        check_chain(twin, active);
    }
}
