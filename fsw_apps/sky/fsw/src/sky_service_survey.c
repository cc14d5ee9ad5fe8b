/**
 * @file
 * Survey: finds out whether any satellite has something left to hand over. A handover may take longer than any time that could be
 * set, so before the scrub purges a block as broken it asks whether chunks are on their way.
 *
 * Every other satellite is asked by STATS how much it still has to hand over, a group of them at a time. In a row chunks go only
 * to the row's own places, so once no satellite has anything left that stays true until the next row begins. All are asked twice:
 * chunks that left one satellite before it was asked may have come to another after that was asked. A satellite that is silent,
 * or holds something and is in another row, may have chunks on their way: then nothing is known, and the survey ends. If the
 * scrub still wants to know after a pause, the survey begins again with the group that failed, so while a satellite stays silent
 * only its group is asked.
 */
#include "sky_service_survey.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_service_core.h"

#define GROUP       16u
#define ROUNDS      2u
#define PATIENCE_US 1000000u  /* time for the answers of a group */
#define PAUSE_US    10000000u /* time before another attempt */

static SKY_Addr_t addr_of(const SKY_ServiceCore_t *core, uint32_t number)
{
    const uint32_t   slots = core->cfg.torus.slots;
    const SKY_Addr_t addr  = {(uint16_t)(number / slots + 1u), (uint16_t)(number % slots + 1u)};
    SKY_ASSERT(slots >= 1);

    SKY_ASSERT(SKY_Torus_Contains(&core->cfg.torus, addr));
    return addr;
}

static uint32_t satellites(const SKY_ServiceCore_t *core)
{
    return (uint32_t)core->cfg.torus.planes * core->cfg.torus.slots;
}

void SKY_Survey_Reset(SKY_Survey_t *survey)
{
    (void)memset(survey, 0, sizeof(*survey));
    SKY_ASSERT(!survey->is_wanted);
}

bool SKY_Survey_IsSettled(SKY_Survey_t *survey, uint32_t row, uint64_t at_us)
{
    if (survey->row != row)
    {
        SKY_Survey_Reset(survey);
        survey->row = row;
    }
    survey->is_wanted = survey->settled_us == 0;
    SKY_ASSERT(survey->is_wanted != (survey->settled_us != 0));
    SKY_ASSERT(survey->settled_us == 0 || survey->waiting == 0); /* a settled survey waits for nobody */
    SKY_ASSERT(survey->row == row);
    return !survey->is_wanted && survey->settled_us <= at_us;
}

/* Ask the next group, after the last one the first; or note that all have been asked. */
static void begin_group(SKY_ServiceCore_t *core, SKY_Survey_t *survey, uint64_t now_us)
{
    SKY_ASSERT(survey->waiting == 0);
    SKY_ASSERT(survey->settled_us == 0);
    SKY_ASSERT(survey->is_wanted);
    if (survey->asked >= ROUNDS * satellites(core))
    {
        survey->is_wanted  = false;
        survey->settled_us = now_us;
        return;
    }
    survey->first = survey->next < satellites(core) ? survey->next : 0;
    survey->next  = survey->first;
    for (uint32_t i = 0; i < GROUP && survey->next < satellites(core); ++i)
    {
        if (!SKY_Addr_Equal(addr_of(core, survey->next), core->cfg.self))
        {
            survey->waiting |= 1u << i;
        }
        ++survey->next;
        ++survey->asked;
    }
    SKY_ASSERT(survey->next > survey->first);
    SKY_ASSERT(survey->next <= satellites(core));
    survey->to_ask = survey->waiting;
    SKY_ASSERT(survey->waiting >> GROUP == 0);
    SKY_ASSERT(survey->asked <= (ROUNDS + 1u) * satellites(core));
    survey->until_us   = now_us + PATIENCE_US;
    survey->request_id = SKY_ServiceCore_TakeIds(core);
    SKY_ASSERT(survey->until_us > now_us);
}

/* End the survey, because some satellite may have chunks on their way. */
static void give_up(SKY_Survey_t *survey, uint64_t now_us)
{
    survey->is_wanted = false; /* the survey rests until the next look of the scrub */
    survey->asked     = 0;
    survey->next      = survey->first;
    survey->waiting   = 0;
    survey->to_ask    = 0;
    survey->until_us  = now_us + PAUSE_US;
    SKY_ASSERT(survey->settled_us == 0);
    SKY_ASSERT(!survey->is_wanted);
    SKY_ASSERT(survey->asked == 0);
    SKY_ASSERT(survey->to_ask == 0);
}

uint64_t SKY_Survey_OnTime(SKY_ServiceCore_t *core, SKY_Survey_t *survey, uint64_t now_us)
{
    if (!survey->is_wanted || SKY_Schedule_RowAt(core->schedule, now_us) != survey->row)
    {
        survey->to_ask = 0;
        return UINT64_MAX; /* the next look of the scrub asks anew */
    }
    if (survey->waiting != 0 && now_us >= survey->until_us)
    {
        give_up(survey, now_us);
    }
    if (survey->waiting == 0 && now_us >= survey->until_us)
    {
        begin_group(core, survey, now_us);
    }
    SKY_ASSERT(!survey->is_wanted || survey->settled_us == 0);
    SKY_ASSERT(survey->to_ask >> GROUP == 0);
    return survey->is_wanted ? survey->until_us : UINT64_MAX;
}

bool SKY_Survey_Next(SKY_ServiceCore_t *core, SKY_Survey_t *survey, uint64_t now_us, SKY_Out_t *out)
{
    uint32_t     index = 0;
    SKY_Packet_t pkt;

    if (survey->to_ask == 0)
    {
        return false;
    }
    while ((survey->to_ask >> index & 1u) == 0) /* a group has satellites to ask */
    {
        ++index;
    }
    SKY_ASSERT(index < GROUP);
    SKY_ASSERT(survey->first + index < survey->next);
    SKY_ASSERT(survey->next <= satellites(core));
    survey->to_ask &= ~(1u << index);
    SKY_ServiceCore_Request(core, SKY_OP_STATS, addr_of(core, survey->first + index),
                            SKY_REQUEST_FIRST(survey->request_id) | index, &pkt);
    SKY_ServiceCore_Emit(core, now_us, &pkt, NULL, out);
    return true;
}

void SKY_Survey_Unreachable(const SKY_ServiceCore_t *core, SKY_Survey_t *survey, SKY_Addr_t dst)
{
    SKY_ASSERT(survey->waiting >> GROUP == 0);
    for (uint32_t i = 0; i < GROUP; ++i)
    {
        if ((survey->waiting >> i & 1u) != 0 && SKY_Addr_Equal(addr_of(core, survey->first + i), dst))
        {
            give_up(survey, survey->until_us - PATIENCE_US); /* time at which the group was begun */
        }
    }
}

static uint64_t counter(const SKY_Packet_t *pkt, uint32_t number)
{
    uint64_t value = 0;
    SKY_ASSERT(number < SKY_STATS_KVC_COUNT);
    SKY_ASSERT(pkt->length >= 8u * (number + 1u));

    for (uint32_t i = 0; i < 8u; ++i)
    {
        value = value << 8 | pkt->payload[8u * number + i];
    }
    return value;
}

static bool has_nothing_left(const SKY_Packet_t *pkt, uint32_t row)
{
    SKY_ASSERT(pkt->op == SKY_OP_STATS);
    return pkt->status == SKY_STATUS_OK && pkt->length == 8u * SKY_STATS_KVC_COUNT &&
           (counter(pkt, SKY_STATS_KVC_USED_BYTES) == 0 ||
            (counter(pkt, SKY_STATS_KVC_ROW) == row && counter(pkt, SKY_STATS_KVC_HANDOVER_LEFT) == 0));
}

bool SKY_Survey_Response(const SKY_ServiceCore_t *core, SKY_Survey_t *survey, uint64_t now_us, const SKY_Packet_t *pkt)
{
    const uint32_t index = SKY_REQUEST_NUMBER(pkt->request_id);

    if (pkt->op != SKY_OP_STATS || SKY_REQUEST_FIRST(pkt->request_id) != SKY_REQUEST_FIRST(survey->request_id) ||
        index >= GROUP || (survey->waiting >> index & 1u) == 0)
    {
        return false;
    }
    if (!has_nothing_left(pkt, survey->row) || !SKY_Addr_Equal(pkt->src, addr_of(core, survey->first + index)))
    {
        give_up(survey, now_us);
        return true;
    }
    SKY_ASSERT(survey->waiting >> GROUP == 0);
    SKY_ASSERT(survey->is_wanted);
    SKY_ASSERT(survey->settled_us == 0);
    survey->waiting &= ~(1u << index);
    if (survey->waiting == 0)
    {
        survey->until_us = now_us; /* the next group is due */
    }
    return true;
}
