/**
 * @file
 * FIND: keys, and the lists in which they go on, or wait.
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

void SKY_GroundKeys_Push(SKY_GroundFind_t *find, SKY_GroundKeys_t *list, uint32_t number)
{
    SKY_GroundFound_t *found = &find->found[number];

    SKY_ASSERT(number < find->found_count);
    SKY_ASSERT(!found->is_listed);
    found->is_listed = true;
    found->next      = SKY_HOST_NONE;
    if (list->first == SKY_HOST_NONE)
    {
        list->first = number;
    }
    else
    {
        find->found[list->last].next = number;
    }
    list->last = number;
}

void SKY_GroundKeys_GoesOn(SKY_GroundFind_t *find, uint32_t number)
{
    SKY_GroundKeys_t  *list  = &find->ready;
    SKY_GroundFound_t *found = &find->found[number];

    SKY_ASSERT(number < find->found_count);
    SKY_ASSERT(!found->is_listed);
    found->is_listed = true;
    found->next      = list->first;
    list->last       = list->first == SKY_HOST_NONE ? number : list->last;
    list->first      = number;
}

uint32_t SKY_GroundKeys_Pop(SKY_GroundFind_t *find, SKY_GroundKeys_t *list)
{
    const uint32_t     number = list->first;
    SKY_GroundFound_t *found  = &find->found[number];

    SKY_ASSERT(number < find->found_count);
    SKY_ASSERT(found->is_listed);
    list->first      = found->next;
    found->is_listed = false;
    return number;
}

void SKY_GroundKeys_Add(SKY_GroundFind_t *find, uint32_t number)
{
    SKY_ASSERT(number < find->found_count);
    SKY_ASSERT(!find->found[number].is_passing);
    SKY_GroundKeys_Push(find, &find->ready, number);
}

void SKY_GroundKeys_Unpark(SKY_GroundFind_t *find)
{
    SKY_ASSERT(find->ready.first == SKY_HOST_NONE);
    SKY_ASSERT(find->parked.first != SKY_HOST_NONE);
    find->ready        = find->parked;
    find->parked.first = SKY_HOST_NONE;
}

SKY_GroundFound_t *SKY_GroundKeys_Of(const SKY_GroundOp_t *op, uint32_t number)
{
    SKY_ASSERT(op->find.is_open);
    SKY_ASSERT(number < op->find.found_count);
    return &op->find.found[number];
}
