/**
 * @file
 * The question whether a block is whole: before some gets a ground host asks all servers by HAS, as the ground does before
 * somebody counts on blocks. The core decides who is asked, for which chunks, and what the answers mean (sky_presence.h,
 * sky_held.h). A block of which servers say that a chunk is gone is missed, and its rest purged.
 */
#include <stdlib.h>
#include <string.h>

#include "twin_priv.h"

#define GRACE_US UINT64_C(1000000) /* time after the last deadline of a question */

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

bool SKYT_Held_Init(SKYT_Ground_t *ground)
{
    SKYT_Held_t       *held    = &ground->held;
    const SKYT_Twin_t *twin    = ground->twin;
    const size_t       servers = twin->config.servers;
    const size_t       places  = servers * SKY_PLACES_MAX;

    if (twin->config.ask_first == 0u)
    {
        return true;
    }
    held->shares    = calloc(servers, sizeof(*held->shares));
    held->questions = calloc(servers, sizeof(*held->questions));
    held->payloads  = calloc(servers, SKY_CHUNKSET_MAX_BYTES);
    held->rooms     = calloc(servers, SKY_CHUNKSET_MAX_BYTES);
    held->silent    = calloc(places, sizeof(*held->silent));
    held->places    = calloc(places, sizeof(*held->places));
    held->known     = calloc(twin->node_count, sizeof(*held->known));
    held->rows_of   = calloc(SKYT_Content_RowsMost(&twin->config), sizeof(*held->rows_of));
    if (held->shares == NULL || held->questions == NULL || held->payloads == NULL || held->rooms == NULL ||
        held->silent == NULL || held->places == NULL || held->known == NULL || held->rows_of == NULL)
    {
        return false;
    }
    SKY_Presence_Init(&held->presence, &twin->torus, held->known);
    return true;
}

void SKYT_Held_Free(SKYT_Ground_t *ground)
{
    free(ground->held.shares);
    free(ground->held.questions);
    free(ground->held.payloads);
    free(ground->held.rooms);
    free(ground->held.silent);
    free(ground->held.places);
    free(ground->held.known);
    free(ground->held.rows_of);
}

/* ---- places ---------------------------------------------------------------------------------------------------------- */

static const SKY_HostPlace_t *place_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t share, uint32_t round)
{
    return &active->places[(size_t)round * twin->config.servers + share];
}

/* Find the satellites of a share's places. @return the number of them */
static uint32_t places_of(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t share, SKY_Addr_t *found)
{
    uint32_t count = 0;

    for (uint32_t round = 0; round <= active->block_state.rounds; ++round)
    {
        const SKY_HostPlace_t *place = place_of(twin, active, share, round);

        if (place->plane != 0u)
        {
            found[count].plane = place->plane;
            found[count].slot  = place->slot;
            ++count;
        }
    }
    return count;
}

/* ---- questions ------------------------------------------------------------------------------------------------------- */

/* Ask the next place of a share. No place is asked once the time is over. */
static void ask_next(SKYT_Ground_t *ground, uint32_t number)
{
    SKYT_Held_t        *held     = &ground->held;
    SKYT_Twin_t        *twin     = ground->twin;
    SKYT_Active_t      *active   = held->active;
    SKY_HeldShare_t    *share    = &held->shares[number];
    SKY_HostQuestion_t *question = &held->questions[number];
    uint8_t            *payload  = &held->payloads[(size_t)number * SKY_CHUNKSET_MAX_BYTES];

    for (uint32_t round = SKY_HeldShare_Next(share); round != SKY_HELD_NOWHERE; round = SKY_HeldShare_Next(share))
    {
        (void)memset(question, 0, sizeof(*question));
        question->place         = *place_of(twin, active, number, round);
        question->apid          = SKY_APID_KVC;
        question->op            = SKY_OP_HAS;
        question->tenant        = active->block_state.tenant;
        question->payload_bytes = SKY_HeldShare_Ask(share, payload, &question->chunk_id);
        question->payload       = payload;
        question->room_bytes    = SKY_CHUNKSET_MAX_BYTES;
        question->room          = &held->rooms[(size_t)number * SKY_CHUNKSET_MAX_BYTES];
        (void)memcpy(question->key, active->block_state.key, SKY_KEY_BYTES);
        if (twin->now_us < held->end_us)
        {
            question->deadline_ms = (uint32_t)((held->end_us - twin->now_us + US_PER_MS - 1u) / US_PER_MS);
            SKYT_ShareRecord_Share(twin, active, SKYT_NodeOf(twin, (SKY_Addr_t){question->place.plane, question->place.slot}),
                                   number);
            (void)SKY_Host_Ask(&ground->core, twin->now_us, question); /* the question is sound, and others may wait */
            ++held->running;
            return;
        }
        SKY_HeldShare_Take(share, active->block_state.key, NULL);
    }
}

/* Note of each chunk whether nobody holds it. If nothing was taken from a block somebody holds each: that is checked
 * elsewhere. */
static void note_nowhere(const SKYT_Twin_t *twin, SKYT_Active_t *active)
{
    const SKYT_Truth_t *truth    = &twin->truth[active->block];
    const bool          is_whole = truth->is_held && truth->taint == 0;

    for (uint32_t chunk = 0; !is_whole && chunk < SKYT_Content_Total(twin, active->block); ++chunk)
    {
        uint32_t holder;

        if (SKYT_Holders(twin, active->block, chunk, &holder, 1) == 0)
        {
            active->have[chunk / 8u] = (uint8_t)(active->have[chunk / 8u] | 0x80u >> chunk % 8u);
        }
    }
}

bool SKYT_Held_Ask(SKYT_Twin_t *twin, SKYT_Active_t *active, const SKY_Late_t *late)
{
    SKYT_Ground_t         *ground = &twin->grounds[active->host - 1u];
    SKYT_Held_t           *held   = &ground->held;
    const SKY_BlockFacts_t block  = {active->block_state.stripe, active->epoch, 0, 0};
    uint32_t               count  = 0;

    if (held->active != NULL)
    {
        return false; /* one block at a time */
    }
    for (uint32_t share = 0; share < twin->config.servers; ++share)
    {
        SKY_Addr_t    *places  = &held->places[count];
        const uint32_t several = places_of(twin, active, share, places);

        (void)memset(&held->shares[share], 0, sizeof(held->shares[share]));
        if (SKY_HeldShare_Pieces(&block, twin->config.servers, share) == 1u) /* no block of the twin has more pieces */
        {
            const bool asks =
                SKY_Presence_Asks(&held->presence, twin->now_us, block.stripe.chunk_total, share, true, places, several);

            SKY_HeldShare_Init(&held->shares[share], &block, twin->config.servers, share, 0, asks ? several : 0u,
                               (active->astray & SKYT_ShareRecord_Bit(twin, share)) != 0u);
            count += asks ? several : 0u;
        }
    }
    if (count == 0u)
    {
        return false;
    }
    held->active       = active;
    held->block        = block;
    held->is_certain   = late->is_certain;
    held->row_count    = ground->shares.row_count;
    held->began_us     = twin->now_us;
    held->waits_us     = SKY_Host_HurryUs(&ground->core, held->places, count);
    held->end_us       = twin->now_us + held->waits_us;
    held->running      = 0;
    held->silent_count = 0;
    (void)memcpy(held->rows, ground->shares.rows, held->row_count * sizeof(held->rows[0]));
    note_nowhere(twin, active);
    for (uint32_t share = 0; share < twin->config.servers; ++share)
    {
        ask_next(ground, share);
    }
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfActive(twin, (uint32_t)(active - twin->active)), held->end_us + GRACE_US);
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfGround(twin, active->host - 1u), twin->now_us);
    return true;
}

/* ---- answers --------------------------------------------------------------------------------------------------------- */

/* Return true if new places are asked now. */
static bool has_moved(const SKYT_Twin_t *twin, const SKYT_Held_t *held)
{
    const SKY_Places_t places = {&twin->schedule, (uint64_t)twin->config.handover_ms * US_PER_MS};
    uint32_t           rows[SKY_PLACES_ROWS_MAX];
    const uint32_t     count = SKY_Places_Rows(&places, twin->now_us, held->active->epoch, rows);
    bool               moved = false;

    for (uint32_t i = 0; i < count; ++i)
    {
        bool is_same = false;

        for (uint32_t j = 0; j < held->row_count; ++j)
        {
            is_same = is_same || held->rows[j] == rows[i];
        }
        moved = moved || !is_same;
    }
    return moved;
}

/* Return a chunk that is held nowhere, as all said who may have it. What stand-ins deny the lost satellite may have. */
static uint32_t gone_of(const SKYT_Twin_t *twin, const SKYT_Held_t *held)
{
    for (uint32_t i = 0; i < twin->config.servers; ++i)
    {
        const SKY_HeldShare_t *share = &held->shares[i];
        const uint32_t         first = SKY_ChunkSet_Next(&share->missing, 0);

        if (first < share->missing.count && !share->is_unanswered && !share->is_stand_in)
        {
            return SKY_ChunkSet_ChunkId(&share->missing, first);
        }
    }
    return SKYT_NONE;
}

/* Tell the core who was silent, so that they are left alone for a while. */
static void tell_presence(const SKYT_Twin_t *twin, SKYT_Held_t *held)
{
    uint32_t count = 0;

    for (uint32_t share = 0; share < twin->config.servers; ++share)
    {
        if (held->shares[share].asked > 0u)
        {
            const SKY_HostPlace_t *place = place_of(twin, held->active, share, 0);

            held->places[count].plane = place->plane;
            held->places[count].slot  = place->slot;
            ++count;
        }
    }
    SKY_Presence_Told(&held->presence, twin->now_us, held->waits_us, held->places, count, held->silent, held->silent_count);
}

static void end(SKYT_Ground_t *ground)
{
    SKYT_Held_t   *held   = &ground->held;
    SKYT_Twin_t   *twin   = ground->twin;
    SKYT_Active_t *active = held->active;
    SKY_Held_t     told   = {.verdict = SKY_HELD_WHOLE, .rows = held->rows_of};
    uint32_t       gone   = SKYT_NONE;

    (void)memset(held->rows_of, 0, SKYT_Content_RowsMost(&twin->config) * sizeof(*held->rows_of));
    for (uint32_t share = 0; share < twin->config.servers; ++share)
    {
        if (held->shares[share].missing.count > 0u)
        {
            SKY_Held_Add(&told, &held->shares[share]);
        }
    }
    tell_presence(twin, held);
    if (told.verdict == SKY_HELD_WHOLE)
    {
        SKYT_Truth_Held(twin, active, held->began_us);
    }
    if (told.verdict == SKY_HELD_BROKEN)
    {
        /* All hosts know the schedule. Stand-ins are asked next. */
        const SKY_Denied_t denied = {.has_moved    = has_moved(twin, held),
                                     .at_stand_in  = !told.is_gone,
                                     .is_unsettled = told.is_unsettled && twin->broken != SKYT_BREAK_RUTHLESS,
                                     .is_certain   = held->is_certain,
                                     .is_other     = told.is_other,
                                     .lazy_purge   = twin->config.lazy_purge != 0};

        gone = SKY_Verdict_Of(&denied) == SKY_VERDICT_PURGE ? gone_of(twin, held) : SKYT_NONE;
    }
    held->active = NULL;
    SKYT_Op_Told(twin, active, gone);
}

bool SKYT_Held_Answered(SKYT_Ground_t *ground, const SKY_HostQuestion_t *question)
{
    SKYT_Held_t    *held    = &ground->held;
    const uintptr_t at      = (uintptr_t)question - (uintptr_t)held->questions;
    const bool      is_done = question->status == SKY_STATUS_DONE;

    if (held->active == NULL || at >= ground->twin->config.servers * sizeof(*question))
    {
        return false;
    }
    const uint32_t share = (uint32_t)(at / sizeof(*question));

    if (!is_done)
    {
        held->silent[held->silent_count].plane = question->place.plane;
        held->silent[held->silent_count].slot  = question->place.slot;
        ++held->silent_count;
    }
    SKY_HeldShare_Take(&held->shares[share], question->key, is_done ? &question->answer : NULL);
    --held->running;
    ask_next(ground, share);
    if (held->running == 0u)
    {
        end(ground);
    }
    return true;
}
