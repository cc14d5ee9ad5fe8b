/**
 * @file
 * Look-up of blocks of which a host knows only the keys: see sky_lookup.h.
 */
#include "sky_lookup.h"

#include <string.h>

#include "sky_assert.h"

#define PASSES   2u /* the second pass goes around satellites that were found lost */
#define SEARCHES 2u /* what was handed over between the questions of the first may have to move on: the second follows it */

/* ---- steps ----------------------------------------------------------------------------------------------------------- */

static bool IsDenied(const SKY_LookupKey_t *key)
{
    SKY_ASSERT(!key->is_found || !key->is_unanswered);
    return !key->is_found && !key->is_unanswered;
}

/* Want the keys that satellites deny, or else those of which nobody said anything. @return true if there are some */
static bool Want(SKY_Lookup_t *lookup, bool denied)
{
    bool any = false;

    for (uint32_t i = 0; i < lookup->count; ++i)
    {
        SKY_LookupKey_t *key = &lookup->keys[i];

        key->is_wanted = denied ? IsDenied(key) : key->is_unanswered;
        any            = any || key->is_wanted;
    }
    SKY_ASSERT(!any || lookup->count > 0u);
    return any;
}

/* Return the step after the satellites that are asked one after the other. */
static uint32_t Rest(SKY_Lookup_t *lookup)
{
    SKY_ASSERT(lookup->passes <= PASSES);
    return !lookup->is_over && Want(lookup, true) ? (uint32_t)SKY_LOOKUP_SEARCH : (uint32_t)SKY_LOOKUP_END;
}

static bool IsAnyWanted(const SKY_Lookup_t *lookup)
{
    bool any = false;

    for (uint32_t i = 0; i < lookup->count; ++i)
    {
        any = any || SKY_Lookup_Wants(lookup, i);
    }
    SKY_ASSERT(!any || lookup->count > 0u);
    return any;
}

/* Note that a satellite of a pass was asked. @return true if the next one is to be asked */
static bool IsPassOn(SKY_Lookup_t *lookup)
{
    const bool is_silent = lookup->silent == lookup->asked;

    SKY_ASSERT(lookup->left > 0u);
    SKY_ASSERT(lookup->silent <= lookup->asked);
    --lookup->left;
    if (lookup->left > 0u && !is_silent && IsAnyWanted(lookup))
    {
        return true;
    }
    lookup->step = Want(lookup, false) ? (uint32_t)SKY_LOOKUP_LOOK : Rest(lookup);
    return false;
}

/* Note that late satellites were asked, or current places after them. */
static void AfterSearch(SKY_Lookup_t *lookup)
{
    const bool is_search = lookup->step == SKY_LOOKUP_SEARCH;

    SKY_ASSERT(is_search || lookup->step == SKY_LOOKUP_AGAIN);
    lookup->searches += is_search ? 1u : 0u;
    lookup->has_late = is_search ? lookup->asked > 0u : lookup->has_late;
    if (!Want(lookup, true))
    {
        lookup->step = (uint32_t)SKY_LOOKUP_END;
    }
    else if (is_search)
    {
        lookup->step = (uint32_t)SKY_LOOKUP_AGAIN;
    }
    else
    {
        lookup->step = lookup->has_late && lookup->searches < SEARCHES ? (uint32_t)SKY_LOOKUP_SEARCH : (uint32_t)SKY_LOOKUP_END;
    }
    SKY_ASSERT(lookup->searches <= SEARCHES);
}

/* ---- what happens ---------------------------------------------------------------------------------------------------- */

void SKY_Lookup_Init(SKY_Lookup_t *lookup, SKY_LookupKey_t *keys, uint32_t count, bool is_over)
{
    static const SKY_LookupKey_t unknown = {false, true, true};

    SKY_ASSERT(keys != NULL || count == 0u);
    (void)memset(lookup, 0, sizeof(*lookup));
    lookup->keys    = keys;
    lookup->count   = count;
    lookup->is_over = is_over;
    lookup->step    = count > 0u ? (uint32_t)SKY_LOOKUP_ASK : (uint32_t)SKY_LOOKUP_END;
    for (uint32_t i = 0; i < count; ++i)
    {
        keys[i] = unknown;
    }
    SKY_ASSERT(lookup->ways == 0u);
}

SKY_LookupStep_t SKY_Lookup_Next(SKY_Lookup_t *lookup)
{
    const SKY_LookupStep_t step = (SKY_LookupStep_t)lookup->step;

    if (step == SKY_LOOKUP_LOOK)
    {
        SKY_ASSERT(lookup->passes > 0u);
        lookup->step = lookup->passes < PASSES ? (uint32_t)SKY_LOOKUP_ASK : Rest(lookup);
    }
    SKY_ASSERT(step <= SKY_LOOKUP_END);
    return step;
}

bool SKY_Lookup_Begin(SKY_Lookup_t *lookup, uint32_t ways, uint32_t satellites)
{
    SKY_ASSERT(lookup->step == SKY_LOOKUP_ASK);
    SKY_ASSERT(lookup->passes < PASSES);
    SKY_ASSERT(ways != 0u); /* 0 means no way was tried */
    if (satellites == 0u || ways == lookup->ways)
    {
        lookup->step = Rest(lookup);
        return false;
    }
    lookup->ways   = ways;
    lookup->left   = satellites;
    lookup->asked  = 0;
    lookup->silent = 0;
    ++lookup->passes;
    for (uint32_t i = 0; i < lookup->count; ++i)
    {
        lookup->keys[i].is_wanted     = lookup->keys[i].is_unanswered;
        lookup->keys[i].is_unanswered = false; /* the satellite that is asked now may deny it */
    }
    SKY_ASSERT(lookup->left > 0u);
    return true;
}

bool SKY_Lookup_Wants(const SKY_Lookup_t *lookup, uint32_t key)
{
    SKY_ASSERT(key < lookup->count);
    return lookup->keys[key].is_wanted && !lookup->keys[key].is_found;
}

void SKY_Lookup_Take(SKY_Lookup_t *lookup, uint32_t key, SKY_HasWord_t word)
{
    SKY_LookupKey_t *one = &lookup->keys[key];

    SKY_ASSERT(key < lookup->count);
    SKY_ASSERT(one->is_wanted);
    SKY_ASSERT(lookup->step != SKY_LOOKUP_END);
    ++lookup->asked;
    if (word == SKY_WORD_BLOCK)
    {
        one->is_found      = true;
        one->is_unanswered = false;
    }
    else if (word == SKY_WORD_NOTHING && !one->is_found)
    {
        ++lookup->silent;
        one->is_unanswered = one->is_unanswered || lookup->step == SKY_LOOKUP_ASK; /* later answers only add to what was denied */
    }
    SKY_ASSERT(!one->is_found || !one->is_unanswered);
}

bool SKY_Lookup_Asked(SKY_Lookup_t *lookup)
{
    bool is_on = false;

    SKY_ASSERT(lookup->step != SKY_LOOKUP_END);
    SKY_ASSERT(lookup->step != SKY_LOOKUP_LOOK);
    if (lookup->step == SKY_LOOKUP_ASK)
    {
        is_on = IsPassOn(lookup);
    }
    else
    {
        AfterSearch(lookup);
    }
    lookup->asked  = 0;
    lookup->silent = 0;
    return is_on;
}

uint32_t SKY_Lookup_Status(const SKY_Lookup_t *lookup, uint32_t key, bool is_incomplete)
{
    SKY_ASSERT(key < lookup->count);
    SKY_ASSERT(lookup->step == SKY_LOOKUP_END);
    if (lookup->keys[key].is_unanswered)
    {
        return SKY_STATUS_UNANSWERED;
    }
    return lookup->keys[key].is_found && !is_incomplete ? SKY_STATUS_DONE : SKY_STATUS_MISS;
}
