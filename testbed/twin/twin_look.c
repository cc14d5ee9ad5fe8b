/**
 * @file
 * The look-up of a block by its key alone: some gets begin with it, as the ground does for the beginning of a prompt. The core
 * decides who is asked by HAS, and what is found, missed or not answered (sky_lookup.h). Before it purges a block that it missed
 * the host asks what satellites know of it now: another host may have prefetched it for a row to come, or replaced it, or have put some
 * of it at stand-ins.
 */
#include <string.h>

#include "twin_priv.h"

#define MIX         UINT64_C(0x100000001b3)
#define QUESTION_US UINT64_C(1000000) /* least time that an answer is waited for, unless the get has less */

void SKYT_Look_Begin(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_Late_t late = SKYT_Reach_Late(&twin->grounds[active->host - 1u]);
    SKYT_Look_t     *look = &active->look;
    SKY_ChunkSet_t   any;

    (void)memset(look, 0, sizeof(*look));
    (void)SKY_ChunkSet_Init(&any, 0, 1, 1);
    SKY_ChunkSet_Add(&any, 0);
    look->payload_bytes = (uint32_t)SKY_ChunkSet_Encode(&any, look->payload, sizeof(look->payload));
    look->is_on         = true;
    SKY_Lookup_Init(&look->core, &look->key, 1, late.is_known && late.is_over);
}

/* Ask those who were added for the block, and wait so long at most. @return false if there are none */
static bool ask_for(SKYT_Twin_t *twin, SKYT_Active_t *active, uint64_t wait_us)
{
    const SKYT_Look_t *look = &active->look;
    SKY_HostQuestion_t what;

    (void)memset(&what, 0, sizeof(what));
    what.op                = SKY_OP_HAS;
    what.flags             = SKY_FLAG_ANY;
    what.payload           = look->payload;
    what.payload_bytes     = look->payload_bytes;
    active->look.has_asked = true;
    return SKYT_OpQuestions_All(twin, active, &what, wait_us);
}

/* Ask those who were added for the block. @return false if there are none */
static bool ask_all(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const uint64_t most_us     = (uint64_t)active->deadline_ms * US_PER_MS;
    const uint64_t patience_us = SKYT_OpQuestions_WaitUs(twin, active, false);
    const uint64_t wait_us     = patience_us > QUESTION_US ? patience_us : QUESTION_US;

    return ask_for(twin, active, wait_us < most_us ? wait_us : most_us);
}

/* Combine what the satellites said that were asked. One that knows the block counts, whatever others say. */
static SKY_HasWord_t word_of(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_HostQuestion_t *questions = SKYT_OpQuestions_Of(twin, active);
    SKY_HasWord_t             word      = SKY_WORD_NOTHING;
    bool                      is_silent = false;

    for (uint32_t i = 0; i < active->asks; ++i)
    {
        const bool          is_done = questions[i].status == SKY_STATUS_DONE;
        SKY_BlockFacts_t    facts   = {{0, 0, 0, 0, 0}, 0, 0, 0};
        const SKY_HasWord_t one     = SKY_Word_Of(is_done ? &questions[i].answer : NULL, questions[i].key, &facts);

        if (one == SKY_WORD_BLOCK && (word != SKY_WORD_BLOCK || SKY_Word_IsNewer(&facts, &active->look.facts)))
        {
            active->look.facts = facts;
        }
        word      = one > word ? one : word;
        is_silent = is_silent || one == SKY_WORD_NOTHING;
        active->look.silences += one == SKY_WORD_NOTHING ? 1u : 0u;
        if (!is_done)
        {
            active->failed_on = (SKY_Addr_t){questions[i].place.plane, questions[i].place.slot};
        }
    }
    if (is_silent && word != SKY_WORD_BLOCK && twin->config.parity > 0u && active->look.is_passing)
    {
        return SKY_WORD_NOTHING; /* the silent one may have the block, as only all of them together are sure to */
    }
    return word == SKY_WORD_UNSOUND ? SKY_WORD_ABSENT : word;
}

/* Return a number of the ways to the satellites that a pass asks, from 1. */
static uint32_t number_of(const SKYT_Ground_t *ground, const SKYT_Look_t *look)
{
    uint64_t number = look->count;

    for (uint32_t i = 0; i < look->count; ++i)
    {
        const SKY_HostPlace_t place = SKYT_Reach_Place(ground, look->first[i]);

        number = (number ^ ((uint64_t)place.plane << 48 | (uint64_t)place.slot << 32 | place.endpoint)) * MIX;
    }
    return (uint32_t)(number >> 32) | 1u;
}

/* Find whom to ask first. @return false if the operation waits for that */
static bool find_first(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_May_t may = SKYT_Reach_May(twin, active);

    if (may == SKYT_MAY_LATER)
    {
        return false;
    }
    active->has_asked_lost = false;
    active->look.count =
        may == SKYT_MAY_NOW ? SKYT_Reach_First(&twin->grounds[active->host - 1u], active->block, active->look.first) : 0u;
    return true;
}

/* Ask one satellite after the other; if blocks have parity, all at once. @return true if the operation waits */
static bool run_pass(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    SKYT_Look_t *look = &active->look;

    if (!look->is_passing)
    {
        if (!find_first(twin, active))
        {
            return true;
        }
        const uint32_t groups = twin->config.parity > 0u && look->count > 0u ? 1u : look->count;

        if (!SKY_Lookup_Begin(&look->core, number_of(&twin->grounds[active->host - 1u], look), groups))
        {
            return false;
        }
        look->is_passing = true;
        look->at         = 0;
    }
    if (!look->has_asked)
    {
        active->asks = 0;
        for (uint32_t i = 0; i < (twin->config.parity > 0u ? look->count : 1u); ++i)
        {
            SKYT_OpQuestions_Add(twin, active, look->first[look->at + i]);
        }
        if (ask_all(twin, active))
        {
            return true;
        }
    }
    SKY_Lookup_Take(&look->core, 0, word_of(twin, active));
    look->has_asked  = false;
    look->is_passing = SKY_Lookup_Asked(&look->core);
    ++look->at;
    return false;
}

/* Ask all at once: the late satellites, or the places of now. @return true if the operation waits */
static bool run_all(SKYT_Twin_t *twin, SKYT_Active_t *active, SKY_LookupStep_t step)
{
    SKYT_Look_t *look = &active->look;

    if (!look->has_asked)
    {
        if (step == SKY_LOOKUP_SEARCH ? SKYT_OpQuestions_WaitsLate(twin, active) : !find_first(twin, active))
        {
            return true;
        }
        active->asks = 0;
        if (step == SKY_LOOKUP_SEARCH)
        {
            SKYT_OpQuestions_AddLate(twin, active);
        }
        for (uint32_t i = 0; step == SKY_LOOKUP_AGAIN && i < look->count; ++i)
        {
            SKYT_OpQuestions_Add(twin, active, look->first[i]);
        }
        if (ask_all(twin, active))
        {
            return true;
        }
    }
    SKY_Lookup_Take(&look->core, 0, word_of(twin, active) == SKY_WORD_BLOCK ? SKY_WORD_BLOCK : SKY_WORD_ABSENT);
    look->has_asked      = false;
    active->has_searched = false;
    (void)SKY_Lookup_Asked(&look->core);
    return false;
}

bool SKYT_Look_Waits(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    for (;;)
    {
        const SKY_LookupStep_t step = SKY_Lookup_Next(&active->look.core);

        if (step == SKY_LOOKUP_END)
        {
            return false;
        }
        if (step == SKY_LOOKUP_LOOK)
        {
            SKYT_ReachQuestions_Wait(twin, active, SKYT_WAIT_LOOK);
            return true;
        }
        if (step == SKY_LOOKUP_ASK ? run_pass(twin, active) : run_all(twin, active, step))
        {
            return true;
        }
    }
}

/* ---- what a get confirms --------------------------------------------------------------------------------------------- */

/* Combine what the servers of now said. If the block is prefetched for a row to come, the operation's block is that one from now on. */
static bool take_ahead(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKY_Places_t places = {&twin->schedule, (uint64_t)twin->config.handover_ms * US_PER_MS};
    const uint32_t     row    = SKY_Schedule_RowAt(&twin->schedule, twin->now_us);
    uint32_t           rows[SKY_PLACES_ROWS_MAX];

    if (word_of(twin, active) != SKY_WORD_BLOCK)
    {
        return false;
    }
    const SKY_BlockFacts_t *facts = &active->look.facts;
    const uint32_t          count = SKY_Places_Rows(&places, twin->now_us, facts->epoch, rows);

    return SKY_Word_IsAhead(facts, row, rows, count);
}

/* Ask the servers of now. @return false if that is done */
static bool ask_ahead(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];
    const SKYT_May_t     may    = SKYT_Reach_May(twin, active);

    if (may == SKYT_MAY_LATER)
    {
        return true;
    }
    active->has_asked_lost = false;
    active->asks           = 0;
    SKYT_Reach_Servers(ground, SKY_Schedule_RowAt(&twin->schedule, twin->now_us), ground->placed);
    for (uint32_t server = 0; may == SKYT_MAY_NOW && server < twin->config.servers; ++server)
    {
        SKYT_OpQuestions_Add(twin, active, ground->placed[server]);
    }
    return ask_all(twin, active);
}

uint32_t SKYT_Look_Spares(const SKYT_Ground_t *ground, uint64_t time_us)
{
    const SKYT_Twin_t *twin  = ground->twin;
    uint32_t           count = 0;

    SKY_Places_Spares(&twin->schedule, 1, SKY_Schedule_RowAt(&twin->schedule, time_us), ground->aside, ground->placed,
                      ground->room);
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        count += ground->aside[node] ? 1u : 0u;
    }
    return count;
}

/* Ask the satellites that stand in first, but for lost ones. @return false if there are none */
static bool ask_spares(SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];

    SKYT_Look_Begin(twin, active);
    active->look.is_on  = false;
    active->look.spares = SKYT_Look_Spares(ground, twin->now_us);
    active->aside_us    = twin->now_us;
    active->asks        = 0;
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        const SKY_Addr_t satellite = SKYT_AddrOf(twin, node);

        if (ground->aside[node] && !SKYT_Reach_IsLost(ground, satellite))
        {
            SKYT_OpQuestions_Add(twin, active, satellite);
        }
    }
    return ask_for(twin, active, SKYT_OpQuestions_WaitUs(twin, active, true));
}

/* Count the satellites that said that they hold nothing of the block. */
static uint32_t denials_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active)
{
    const SKY_HostQuestion_t *questions = SKYT_OpQuestions_Of(twin, active);
    uint32_t                  count     = 0;

    for (uint32_t i = 0; i < active->asks; ++i)
    {
        const bool       is_done = questions[i].status == SKY_STATUS_DONE;
        SKY_BlockFacts_t facts;

        count += SKY_Word_Of(is_done ? &questions[i].answer : NULL, questions[i].key, &facts) == SKY_WORD_ABSENT ? 1u : 0u;
    }
    return count;
}

bool SKYT_Look_AsksAside(SKYT_Twin_t *twin, SKYT_Active_t *active, bool *is_aside)
{
    if (!active->look.has_asked && ask_spares(twin, active))
    {
        return true;
    }
    active->look.has_asked = false;
    *is_aside = twin->broken != SKYT_BREAK_RUTHLESS && SKY_Verdict_IsAside(active->look.spares, denials_of(twin, active));
    return false;
}

/* Ask whether the block is prefetched, or replaced. @return true if the operation waits */
static bool asks_other(SKYT_Twin_t *twin, SKYT_Active_t *active, bool *is_other)
{
    const SKY_HostBlock_t *block = &active->block_state;
    const SKY_BlockFacts_t known = {block->stripe, active->epoch, block->content, block->block_version};

    if (active->confirms == SKYT_CONFIRM_NOT)
    {
        SKYT_Look_Begin(twin, active);
        active->look.is_on = false;
        active->confirms   = SKYT_CONFIRM_AHEAD;
    }
    if (active->confirms == SKYT_CONFIRM_AHEAD)
    {
        if (!active->look.has_asked && ask_ahead(twin, active))
        {
            return true;
        }
        active->is_ahead    = take_ahead(twin, active);
        active->ahead_epoch = active->look.facts.epoch;
        active->confirms    = SKYT_CONFIRM_OTHER;
        SKYT_Look_Begin(twin, active);
        active->look.is_on = false;
    }
    if (SKYT_Look_Waits(twin, active))
    {
        return true;
    }
    const bool is_found = SKY_Lookup_Status(&active->look.core, 0, false) == SKY_STATUS_DONE;

    active->epoch = active->is_ahead ? active->ahead_epoch : active->epoch;
    *is_other     = active->is_ahead || (is_found && SKY_Word_IsOther(&active->look.facts, &known));
    if (active->version != 0u)
    {
        *is_other = is_found && SKY_Word_IsOther(&active->look.facts, &known) && SKYT_Version_Take(twin, active);
    }
    return false;
}

bool SKYT_Look_Confirms(SKYT_Twin_t *twin, SKYT_Active_t *active, bool *is_other, bool *is_aside)
{
    *is_other = false;
    *is_aside = false;
    if (active->confirms != SKYT_CONFIRM_ASIDE)
    {
        if (asks_other(twin, active, is_other))
        {
            return true;
        }
        active->confirms       = *is_other ? SKYT_CONFIRM_NOT : SKYT_CONFIRM_ASIDE;
        active->look.has_asked = false;
    }
    if (active->confirms == SKYT_CONFIRM_ASIDE && SKYT_Look_AsksAside(twin, active, is_aside))
    {
        return true;
    }
    active->confirms = SKYT_CONFIRM_NOT;
    return false;
}
