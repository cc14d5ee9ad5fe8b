/**
 * @file
 * FIND: the look-up of blocks by their keys alone. For each key sky_lookup.h decides who is asked by HAS, and whether the block is found,
 * missed or not answered. This file asks, for as many keys at a time as there are questions.
 *
 *     ready  -> its satellites are asked            -> an answer, or none -> ready, until its step is over
 *     parked -> it waits for a look, a search for late satellites, or places that have changed: until no key can go on otherwise
 *
 * sky_ground_first.c says who is asked first, and sky_ground_find_ask.c asks.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_ground_priv.h"

/* ---- steps of a key -------------------------------------------------------------------------------------------------- */

/* Ask the next satellites of a key's step. @return false if no question is free */
static bool AskNext(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number)
{
    SKY_GroundFound_t *found     = SKY_GroundKeys_Of(op, number);
    const bool         is_search = found->core.step == (uint32_t)SKY_LOOKUP_SEARCH;
    const uint32_t     count     = is_search ? ground->late_count : SKY_GroundFirst_Count(&op->find);

    SKY_ASSERT(found->is_passing);
    while (!found->is_asked && (found->at_once || found->asking == 0u))
    {
        SKY_HostPlace_t place;

        if (found->at < count && SKY_GroundFirst_Place(ground, op, found, found->at, &place))
        {
            if (place.plane == 0u || SKY_GroundFind_IsDeaf(ground, &op->find, &place))
            {
                SKY_GroundFind_TakeSilence(op, found, &place);
            }
            else if (!SKY_GroundFind_Ask(ground, op, number, &place))
            {
                return false;
            }
        }
        ++found->at;
        found->is_asked = found->is_asked || found->at >= count;
    }
    SKY_ASSERT(found->is_asked || found->asking > 0u);
    return true;
}

/* Begin a step of a key. @return false if there is nothing to ask: the step is another one */
static bool BeginStep(const SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_GroundFound_t *found, SKY_LookupStep_t step)
{
    SKY_ASSERT(!found->is_passing);
    SKY_ASSERT(found->asking == 0u);
    if (step == SKY_LOOKUP_ASK &&
        !SKY_Lookup_Begin(&found->core, op->find.row_count > 0u ? SKY_GroundFirst_Number(ground, op, found) : 0u))
    {
        return false;
    }
    found->is_passing = true;
    found->at_once    = op->find.at_once || step != SKY_LOOKUP_ASK;
    found->is_asked   = false;
    found->is_silent  = false;
    found->word       = (uint32_t)SKY_WORD_NOTHING;
    found->question   = SKY_HOST_NONE;
    found->at         = 0;
    found->asks       = 0;
    return true;
}

/* End a step of which all have answered. */
static void EndStep(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, SKY_GroundFound_t *found)
{
    const bool    is_late  = found->core.step == (uint32_t)SKY_LOOKUP_SEARCH;
    const bool    is_block = found->word == (uint32_t)SKY_WORD_BLOCK;
    SKY_HasWord_t word     = is_block ? SKY_WORD_BLOCK : SKY_WORD_ABSENT;

    SKY_ASSERT(found->is_passing);
    SKY_ASSERT(found->is_asked);
    if (found->core.step == (uint32_t)SKY_LOOKUP_ASK)
    {
        word = SKY_GroundFind_Together(ground, op, found);
    }
    else if (is_late && found->asks == 0u)
    {
        word = SKY_WORD_NOTHING;
    }
    found->is_passing = false;
    SKY_Lookup_Told(&found->core, word);
}

/* Return true if a key has to wait before a step. */
static bool Waits(const SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_LookupStep_t step)
{
    SKY_GroundFind_t *find = &op->find;
    const bool        is_late =
        step == SKY_LOOKUP_SEARCH && !op->has_searched && ground->reach.pause_us == 0u && !SKY_GroundWays_Late(ground).is_known;
    const bool is_look   = step == SKY_LOOKUP_LOOK;
    const bool is_places = (step == SKY_LOOKUP_ASK || step == SKY_LOOKUP_AGAIN) && SKY_GroundFirst_HasChanged(ground, find);

    SKY_ASSERT(step != SKY_LOOKUP_END);
    SKY_ASSERT(find->has_places);
    find->needs_look   = find->needs_look || is_look;
    find->needs_late   = find->needs_late || is_late;
    find->needs_places = find->needs_places || is_places;
    return is_look || is_late || is_places;
}

/* End a key. */
static void EndKey(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, SKY_GroundFound_t *found)
{
    SKY_ASSERT(found->asking == 0u);
    SKY_ASSERT(!found->is_passing);
    found->status = SKY_Lookup_Status(&found->core, found->is_incomplete);
    if (found->status == SKY_STATUS_UNANSWERED && op->find.row_count == 0u && ground->reach.pause_us == 0u)
    {
        found->status = SKY_STATUS_NO_SATELLITE;
    }
}

/* Let a key go on. @return false if no question is free */
static bool Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number)
{
    SKY_GroundFound_t *found = SKY_GroundKeys_Of(op, number);

    for (;;)
    {
        if (!found->is_passing)
        {
            const SKY_LookupStep_t step = SKY_Lookup_Next(&found->core);

            if (step == SKY_LOOKUP_END)
            {
                EndKey(ground, op, found);
                return true;
            }
            if (Waits(ground, op, step))
            {
                SKY_GroundKeys_Push(&op->find, &op->find.parked, number);
                return true;
            }
            if (!BeginStep(ground, op, found, step))
            {
                continue;
            }
        }
        if (!AskNext(ground, op, number))
        {
            return false;
        }
        if (found->asking > 0u)
        {
            return true;
        }
        EndStep(ground, op, found);
    }
}

/* ---- all keys -------------------------------------------------------------------------------------------------------- */

/* Let all keys go on that can, the first ones first. */
static void GoAll(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundFind_t *find    = &op->find;
    bool              is_room = true;

    SKY_ASSERT(find->has_places);
    while (is_room && find->ready.first != SKY_HOST_NONE)
    {
        const uint32_t number = SKY_GroundKeys_Pop(find, &find->ready);

        is_room = Goes(ground, op, number);
        if (!is_room)
        {
            SKY_GroundKeys_GoesOn(find, number); /* when a question is free */
        }
    }
    SKY_ASSERT(is_room || op->asking > 0u);
}

/* Do what keys wait for. @return true if the operation waits for that */
static bool WaitsForKeys(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundFind_t *find  = &op->find;
    const bool        looks = find->needs_look;
    const bool        late  = find->needs_late && !looks;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(looks || late || find->needs_places);
    SKY_GroundKeys_Unpark(find);
    find->has_places   = false;
    find->needs_look   = false;
    find->needs_late   = false;
    find->needs_places = false;
    op->has_searched   = late;
    if (looks || late)
    {
        SKY_GroundInquiry_Wait(ground, op, looks ? SKY_GROUND_WAIT_LOOK : SKY_GROUND_WAIT_LATE);
    }
    return looks || late;
}

bool SKY_GroundFind_Waits(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundFind_t *find = &op->find;

    SKY_ASSERT(op->waits == SKY_GROUND_WAIT_NOT);
    SKY_ASSERT(find->is_open);
    if (op->asking > 0u)
    {
        SKY_GroundFind_Hedge(ground, op);
    }
    for (;;)
    {
        if (!find->has_places)
        {
            const SKY_GroundMay_t may = SKY_GroundInquiry_May(ground, op);

            if (may == SKY_GROUND_MAY_LATER)
            {
                return true;
            }
            op->has_asked_lost = false;
            SKY_GroundFirst_Find(ground, op, may);
        }
        GoAll(ground, op);
        if (op->asking > 0u)
        {
            return true;
        }
        find->late_us = 0;
        op->wakes_us  = 0;
        if (find->parked.first == SKY_HOST_NONE)
        {
            if (!SKY_GroundChain_Adds(op))
            {
                op->has_searched = false;
                find->is_open    = false;
                return false;
            }
        }
        else if (WaitsForKeys(ground, op))
        {
            return true;
        }
    }
}

/* Begin to look keys up. */
static void Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    const SKY_Late_t  late = SKY_GroundWays_Late(ground);
    SKY_GroundFind_t *find = &op->find;

    SKY_ASSERT(op->asking == 0u);
    SKY_ASSERT(find->found_count >= 1u);
    find->is_open      = true;
    find->has_places   = false;
    find->needs_look   = false;
    find->needs_late   = false;
    find->needs_places = false;
    find->ready.first  = SKY_HOST_NONE;
    find->parked.first = SKY_HOST_NONE;
    find->free         = SKY_HOST_NONE;
    find->fresh        = 0;
    find->usual_us     = 0;
    find->late_us      = 0;
    op->has_searched   = false;
    for (uint32_t number = 0; number < find->found_count; ++number)
    {
        SKY_GroundFound_t *found = &find->found[number];

        found->status   = SKY_STATUS_RUNNING;
        found->question = SKY_HOST_NONE;
        SKY_Lookup_Init(&found->core, late.is_known && late.is_over);
        if (!find->is_chain)
        {
            SKY_GroundKeys_Add(find, number);
        }
    }
}

void SKY_GroundFind_BeginOne(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool is_fresh)
{
    SKY_GroundFind_t *find = &op->find;

    SKY_ASSERT(op->kind != SKY_GROUND_FIND);
    SKY_ASSERT(!find->is_open);
    (void)memset(&find->one, 0, sizeof(find->one));
    (void)memcpy(find->one.key, op->key, SKY_KEY_BYTES);
    find->found       = &find->one;
    find->found_count = 1;
    find->is_fresh    = is_fresh;
    find->is_chain    = false;
    Begin(ground, op);
}

void SKY_GroundFind_Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_GroundFind_t *find = &op->find;

    SKY_ASSERT(op->found != NULL);
    SKY_ASSERT(op->found_count >= 1u);
    (void)memset(find, 0, sizeof(*find));
    find->found       = op->found;
    find->found_count = op->found_count;
    find->is_fresh    = op->is_fresh;
    SKY_GroundChain_Begin(op);
    Begin(ground, op);
}

/* Return the status of an operation by those of its keys. */
static uint32_t StatusOf(const SKY_GroundFind_t *find)
{
    uint32_t status = SKY_STATUS_DONE;

    for (uint32_t number = 0; number < find->found_count; ++number)
    {
        const uint32_t one      = find->found[number].status;
        const bool     is_worse = one == SKY_STATUS_MISS ? status == SKY_STATUS_DONE : one != SKY_STATUS_DONE;

        status = is_worse && one != SKY_STATUS_RUNNING ? one : status;
        SKY_ASSERT(find->is_chain || one != SKY_STATUS_RUNNING);
    }
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    return status;
}

bool SKY_GroundFind_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op)
{
    SKY_ASSERT(op->kind == SKY_GROUND_FIND);
    SKY_ASSERT(op->find.found == op->found);
    if (SKY_GroundFind_Waits(ground, op))
    {
        return true;
    }
    op->status = StatusOf(&op->find);
    SKY_ASSERT(op->status != SKY_STATUS_RUNNING);
    return false;
}
