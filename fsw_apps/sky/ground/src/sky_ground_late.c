/**
 * @file
 * LATE: which satellites have something left to hand over? If none has, all are asked once more: chunks were on their way (sky_handovers.h).
 */
#include "sky_assert.h"
#include "sky_ground_priv.h"

static void BeginPass(SKY_Ground_t *ground)
{
    const uint32_t       satellites = (uint32_t)ground->limits.torus.planes * ground->limits.torus.slots;
    SKY_GroundInquiry_t *inquiry    = &ground->inquiry;

    SKY_ASSERT(inquiry->kind == SKY_GROUND_WAIT_LATE);
    SKY_ASSERT(inquiry->search.first <= inquiry->search.row);
    inquiry->count = 0;
    inquiry->about = 0;
    SKY_Places_Left(ground->sky.schedule, inquiry->search.first, inquiry->search.row, inquiry->last_rows);
    SKY_Places_Spares(ground->sky.schedule, inquiry->search.first, inquiry->search.row, inquiry->is_spare, ground->placed,
                      ground->cells);
    for (uint32_t number = 0; number < satellites; ++number)
    {
        const SKY_Addr_t satellite = SKY_GroundWays_AddrOf(ground, number);

        if (inquiry->last_rows[number] != SKY_SCHEDULE_NONE || inquiry->is_spare[number])
        {
            ++inquiry->about;
            if (!SKY_Ground_IsLost(ground, satellite))
            {
                (void)SKY_GroundInquiryAsk_Add(ground, satellite);
            }
        }
    }
    SKY_ASSERT(inquiry->count <= inquiry->about);
    SKY_GroundInquiryAsk_All(ground, SKY_OP_STATS, 0);
}

void SKY_GroundLate_Begin(SKY_Ground_t *ground)
{
    SKY_ASSERT(ground->inquiry.kind == SKY_GROUND_WAIT_LATE);
    SKY_ASSERT(ground->inquiry.running == 0u);
    SKY_Handovers_Begin(&ground->handovers, &ground->inquiry.search, ground->sky.changes, SKY_GroundWays_Row(ground),
                        ground->sky.schedule->count);
    BeginPass(ground);
}

/* Take in the word of a satellite. @return false if it has said nothing of its handover */
static bool TakeWord(SKY_Ground_t *ground, uint32_t index)
{
    const SKY_GroundInquiry_t *inquiry = &ground->inquiry;
    const uint8_t             *stats   = SKY_GroundInquiryAsk_Stats(&inquiry->questions[index]);
    const uint32_t             number  = SKY_GroundWays_NumberOf(ground, inquiry->asks[index].satellite);

    SKY_ASSERT(index < inquiry->count);
    SKY_ASSERT(ground->late_count <= index);
    if (stats == NULL)
    {
        return false;
    }
    const SKY_HandoverWord_t word = {SKY_GroundInquiryAsk_Counter(stats, SKY_STATS_KVC_ROW),
                                     SKY_GroundInquiryAsk_Counter(stats, SKY_STATS_KVC_ROWS),
                                     SKY_GroundInquiryAsk_Counter(stats, SKY_STATS_KVC_HANDOVER_LEFT),
                                     SKY_GroundInquiryAsk_Counter(stats, SKY_STATS_KVC_USED_BYTES)};

    if (SKY_Handovers_HasLeft(&inquiry->search, &word, inquiry->last_rows[number] != SKY_SCHEDULE_NONE))
    {
        SKY_ASSERT(ground->late_count == 0u || SKY_GroundWays_NumberOf(ground, ground->late[ground->late_count - 1u]) < number);
        ground->late[ground->late_count] = inquiry->asks[index].satellite; /* in ascending order, as they were asked */
        ++ground->late_count;
        if (inquiry->is_spare[number] && SKY_Handovers_HasLeft(&inquiry->search, &word, false))
        {
            ground->spares[ground->spare_count] = inquiry->asks[index].satellite;
            ++ground->spare_count;
        }
    }
    return true;
}

bool SKY_GroundLate_End(SKY_Ground_t *ground)
{
    SKY_GroundInquiry_t     *inquiry  = &ground->inquiry;
    const SKY_GroundWatch_t *watch    = &ground->shell.watch;
    uint32_t                 answered = 0;

    ground->late_count  = 0;
    ground->late_first  = inquiry->search.first;
    ground->spare_count = 0;
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        answered += TakeWord(ground, i) ? 1u : 0u;
    }
    SKY_ASSERT(ground->late_count <= answered);
    SKY_ASSERT(ground->spare_count <= ground->late_count);
    if (SKY_Handovers_Asked(&ground->handovers, &inquiry->search, ground->now_us, inquiry->about, answered, ground->late_count))
    {
        BeginPass(ground);
        return false;
    }
    if (watch->Searched != NULL)
    {
        watch->Searched(watch->context);
    }
    return true;
}
