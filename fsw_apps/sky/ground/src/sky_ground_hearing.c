/**
 * @file
 * Who has answered, by questions. Nobody waits for a question that has nothing to add, but it goes on: one to each satellite at most. If it is not
 * answered, a look finds out whether the satellite is lost.
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

#define SILENCE_MS 1000u /* who is waited for in a hurry is not silent yet */

void SKY_GroundHearing_Note(SKY_Ground_t *ground, const SKY_HostQuestion_t *question)
{
    const SKY_Addr_t     satellite = {question->place.plane, question->place.slot};
    const uint64_t       asked_us  = question->deadline_us - SKY_GROUND_US_PER_MS * question->deadline_ms;
    const bool           had_turn  = question->request_id != 0u; /* else it has waited behind others */
    SKY_GroundHearing_t *hearing   = &ground->hearing[SKY_GroundWays_NumberOf(ground, satellite)];

    SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
    SKY_ASSERT(asked_us <= ground->now_us);
    if (question->status == SKY_STATUS_DONE && SKY_Addr_Equal(question->answer.src, satellite))
    {
        hearing->heard_us = ground->now_us;
    }
    else if (question->status == SKY_STATUS_EXPIRED && had_turn && question->deadline_ms >= SILENCE_MS &&
             hearing->heard_us <= asked_us)
    {
        hearing->silent_us = ground->now_us;
    }
}

void SKY_GroundHearing_Leave(SKY_Ground_t *ground, SKY_HostQuestion_t *question)
{
    const SKY_Addr_t    satellite = {question->place.plane, question->place.slot};
    SKY_HostQuestion_t *stray     = &ground->strays[SKY_GroundWays_NumberOf(ground, satellite)];

    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(question->payload == ground->any); /* it stays */
    if (SKY_Host_Leave(&ground->host, question, stray->owner == NULL ? stray : NULL))
    {
        stray->owner = ground->strays;
    }
}

void SKY_GroundHearing_Strayed(SKY_Ground_t *ground, SKY_HostQuestion_t *question)
{
    const SKY_Addr_t satellite = {question->place.plane, question->place.slot};

    SKY_ASSERT(question->owner == ground->strays);
    SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
    question->owner = NULL;
    if (question->status != SKY_STATUS_DONE)
    {
        ground->doubted = satellite;
    }
}
