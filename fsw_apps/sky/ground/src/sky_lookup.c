/**
 * @file
 * Look-up of a block of which a host knows only the key: see sky_lookup.h.
 */
#include "sky_lookup.h"

#include <string.h>

#include "sky_assert.h"

#define PASSES   2u /* the second pass goes around satellites that were found lost */
#define SEARCHES 2u /* what was handed over between the questions of the first may have to move on: the second follows it */

static bool IsDenied(const SKY_Lookup_t *lookup)
{
    SKY_ASSERT(!lookup->is_found || !lookup->is_unanswered);
    return !lookup->is_found && !lookup->is_unanswered;
}

/* Return the step after the satellites that are asked first. */
static uint32_t Rest(const SKY_Lookup_t *lookup)
{
    SKY_ASSERT(lookup->passes <= PASSES);
    SKY_ASSERT(lookup->step <= SKY_LOOKUP_LOOK);
    return !lookup->is_over && IsDenied(lookup) ? (uint32_t)SKY_LOOKUP_SEARCH : (uint32_t)SKY_LOOKUP_END;
}

/* Return the step after late satellites were asked, or current places after them. */
static uint32_t AfterSearch(SKY_Lookup_t *lookup, bool has_late)
{
    const bool is_search = lookup->step == SKY_LOOKUP_SEARCH;

    SKY_ASSERT(is_search || lookup->step == SKY_LOOKUP_AGAIN);
    lookup->searches += is_search ? 1u : 0u;
    lookup->has_late = is_search ? has_late : lookup->has_late;
    SKY_ASSERT(lookup->searches <= SEARCHES);
    if (IsDenied(lookup) && is_search)
    {
        return (uint32_t)SKY_LOOKUP_AGAIN;
    }
    return IsDenied(lookup) && lookup->has_late && lookup->searches < SEARCHES ? (uint32_t)SKY_LOOKUP_SEARCH
                                                                               : (uint32_t)SKY_LOOKUP_END;
}

void SKY_Lookup_Init(SKY_Lookup_t *lookup, bool is_over)
{
    (void)memset(lookup, 0, sizeof(*lookup));
    lookup->is_over       = is_over;
    lookup->is_unanswered = true;
    SKY_ASSERT(lookup->step == SKY_LOOKUP_ASK);
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

bool SKY_Lookup_Begin(SKY_Lookup_t *lookup, uint32_t ways)
{
    SKY_ASSERT(lookup->step == SKY_LOOKUP_ASK);
    SKY_ASSERT(lookup->passes < PASSES);
    if (ways == 0u || ways == lookup->ways)
    {
        lookup->step = Rest(lookup);
        return false;
    }
    lookup->ways          = ways;
    lookup->is_unanswered = false; /* the satellites that are asked now may deny it */
    ++lookup->passes;
    return true;
}

void SKY_Lookup_Told(SKY_Lookup_t *lookup, SKY_HasWord_t word)
{
    SKY_ASSERT(lookup->step != SKY_LOOKUP_END);
    SKY_ASSERT(lookup->step != SKY_LOOKUP_LOOK);
    SKY_ASSERT(!lookup->is_found);
    lookup->is_found = word == SKY_WORD_BLOCK;
    if (lookup->step == SKY_LOOKUP_ASK)
    {
        lookup->is_unanswered = word == SKY_WORD_NOTHING; /* later answers only add to what was denied */
        lookup->step          = lookup->is_unanswered ? (uint32_t)SKY_LOOKUP_LOOK : Rest(lookup);
    }
    else
    {
        lookup->step = AfterSearch(lookup, word != SKY_WORD_NOTHING);
    }
}

uint32_t SKY_Lookup_Status(const SKY_Lookup_t *lookup, bool is_incomplete)
{
    SKY_ASSERT(lookup->step == SKY_LOOKUP_END);
    SKY_ASSERT(!lookup->is_found || !lookup->is_unanswered);
    if (lookup->is_unanswered)
    {
        return SKY_STATUS_UNANSWERED;
    }
    return lookup->is_found && !is_incomplete ? SKY_STATUS_DONE : SKY_STATUS_MISS;
}
