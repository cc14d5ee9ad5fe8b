/**
 * @file
 * FIND: questions for keys, and what satellites say. Nobody waits for a satellite that has nothing to add. Its question goes on by itself
 * (SKY_Ground_t.strays): if it is not answered, a look finds out whether the satellite is lost, so that others are asked the next time.
 *
 * An answer is late after three sendings, by the satellite's own round trips, or by those of another one that has answered. Then who was to be asked
 * next is asked besides. If another one has answered, a look begins that nobody waits for: once it finds the satellite lost, others stand in for it.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

#define QUESTION_US UINT64_C(1000000) /* least time that an answer is waited for, unless the operation has less */

/* ---- questions ------------------------------------------------------------------------------------------------------- */

static SKY_GroundHearing_t *HearingOf(const SKY_Ground_t *ground, const SKY_HostPlace_t *place)
{
    SKY_ASSERT(place->plane != 0u);
    return &ground->hearing[SKY_GroundWays_NumberOf(ground, (SKY_Addr_t){place->plane, place->slot})];
}

bool SKY_GroundFind_IsDeaf(const SKY_Ground_t *ground, const SKY_GroundFind_t *find, const SKY_HostPlace_t *place)
{
    const SKY_GroundHearing_t *hearing = HearingOf(ground, place);

    SKY_ASSERT(hearing->heard_us <= ground->now_us);
    SKY_ASSERT(hearing->silent_us <= ground->now_us);
    return SKY_Ground_IsLost(ground, (SKY_Addr_t){place->plane, place->slot}) ||
           (hearing->silent_us >= find->places_us && hearing->silent_us > hearing->heard_us);
}

void SKY_GroundFind_TakeSilence(SKY_GroundOp_t *op, SKY_GroundFound_t *found, const SKY_HostPlace_t *place)
{
    SKY_ASSERT(found->is_passing);
    SKY_ASSERT(op->find.is_open);
    ++found->silences;
    found->is_silent = true;
    found->is_asked  = found->is_asked || !found->at_once;
    if (place->plane != 0u)
    {
        op->failed_on = (SKY_Addr_t){place->plane, place->slot};
    }
}

/* Take a free question for a key. @return its number; there is one */
static uint32_t TakeSlot(const SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number)
{
    SKY_GroundFind_t  *find  = &op->find;
    SKY_GroundFound_t *found = SKY_GroundKeys_Of(op, number);
    uint32_t           slot  = find->free;

    if (slot != SKY_HOST_NONE)
    {
        find->free = op->slots[slot].next;
    }
    else
    {
        slot = find->fresh;
        ++find->fresh;
    }
    SKY_ASSERT(slot < ground->asks_most);
    SKY_ASSERT(found->asking < ground->asks_most);
    op->slots[slot].found = number;
    op->slots[slot].next  = found->question;
    found->question       = slot;
    ++found->asking;
    ++op->asking;
    return slot;
}

/* Free the question of a key. */
static void FreeSlot(SKY_GroundOp_t *op, uint32_t slot)
{
    SKY_GroundFound_t *found = SKY_GroundKeys_Of(op, op->slots[slot].found);
    uint32_t          *link  = &found->question;

    SKY_ASSERT(found->asking >= 1u);
    SKY_ASSERT(op->asking >= 1u);
    while (*link != slot)
    {
        link = &op->slots[*link].next;
    }
    *link                 = op->slots[slot].next;
    op->slots[slot].found = SKY_HOST_NONE;
    op->slots[slot].next  = op->find.free;
    op->find.free         = slot;
    --found->asking;
    --op->asking;
}

/* Return how long a satellite's answer is waited for. */
static uint32_t WaitMs(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_HostPlace_t *place)
{
    const SKY_Addr_t satellite   = {place->plane, place->slot};
    const uint64_t   most_us     = (uint64_t)op->deadline_ms * SKY_GROUND_US_PER_MS;
    const uint64_t   patience_us = SKY_Host_PatienceUs(&ground->host, &satellite, 1);
    const uint64_t   wait_us     = patience_us > QUESTION_US ? patience_us : QUESTION_US;

    SKY_ASSERT(most_us >= 1u);
    SKY_ASSERT(patience_us >= 1u);
    return (uint32_t)((wait_us < most_us ? wait_us : most_us) / SKY_GROUND_US_PER_MS + 1u);
}

/* Return the time after which a satellite's answer is late. */
static uint64_t LateUs(const SKY_Ground_t *ground, const SKY_GroundFind_t *find, const SKY_HostPlace_t *place)
{
    const SKY_Addr_t satellite = {place->plane, place->slot};
    const uint64_t   own_us    = SKY_Host_HurryUs(&ground->host, &satellite, 1);
    const bool       is_usual  = HearingOf(ground, place)->heard_us == 0u && find->usual_us != 0u && find->usual_us < own_us;

    SKY_ASSERT(own_us > 0u);
    SKY_ASSERT(find->is_open);
    return is_usual ? find->usual_us : own_us;
}

/* Return true if a question has no end yet. */
static bool IsAsking(const SKY_GroundOp_t *op, uint32_t slot)
{
    SKY_ASSERT(slot < op->find.fresh);
    return op->slots[slot].found != SKY_HOST_NONE && op->questions[slot].status == SKY_STATUS_RUNNING;
}

/* Let the operation wake up when the next answer is late. */
static void SetWake(const SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundFind_t *find = &op->find;

    SKY_ASSERT(find->is_open);
    SKY_ASSERT(find->fresh <= ground->asks_most);
    find->late_us = 0;
    for (uint32_t slot = 0; slot < find->fresh; ++slot)
    {
        const uint64_t late_us = op->slots[slot].late_us;

        if (IsAsking(op, slot) && late_us != 0u)
        {
            find->late_us = find->late_us == 0u || late_us < find->late_us ? late_us : find->late_us;
        }
    }
    op->wakes_us = find->late_us;
}

/* Ask a satellite for a key. @return false if no question is free */
bool SKY_GroundFind_Ask(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number, const SKY_HostPlace_t *place)
{
    SKY_GroundFind_t  *find  = &op->find;
    SKY_GroundFound_t *found = SKY_GroundKeys_Of(op, number);

    if (find->free == SKY_HOST_NONE && find->fresh == ground->asks_most)
    {
        return false;
    }
    const uint32_t      slot     = TakeSlot(ground, op, number);
    SKY_HostQuestion_t *question = &op->questions[slot];

    SKY_ASSERT(found->is_passing);
    SKY_ASSERT(place->plane != 0u);
    SKY_GroundAsk_Write(op, question, place, SKY_OP_HAS);
    question->flags         = SKY_FLAG_ANY;
    question->payload       = ground->any;
    question->payload_bytes = ground->any_bytes;
    question->deadline_ms   = WaitMs(ground, op, place);
    (void)memcpy(question->key, found->key, SKY_KEY_BYTES);
    ++op->tries;
    ++found->asks;
    if (!SKY_GroundQuestion_Ask(ground, question))
    {
        FreeSlot(op, slot);
        SKY_GroundFind_TakeSilence(op, found, place);
    }
    op->slots[slot].late_us = ground->now_us + LateUs(ground, find, place);
    if (find->late_us == 0u)
    {
        find->late_us = op->slots[slot].late_us;
        op->wakes_us  = find->late_us;
    }
    return true;
}

/* ---- what they say --------------------------------------------------------------------------------------------------- */

/* Return the word of an answer. This host cannot fetch a block that is cut for another number of servers. */
static SKY_HasWord_t WordOf(const SKY_Ground_t *ground, const SKY_HostQuestion_t *question, SKY_BlockFacts_t *facts)
{
    const bool          is_done = question->status == SKY_STATUS_DONE;
    const SKY_HasWord_t word    = SKY_Word_Of(is_done ? &question->answer : NULL, question->key, facts);
    const uint32_t      cut     = word == SKY_WORD_BLOCK ? (uint32_t)facts->stripe.code_k + facts->stripe.code_m : 0u;

    SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
    SKY_ASSERT(is_done || word == SKY_WORD_NOTHING);
    return cut != 0u && cut != ground->limits.servers ? SKY_WORD_UNSOUND : word;
}

/* Take in a satellite's word of a key. */
static void TakeWord(const SKY_GroundOp_t *op, SKY_GroundFound_t *found, SKY_HasWord_t word, const SKY_BlockFacts_t *facts)
{
    const bool is_known = found->facts.stripe.chunk_len != 0u;

    SKY_ASSERT(found->is_passing);
    SKY_ASSERT(word != SKY_WORD_NOTHING);
    if (word == SKY_WORD_BLOCK && (!is_known || SKY_Word_IsNewer(facts, &found->facts)))
    {
        found->facts = *facts;
    }
    found->word     = (uint32_t)word > found->word ? (uint32_t)word : found->word;
    found->is_asked = found->is_asked || (word == SKY_WORD_BLOCK && facts->version == 0u && !op->find.is_fresh);
}

SKY_HasWord_t SKY_GroundFind_Together(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found)
{
    const bool is_block = found->word == (uint32_t)SKY_WORD_BLOCK;

    SKY_ASSERT(found->asking == 0u);
    SKY_ASSERT(!is_block || found->facts.stripe.chunk_len != 0u);
    if (is_block)
    {
        return found->is_silent && found->facts.version != 0u ? SKY_WORD_NOTHING : SKY_WORD_BLOCK;
    }
    return found->is_silent || (op->find.parity > 0u && !SKY_GroundFirst_IsAnyHome(ground, op, found)) ? SKY_WORD_NOTHING
                                                                                                       : SKY_WORD_ABSENT;
}

/* Take in how long an answer takes, from the first one: that is as long as others may take of which nothing is known. */
static void TakeUsual(const SKY_Ground_t *ground, SKY_GroundOp_t *op, const SKY_HostPlace_t *place)
{
    const SKY_Addr_t satellite = {place->plane, place->slot};

    SKY_ASSERT(place->plane != 0u);
    SKY_ASSERT(op->find.is_open);
    if (op->find.usual_us != 0u)
    {
        return;
    }
    op->find.usual_us = SKY_Host_HurryUs(&ground->host, &satellite, 1);
    for (uint32_t slot = 0; slot < op->find.fresh; ++slot)
    {
        const SKY_HostQuestion_t *question = &op->questions[slot];

        if (IsAsking(op, slot) && question->request_id != 0u)
        {
            const uint64_t asked_us = question->first_us != 0u
                                          ? question->first_us
                                          : question->deadline_us - SKY_GROUND_US_PER_MS * question->deadline_ms;
            const uint64_t late_us  = asked_us + LateUs(ground, &op->find, &question->place);
            op->slots[slot].late_us = late_us < op->slots[slot].late_us ? late_us : op->slots[slot].late_us;
        }
    }
    SetWake(ground, op);
}

/* Let nobody wait for the questions of a key that have nothing to add. What becomes of them tells whether the satellite is there. */
static void LeaveRest(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_GroundFound_t *found)
{
    uint32_t next = SKY_HOST_NONE;

    SKY_ASSERT(found->is_asked);
    SKY_ASSERT(found->word == (uint32_t)SKY_WORD_BLOCK);
    for (uint32_t slot = found->question; slot != SKY_HOST_NONE; slot = next)
    {
        SKY_HostQuestion_t *question = &op->questions[slot];

        next = op->slots[slot].next;
        if (question->status == SKY_STATUS_RUNNING) /* another one has ended, and is handed over in a moment */
        {
            SKY_GroundHearing_Leave(ground, question);
            FreeSlot(op, slot);
        }
    }
}

/* Let a key go on after a word, or a silence. */
static void GoOn(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number)
{
    SKY_GroundFound_t *found = SKY_GroundKeys_Of(op, number);

    SKY_ASSERT(found->is_passing);
    if (found->is_asked && !op->find.is_fresh && found->word == (uint32_t)SKY_WORD_BLOCK && found->facts.version == 0u)
    {
        LeaveRest(ground, op, found);
    }
    if (found->asking == 0u && !found->is_listed)
    {
        SKY_GroundKeys_GoesOn(&op->find, number);
    }
    op->is_due = true;
}

/* A satellite is lost, or has not answered a question, and no other one meanwhile: none of the operation is waited for. */
static void GiveUpOn(SKY_Ground_t *ground, SKY_GroundOp_t *op, const SKY_HostPlace_t *place)
{
    SKY_ASSERT(place->plane != 0u);
    SKY_ASSERT(op->find.fresh <= ground->asks_most);
    for (uint32_t slot = 0; slot < op->find.fresh; ++slot)
    {
        const uint32_t      number   = op->slots[slot].found;
        SKY_HostQuestion_t *question = &op->questions[slot];

        if (IsAsking(op, slot) && question->place.plane == place->plane && question->place.slot == place->slot)
        {
            (void)SKY_Host_Leave(&ground->host, question, NULL);
            FreeSlot(op, slot);
            SKY_GroundFind_TakeSilence(op, SKY_GroundKeys_Of(op, number), place);
            GoOn(ground, op, number);
        }
    }
}

/* The answer to a question is late, unless its turn has not come. */
static void TakeLate(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t slot)
{
    const SKY_HostQuestion_t *question = &op->questions[slot];
    const uint32_t            number   = op->slots[slot].found;
    SKY_GroundFound_t        *found    = SKY_GroundKeys_Of(op, number);
    const bool is_late = question->request_id != 0u; /* it may not be sent before its satellite lets this host in */

    SKY_ASSERT(found->is_passing);
    SKY_ASSERT(question->place.plane != 0u);
    op->slots[slot].late_us = ground->now_us + LateUs(ground, &op->find, &question->place);
    if (is_late && !found->at_once)
    {
        found->at_once = true;
        SKY_GroundKeys_GoesOn(&op->find, number);
    }
    if (is_late && op->find.usual_us != 0u)
    {
        op->slots[slot].late_us = 0;
        ground->doubted         = (SKY_Addr_t){question->place.plane, question->place.slot};
    }
}

void SKY_GroundFind_Hedge(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const bool is_time = op->find.late_us != 0u && op->find.late_us <= ground->now_us && op->wakes_us == 0u;
    const bool is_due  = is_time || ground->reach.losses != op->find.losses;

    SKY_ASSERT(op->asking > 0u);
    SKY_ASSERT(op->find.is_open);
    for (uint32_t slot = 0; is_due && slot < op->find.fresh; ++slot)
    {
        const SKY_HostPlace_t place = op->questions[slot].place;

        if (IsAsking(op, slot) && SKY_GroundFind_IsDeaf(ground, &op->find, &place))
        {
            GiveUpOn(ground, op, &place);
        }
        else if (IsAsking(op, slot) && op->slots[slot].late_us != 0u && op->slots[slot].late_us <= ground->now_us)
        {
            TakeLate(ground, op, slot);
        }
    }
    if (is_time)
    {
        SetWake(ground, op);
    }
    op->is_due = false; /* keys that can go on do so next */
}

void SKY_GroundFind_Answered(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_HostQuestion_t *question)
{
    const uint32_t        slot   = (uint32_t)(question - op->questions);
    const uint32_t        number = op->slots[slot].found;
    const SKY_HostPlace_t place  = question->place;
    SKY_GroundFound_t    *found  = SKY_GroundKeys_Of(op, number);
    SKY_BlockFacts_t      facts;
    const SKY_HasWord_t   word = WordOf(ground, question, &facts);

    SKY_ASSERT(slot < op->find.fresh);
    SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
    FreeSlot(op, slot);
    if (word == SKY_WORD_NOTHING)
    {
        SKY_GroundFind_TakeSilence(op, found, &place);
    }
    else
    {
        TakeWord(op, found, word, &facts);
        TakeUsual(ground, op, &place);
    }
    GoOn(ground, op, number);
    if (SKY_GroundFind_IsDeaf(ground, &op->find, &place))
    {
        GiveUpOn(ground, op, &place);
    }
}
