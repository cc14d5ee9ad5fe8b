/**
 * @file
 * Questions of a ground host to many satellites, one inquiry at a time, and the operations that wait for the result. The core
 * decides whom to ask and what the answers mean.
 *
 *     LOOK  after an answer that did not come: which satellites do not answer at all?   (sky_reach.h)
 *     BACK  are lost satellites back?
 *     LATE  which satellites have something left to hand over?                          (sky_handovers.h)
 */
#include <stdlib.h>
#include <string.h>

#include "twin_priv.h"

#define STATS_BYTES ((size_t)8 * SKY_STATS_KVC_COUNT)
#define WAIT_US     UINT64_C(120000000) /* inquiries end long before: each round waits for some seconds at most */

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static uint32_t about_most(const SKYT_Twin_t *twin)
{
    return twin->config.servers + 1u; /* one more for the satellite that an operation failed on */
}

bool SKYT_ReachQuestions_Init(SKYT_Ground_t *ground)
{
    const SKYT_Twin_t       *twin    = ground->twin;
    SKYT_ReachQuestions_t   *inquiry = &ground->inquiry;
    const uint32_t           looks   = 2u * about_most(twin) + SKY_HOST_OTHERS;
    const uint32_t           most    = looks > twin->node_count ? looks : twin->node_count;
    SKY_HostQuestionMemory_t memory;

    inquiry->asks      = calloc(most, sizeof(*inquiry->asks));
    inquiry->addrs     = calloc(most, sizeof(*inquiry->addrs));
    inquiry->others    = calloc(twin->node_count, sizeof(*inquiry->others));
    inquiry->questions = calloc(most, sizeof(*inquiry->questions));
    inquiry->stats     = calloc(twin->node_count, STATS_BYTES);
    inquiry->asked     = calloc(most, sizeof(*inquiry->asked));
    inquiry->answered  = calloc(twin->node_count, sizeof(*inquiry->answered));
    inquiry->is_mute   = calloc(twin->node_count, sizeof(*inquiry->is_mute));
    inquiry->last_rows = calloc(twin->node_count, sizeof(*inquiry->last_rows));
    inquiry->is_spare  = calloc(twin->node_count, sizeof(*inquiry->is_spare));
    inquiry->spare_us  = calloc(twin->node_count, sizeof(*inquiry->spare_us));
    memory.asked       = inquiry->asked;
    memory.count       = most < SKY_HOST_QUESTIONS_MAX ? most : SKY_HOST_QUESTIONS_MAX;
    return inquiry->asks != NULL && inquiry->addrs != NULL && inquiry->others != NULL && inquiry->questions != NULL &&
           inquiry->stats != NULL && inquiry->answered != NULL && inquiry->is_mute != NULL && inquiry->last_rows != NULL &&
           inquiry->is_spare != NULL && inquiry->spare_us != NULL && SKY_Host_LendQuestions(&ground->core, &memory);
}

void SKYT_ReachQuestions_Free(SKYT_Ground_t *ground)
{
    free(ground->inquiry.asks);
    free(ground->inquiry.addrs);
    free(ground->inquiry.others);
    free(ground->inquiry.questions);
    free(ground->inquiry.stats);
    free(ground->inquiry.asked);
    free(ground->inquiry.answered);
    free(ground->inquiry.is_mute);
    free(ground->inquiry.last_rows);
    free(ground->inquiry.is_spare);
    free(ground->inquiry.spare_us);
}

/* ---- questions ------------------------------------------------------------------------------------------------------- */

/* Ask the satellites of the inquiry. @param wait_us  for an answer; 0: as long as five sendings take */
static void ask_all(SKYT_Ground_t *ground, uint8_t op, uint64_t wait_us)
{
    SKYT_ReachQuestions_t *inquiry = &ground->inquiry;
    SKYT_Twin_t           *twin    = ground->twin;

    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        inquiry->addrs[i] = inquiry->asks[i].satellite;
    }
    if (wait_us == 0u)
    {
        wait_us = SKY_Host_PatienceUs(&ground->core, inquiry->addrs, inquiry->count);
    }
    inquiry->began_us = twin->now_us;
    inquiry->running  = inquiry->count;
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        const SKY_ReachAsk_t *ask      = &inquiry->asks[i];
        SKY_HostQuestion_t   *question = &inquiry->questions[i];

        (void)memset(question, 0, sizeof(*question));
        question->place.plane       = ask->satellite.plane;
        question->place.slot        = ask->satellite.slot;
        question->place.entry_plane = ask->entry.plane;
        question->place.entry_slot  = ask->entry.slot;
        question->place.endpoint    = SKYT_NodeOf(twin, ask->entry);
        question->apid              = SKY_APID_KVC;
        question->op                = op;
        question->deadline_ms       = (uint32_t)(wait_us / US_PER_MS + 1u);
        question->room_bytes        = op == SKY_OP_STATS ? (uint32_t)STATS_BYTES : 0u;
        question->room              = op == SKY_OP_STATS ? inquiry->stats + (size_t)i * STATS_BYTES : NULL;

        ground->inquiry.answered[SKYT_NodeOf(twin, ask->satellite)] = false;
        (void)SKY_Host_Ask(&ground->core, twin->now_us, question); /* the question is sound, and there are places */
    }
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfGround(twin, ground->number - 1u), twin->now_us);
}

/* Find whom to ask. @return false if nobody is in sight */
static bool add_ask(SKYT_Ground_t *ground, SKY_Addr_t satellite)
{
    SKYT_ReachQuestions_t *inquiry = &ground->inquiry;
    const SKY_HostPlace_t  place   = SKYT_Reach_Place(ground, satellite);
    const SKY_Addr_t       entry   = {place.entry_plane, place.entry_slot};

    if (place.plane == 0u)
    {
        return false;
    }
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        if (SKY_Addr_Equal(inquiry->asks[i].satellite, satellite))
        {
            return true;
        }
    }
    inquiry->asks[inquiry->count].satellite = satellite;
    inquiry->asks[inquiry->count].entry     = entry;
    inquiry->asks[inquiry->count].answered  = false;
    ++inquiry->count;
    return true;
}

/* Add others that may be asked, the best first. */
static uint32_t find_others(SKYT_Ground_t *ground)
{
    SKYT_Twin_t    *twin   = ground->twin;
    const uint32_t  near   = 2u * about_most(twin) + SKY_HOST_OTHERS + ground->reach.lost_count;
    const bool      seen   = twin->config.uplink == SKYT_UPLINK_ENTRIES;
    uint32_t        count  = near < twin->node_count ? near : twin->node_count;
    SKY_ReachAsk_t *others = ground->inquiry.others;

    if (seen)
    {
        count = twin->entry_count < count ? twin->entry_count : count;
    }
    else
    {
        SKY_StandIns_Nearest(&twin->torus, SKY_Schedule_Centre(&twin->schedule, twin->row), count, ground->room);
    }
    for (uint32_t i = 0; i < count; ++i)
    {
        const SKY_Addr_t near_one = {(uint16_t)ground->room[i].plane, (uint16_t)ground->room[i].slot};

        others[i].satellite = seen ? SKYT_AddrOf(twin, twin->entries[i]) : near_one;
        others[i].entry     = others[i].satellite;
        others[i].answered  = false;
    }
    return count;
}

/* ---- a look ---------------------------------------------------------------------------------------------------------- */

/* Begin a look. @return false if nobody is in sight */
static bool begin_round(SKYT_Ground_t *ground)
{
    SKYT_Twin_t           *twin    = ground->twin;
    SKYT_ReachQuestions_t *inquiry = &ground->inquiry;

    inquiry->count = 0;
    SKYT_Reach_Servers(ground, SKY_Schedule_RowAt(&twin->schedule, twin->now_us), ground->placed);
    for (uint32_t server = 0; server < twin->config.servers; ++server)
    {
        if (!add_ask(ground, ground->placed[server]))
        {
            return false;
        }
    }
    if (inquiry->failed.plane != 0u && !SKYT_Reach_IsLost(ground, inquiry->failed))
    {
        (void)add_ask(ground, inquiry->failed);
    }
    ++inquiry->round;
    inquiry->about = inquiry->count;
    inquiry->count = SKY_Reach_Around(&ground->reach, inquiry->asks, inquiry->about, inquiry->others, find_others(ground));
    ask_all(ground, SKY_OP_PING, 0);
    return true;
}

/* End a round of a look. @return false if another round is under way */
static bool end_round(SKYT_Ground_t *ground)
{
    SKYT_ReachQuestions_t *inquiry = &ground->inquiry;
    SKYT_Twin_t           *twin    = ground->twin;
    const uint32_t         losses  = ground->reach.losses;

    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        const SKY_HostQuestion_t *question = &inquiry->questions[i];

        inquiry->asks[i].answered = question->status == SKY_STATUS_DONE && question->answer.status == SKY_STATUS_OK &&
                                    (twin->broken != SKYT_BREAK_RASH || i % 2u == 0u);
    }
    const SKY_ReachFound_t found =
        SKY_Reach_Found(&ground->reach, twin->now_us, inquiry->round, inquiry->asks, inquiry->about, inquiry->count);

    if (found == SKY_REACH_NOBODY || ground->reach.losses != losses)
    {
        SKYT_Truth_Lost(twin, ground);
    }
    return found != SKY_REACH_AGAIN || !begin_round(ground);
}

/* ---- are they back? -------------------------------------------------------------------------------------------------- */

/* Begin to ask lost satellites whether they are back. @return false if none is to be asked now */
static bool begin_back(SKYT_Ground_t *ground, bool doubted)
{
    SKYT_ReachQuestions_t *inquiry  = &ground->inquiry;
    SKYT_Twin_t           *twin     = ground->twin;
    const uint32_t         count    = SKY_Reach_AskLost(&ground->reach, twin->now_us, doubted, inquiry->addrs);
    const uint64_t         hurry_us = SKY_Host_HurryUs(&ground->core, inquiry->addrs, count);

    inquiry->count = 0;
    for (uint32_t i = 0; i < count; ++i)
    {
        (void)add_ask(ground, inquiry->addrs[i]);
        if (twin->config.uplink == SKYT_UPLINK_ENTRIES && inquiry->count > 0u)
        {
            for (uint32_t entry = 0; entry < twin->entry_count; ++entry) /* satellites that would be ways in are asked directly */
            {
                if (SKYT_NodeOf(twin, inquiry->asks[inquiry->count - 1u].satellite) == twin->entries[entry])
                {
                    inquiry->asks[inquiry->count - 1u].entry = inquiry->asks[inquiry->count - 1u].satellite;
                }
            }
        }
        else if (twin->config.uplink == SKYT_UPLINK_CENTRE &&
                 SKY_Addr_Equal(inquiry->asks[inquiry->count - 1u].satellite, SKY_Schedule_Centre(&twin->schedule, twin->row)))
        {
            inquiry->asks[inquiry->count - 1u].entry = inquiry->asks[inquiry->count - 1u].satellite;
        }
    }
    if (inquiry->count == 0u)
    {
        return false;
    }
    ask_all(ground, SKY_OP_PING, hurry_us > SKY_HOST_PROBE_US ? hurry_us : SKY_HOST_PROBE_US);
    return true;
}

static void end_back(SKYT_Ground_t *ground)
{
    for (uint32_t i = 0; i < ground->inquiry.count; ++i)
    {
        const SKY_HostQuestion_t *question = &ground->inquiry.questions[i];

        if (question->status == SKY_STATUS_DONE && question->answer.status == SKY_STATUS_OK)
        {
            SKY_Reach_Heard(&ground->reach, ground->inquiry.asks[i].satellite);
        }
    }
}

/* ---- who is late ----------------------------------------------------------------------------------------------------- */

static void begin_pass(SKYT_Ground_t *ground)
{
    SKYT_Twin_t           *twin    = ground->twin;
    SKYT_ReachQuestions_t *inquiry = &ground->inquiry;

    inquiry->count = 0;
    inquiry->about = 0;
    SKY_Places_Left(&twin->schedule, inquiry->search.first, inquiry->search.row, inquiry->last_rows);
    SKY_Places_Spares(&twin->schedule, inquiry->search.first, inquiry->search.row, inquiry->is_spare, ground->placed,
                      ground->room);
    for (uint32_t node = 0; node < twin->node_count; ++node)
    {
        const SKY_Addr_t satellite = SKYT_AddrOf(twin, node);

        if (inquiry->last_rows[node] != SKY_SCHEDULE_NONE || inquiry->is_spare[node])
        {
            ++inquiry->about;
            if (!SKYT_Reach_IsLost(ground, satellite))
            {
                (void)add_ask(ground, satellite);
            }
        }
    }
    ask_all(ground, SKY_OP_STATS, 0);
}

static uint64_t counter(const uint8_t *stats, uint32_t number)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < 8u; ++i)
    {
        value = value << 8 | stats[8u * number + i];
    }
    return value;
}

/* End a pass of the search for late satellites. @return false if another pass is under way */
static bool end_pass(SKYT_Ground_t *ground)
{
    SKYT_ReachQuestions_t *inquiry  = &ground->inquiry;
    uint32_t               answered = 0;

    for (uint32_t node = 0; node < ground->twin->node_count; ++node)
    {
        const bool is_spare = inquiry->is_spare[node];

        inquiry->is_mute[node] =
            is_spare || inquiry->last_rows[node] != SKY_SCHEDULE_NONE; /* mute unless it was asked, and answered */
        inquiry->spare_us[node] = is_spare ? inquiry->began_us : 0;
    }
    ground->late_count  = 0;
    ground->late_first  = inquiry->search.first;
    ground->spare_count = 0;
    for (uint32_t i = 0; i < inquiry->count; ++i)
    {
        const SKY_HostQuestion_t *question = &inquiry->questions[i];
        const uint8_t            *stats    = question->answer.payload;
        const uint32_t            node     = SKYT_NodeOf(ground->twin, inquiry->asks[i].satellite);

        inquiry->is_mute[node] = !inquiry->answered[node];
        if (question->status != SKY_STATUS_DONE || question->answer.status != SKY_STATUS_OK || stats == NULL ||
            question->answer.length != STATS_BYTES)
        {
            continue;
        }
        const SKY_HandoverWord_t word = {counter(stats, SKY_STATS_KVC_ROW), counter(stats, SKY_STATS_KVC_ROWS),
                                         counter(stats, SKY_STATS_KVC_HANDOVER_LEFT), counter(stats, SKY_STATS_KVC_USED_BYTES)};

        ++answered;
        if (SKY_Handovers_HasLeft(&inquiry->search, &word, inquiry->last_rows[node] != SKY_SCHEDULE_NONE))
        {
            ground->late[ground->late_count] = inquiry->asks[i].satellite; /* in ascending order, as they were asked */
            ++ground->late_count;
            if (inquiry->is_spare[node] && SKY_Handovers_HasLeft(&inquiry->search, &word, false))
            {
                ground->spares[ground->spare_count] = inquiry->asks[i].satellite;
                ++ground->spare_count;
            }
        }
    }
    if (!SKY_Handovers_Asked(&ground->handovers, &inquiry->search, ground->twin->now_us, inquiry->about, answered,
                             ground->late_count))
    {
        return true;
    }
    begin_pass(ground);
    return false;
}

/* ---- inquiries ------------------------------------------------------------------------------------------------------- */

/* Return true if the answer that an operation waits for is known already. */
static bool is_known(const SKYT_Ground_t *ground, const SKYT_Active_t *active)
{
    return (active->waits == SKYT_WAIT_LATE && SKYT_Reach_Late(ground).is_known) ||
           (active->waits == SKYT_WAIT_LOOK && active->failed_on.plane != 0u && SKYT_Reach_IsLost(ground, active->failed_on));
}

static void resume(SKYT_Ground_t *ground, SKYT_Active_t *active)
{
    const SKYT_Wait_t waited = active->waits;

    active->waits = SKYT_WAIT_NOT;
    --ground->waiting;
    SKYT_Op_Resume(ground->twin, active, waited);
}

/* Begin the inquiry that an operation waits for. @return false if there is nothing to ask */
static bool begin_inquiry(SKYT_Ground_t *ground, const SKYT_Active_t *active)
{
    const SKYT_Twin_t     *twin    = ground->twin;
    SKYT_ReachQuestions_t *inquiry = &ground->inquiry;

    inquiry->kind    = active->waits;
    inquiry->round   = 0;
    inquiry->running = 0;
    inquiry->failed  = active->failed_on;
    ++inquiry->number;
    switch (inquiry->kind)
    {
        case SKYT_WAIT_LOOK:
            return begin_round(ground);
        case SKYT_WAIT_BACK:
            return begin_back(ground, active->doubts);
        default:
            SKY_Handovers_Begin(&ground->handovers, &inquiry->search, 1, SKY_Schedule_RowAt(&twin->schedule, twin->now_us),
                                twin->schedule.count);
            begin_pass(ground);
            return true;
    }
}

/* End an inquiry of which all have answered, or whose time is over. @return true if it is over */
static bool end_step(SKYT_Ground_t *ground)
{
    switch (ground->inquiry.kind)
    {
        case SKYT_WAIT_LOOK:
            return end_round(ground);
        case SKYT_WAIT_BACK:
            end_back(ground);
            return true;
        default:
            return end_pass(ground);
    }
}

/* Resume the operations that waited for the inquiry before it began. */
static void end_inquiry(SKYT_Ground_t *ground)
{
    SKYT_Twin_t      *twin = ground->twin;
    const SKYT_Wait_t kind = ground->inquiry.kind;

    ground->inquiry.kind = SKYT_WAIT_NOT;
    for (uint32_t i = 0; ground->waiting > 0u && i < twin->config.active_max; ++i)
    {
        SKYT_Active_t *active = &twin->active[i];

        if (active->is_active && active->host == ground->number && active->waits == kind &&
            active->waits_for <= ground->inquiry.number)
        {
            resume(ground, active);
        }
    }
}

static SKYT_Active_t *first_waiting(const SKYT_Ground_t *ground)
{
    for (uint32_t i = 0; ground->waiting > 0u && i < ground->twin->config.active_max; ++i)
    {
        SKYT_Active_t *active = &ground->twin->active[i];

        if (active->is_active && active->host == ground->number && active->waits != SKYT_WAIT_NOT)
        {
            return active;
        }
    }
    return NULL;
}

bool SKYT_ReachQuestions_Run(SKYT_Ground_t *ground)
{
    SKYT_ReachQuestions_t *inquiry = &ground->inquiry;
    bool                   acted   = false;
    SKYT_Active_t         *active;

    while (inquiry->running == 0u && ground->twin->stopped == SKYT_STOP_NOT)
    {
        if (inquiry->kind != SKYT_WAIT_NOT)
        {
            if (end_step(ground))
            {
                end_inquiry(ground);
            }
        }
        else if ((active = first_waiting(ground)) == NULL)
        {
            break;
        }
        else if (is_known(ground, active))
        {
            resume(ground, active);
        }
        else if (!begin_inquiry(ground, active))
        {
            end_inquiry(ground);
        }
        acted = true;
    }
    return acted;
}

void SKYT_ReachQuestions_Answered(SKYT_Ground_t *ground)
{
    --ground->inquiry.running;
}

bool *SKYT_ReachQuestions_Hears(SKYT_Ground_t *ground, uint32_t node, const uint8_t *data, uint32_t len)
{
    SKY_Packet_t pkt;
    bool        *answered = NULL;

    if (ground->inquiry.running == 0u || SKY_Packet_Decode(data, len, &pkt) != SKY_STATUS_OK || pkt.status != SKY_STATUS_OK ||
        !SKY_Host_IsQuestion(pkt.request_id))
    {
        return NULL;
    }
    for (uint32_t i = 0; i < ground->inquiry.count; ++i)
    {
        const SKY_HostQuestion_t *question = &ground->inquiry.questions[i];

        if (question->status == SKY_STATUS_RUNNING && question->request_id == pkt.request_id && question->place.endpoint == node)
        {
            answered = &ground->inquiry.answered[SKYT_NodeOf(ground->twin, ground->inquiry.asks[i].satellite)];
        }
    }
    return answered;
}

/* ---- operations ------------------------------------------------------------------------------------------------------ */

void SKYT_ReachQuestions_Wait(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Wait_t what)
{
    SKYT_Ground_t *ground = &twin->grounds[active->host - 1u];

    active->waits     = what;
    active->waits_for = ground->inquiry.number + 1u;
    ++ground->waiting;
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfActive(twin, (uint32_t)(active - twin->active)), twin->now_us + WAIT_US);
    SKYT_Queue_Set(&twin->queue, SKYT_EventOfGround(twin, active->host - 1u), twin->now_us);
}
