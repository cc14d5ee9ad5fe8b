/**
 * @file
 * Questions: memory and lists, timers, and who waits for whom. What is sent and what comes is in sky_host_ask.c.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

#define US_PER_MS UINT64_C(1000)
/* So many sendings have one timer before it doubles. Silence is a lost packet more often than a full queue, because questions are small. Five
 * fit into the patience with which a satellite is asked. At 10 % loss all of them are lost once in 4,000 times, and three once in 150. */
#define ALIKE_SENDINGS     3u
#define PATIENCE_DOUBLINGS 3u /* timers, each twice as long as the one before: five sendings of a question */
#define HURRY_DOUBLINGS    2u /* three sendings */
#define VARIATIONS         4u /* times the variation above the mean: RFC 6298 */
#define REQUEST_BYTES_LEFT (SKY_LIMIT_PACKET_BYTES - SKY_REQUEST_OVERHEAD)

/* ---- timers ---------------------------------------------------------------------------------------------------------- */

/* Return a timer that has doubled so many times. */
static uint64_t DoubledUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer, uint32_t doublings)
{
    const SKY_HostPatience_t *patience   = &host->questions.patience;
    uint64_t                  timeout_us = patience->first_us;

    if (peer != NULL && peer->peer.srtt_us != 0u)
    {
        const uint64_t round_us = (uint64_t)peer->peer.srtt_us + (uint64_t)VARIATIONS * peer->peer.rttvar_us;

        timeout_us = peer->peer.is_guess && round_us < timeout_us ? timeout_us : round_us;
    }
    timeout_us = timeout_us > patience->min_us ? timeout_us : patience->min_us;
    for (uint32_t i = 0; i < doublings && timeout_us < patience->max_us; ++i)
    {
        timeout_us *= 2u;
    }
    SKY_ASSERT(timeout_us > 0u);
    SKY_ASSERT(patience->max_us > 0u);
    return timeout_us < patience->max_us ? timeout_us : patience->max_us;
}

uint64_t SKY_HostQuestions_TimeoutUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer, uint32_t sendings)
{
    return DoubledUs(host, peer, sendings / ALIKE_SENDINGS);
}

/* Return the longest time that one of some satellites takes for so many timers, each twice as long as the one before. */
static uint64_t LongestUs(const SKY_Host_t *host, const SKY_Addr_t *satellites, uint32_t count, uint32_t timers)
{
    uint64_t longest_us = 0;
    SKY_ASSERT(timers > 0u);
    SKY_ASSERT(count == 0u || satellites != NULL);

    for (uint32_t i = 0; i < count; ++i)
    {
        const SKY_HostPeer_t *peer   = SKY_Host_PeerOf(host, satellites[i]);
        uint64_t              sum_us = 0;

        for (uint32_t doublings = 0; doublings < timers; ++doublings)
        {
            sum_us += DoubledUs(host, peer, doublings);
        }
        longest_us = sum_us > longest_us ? sum_us : longest_us;
    }
    return longest_us;
}

void SKY_Host_SetPatience(SKY_Host_t *host, const SKY_HostPatience_t *patience)
{
    SKY_HostPatience_t *ours = &host->questions.patience;

    ours->first_us   = patience->first_us != 0u ? patience->first_us : ours->first_us;
    ours->min_us     = patience->min_us != 0u ? patience->min_us : ours->min_us;
    ours->max_us     = patience->max_us != 0u ? patience->max_us : ours->max_us;
    ours->silence_us = patience->silence_us != 0u ? patience->silence_us : ours->silence_us;
}

uint64_t SKY_Host_PatienceUs(const SKY_Host_t *host, const SKY_Addr_t *satellites, uint32_t count)
{
    const uint64_t longest_us = LongestUs(host, satellites, count, PATIENCE_DOUBLINGS);

    return longest_us > host->questions.patience.silence_us ? longest_us : host->questions.patience.silence_us;
}

uint64_t SKY_Host_HurryUs(const SKY_Host_t *host, const SKY_Addr_t *satellites, uint32_t count)
{
    return LongestUs(host, satellites, count, HURRY_DOUBLINGS);
}

void SKY_Host_Expect(SKY_Host_t *host, SKY_Addr_t satellite, uint32_t rtt_us)
{
    SKY_HostPeer_t *peer = SKY_HostPieces_KnowPeer(host, satellite);

    if (peer != NULL && peer->peer.srtt_us == 0u)
    {
        SKY_Peer_OnRtt(&peer->peer, rtt_us);
    }
}

/* ---- beginnings and ends --------------------------------------------------------------------------------------------- */

bool SKY_Host_LendQuestions(SKY_Host_t *host, const SKY_HostQuestionMemory_t *memory)
{
    SKY_ASSERT(host->questions.on_way <= host->questions.memory.count);
    if (SKY_Host_Asking(host) > 0u || memory->asked == NULL || memory->count == 0u || memory->count > SKY_HOST_QUESTIONS_MAX)
    {
        return false;
    }
    for (uint32_t i = 0; i < memory->count; ++i)
    {
        memory->asked[i].question = NULL;
        memory->asked[i].next     = i + 1u < memory->count ? i + 1u : SKY_HOST_NONE;
    }
    host->questions.memory = *memory;
    host->questions.free   = 0;
    return true;
}

uint32_t SKY_Host_Asking(const SKY_Host_t *host)
{
    SKY_ASSERT(host->questions.on_way <= host->questions.memory.count);
    SKY_ASSERT((host->questions.waiting == 0u) == (host->questions.waiting_first == NULL));
    return host->questions.waiting + host->questions.on_way;
}

static bool IsSound(const SKY_HostQuestion_t *question)
{
    return question->place.plane != 0u && question->place.slot != 0u && question->deadline_ms != 0u &&
           question->payload_bytes <= REQUEST_BYTES_LEFT && (question->payload_bytes == 0u || question->payload != NULL) &&
           (question->room_bytes == 0u || question->room != NULL);
}

void SKY_HostQuestions_Wait(SKY_HostQuestions_t *all, SKY_HostQuestion_t *question)
{
    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(question->next == NULL);
    if (all->waiting == 0u)
    {
        all->waiting_first = question;
        all->waiting_us    = question->deadline_us;
    }
    else
    {
        all->waiting_last->next = question;
        all->waiting_us         = question->deadline_us < all->waiting_us ? question->deadline_us : all->waiting_us;
    }
    all->waiting_last = question;
    ++all->waiting;
}

SKY_HostBegun_t SKY_Host_Ask(SKY_Host_t *host, uint64_t now_us, SKY_HostQuestion_t *question)
{
    SKY_HostQuestions_t *all = &host->questions;
    SKY_ASSERT(all->on_way <= all->memory.count);

    host->now_us     = now_us;
    question->status = SKY_STATUS_RUNNING;
    question->sent   = 0;
    question->rtt_us = 0;
    question->next   = NULL;
    (void)memset(&question->answer, 0, sizeof(question->answer));
    if (!IsSound(question))
    {
        return SKY_HOST_WRONG;
    }
    if (all->memory.count == 0u)
    {
        return SKY_HOST_FULL;
    }
    question->request_id  = 0;
    question->deadline_us = now_us + US_PER_MS * question->deadline_ms;
    question->due_us      = now_us;
    question->first_us    = 0;
    question->last_us     = 0;
    question->tries       = 0;
    question->numbers     = host->numbers;
    SKY_HostQuestions_Wait(all, question);
    return SKY_HOST_BEGUN;
}

void SKY_HostQuestions_End(SKY_HostQuestions_t *all, SKY_HostQuestion_t *question, SKY_Status_t status)
{
    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    question->status = status;
    question->next   = NULL;
    if (all->ended_first == NULL)
    {
        all->ended_first = question;
    }
    else
    {
        all->ended_last->next = question;
    }
    all->ended_last = question;
}

void SKY_HostQuestions_EndAsked(SKY_HostQuestions_t *all, uint32_t place, SKY_Status_t status)
{
    SKY_HostAsked_t *asked = &all->memory.asked[place];

    SKY_ASSERT(place < all->memory.count);
    SKY_ASSERT(all->on_way > 0u);
    SKY_HostQuestions_End(all, asked->question, status);
    asked->question = NULL;
    asked->next     = all->free;
    all->free       = place;
    --all->on_way;
}

SKY_HostQuestion_t *SKY_HostQuestions_TakeWaiting(SKY_HostQuestions_t *all)
{
    SKY_HostQuestion_t *question = all->waiting_first;

    SKY_ASSERT(all->waiting > 0u);
    all->waiting_first = question->next;
    question->next     = NULL;
    --all->waiting;
    SKY_ASSERT((all->waiting == 0u) == (all->waiting_first == NULL));
    return question;
}

/* Take a question out of those that wait. */
static void TakeOut(SKY_HostQuestions_t *all, const SKY_HostQuestion_t *question)
{
    const uint32_t waiting = all->waiting;

    SKY_ASSERT(waiting > 0u);
    for (uint32_t i = 0; i < waiting; ++i) /* once around, so that the others keep their order */
    {
        SKY_HostQuestion_t *one = SKY_HostQuestions_TakeWaiting(all);

        if (one != question)
        {
            SKY_HostQuestions_Wait(all, one);
        }
    }
    SKY_ASSERT(all->waiting + 1u == waiting);
}

bool SKY_Host_Leave(SKY_Host_t *host, SKY_HostQuestion_t *question, SKY_HostQuestion_t *heir)
{
    SKY_HostQuestions_t *all       = &host->questions;
    const uint32_t       place     = (uint32_t)(question->request_id / SKY_REQUEST_IDS) & (SKY_HOST_QUESTIONS_MAX - 1u);
    const bool           is_on_way = all->memory.asked[place].question == question;

    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(place < all->memory.count); /* 0 for one that waits */
    SKY_ASSERT(heir != question);
    if (is_on_way && heir != NULL && question->sent > 0u)
    {
        *heir                             = *question;
        all->memory.asked[place].question = heir;
        question->status                  = SKY_STATUS_EXPIRED;
        return true;
    }
    if (is_on_way)
    {
        all->memory.asked[place].question = NULL;
        all->memory.asked[place].next     = all->free;
        all->free                         = place;
        --all->on_way;
    }
    else
    {
        TakeOut(all, question);
    }
    question->status = SKY_STATUS_EXPIRED;
    return false;
}

void SKY_HostQuestions_StopAll(SKY_Host_t *host, SKY_Status_t status)
{
    SKY_HostQuestions_t *all = &host->questions;

    for (uint32_t place = 0; place < all->memory.count && all->on_way > 0u; ++place)
    {
        if (all->memory.asked[place].question != NULL)
        {
            SKY_HostQuestions_EndAsked(all, place, status);
        }
    }
    while (all->waiting_first != NULL)
    {
        SKY_HostQuestions_End(all, SKY_HostQuestions_TakeWaiting(all), status);
    }
    SKY_ASSERT(all->on_way == 0u);
    SKY_ASSERT(all->waiting == 0u);
}

SKY_HostQuestion_t *SKY_Host_NextAnswered(SKY_Host_t *host)
{
    SKY_HostQuestion_t *question = host->questions.ended_first;

    if (question != NULL)
    {
        SKY_ASSERT(question->status != SKY_STATUS_RUNNING);
        host->questions.ended_first = question->next;
        question->next              = NULL;
    }
    return question;
}

/* ---- what waits for a satellite ------------------------------------------------------------------------------------- */

void SKY_Host_Withdraw(SKY_Host_t *host, const void *owner, SKY_Status_t status)
{
    SKY_HostQuestions_t *all     = &host->questions;
    const uint32_t       waiting = all->waiting;
    SKY_ASSERT(owner != NULL);
    SKY_ASSERT(status != SKY_STATUS_RUNNING);

    for (uint32_t place = 0; place < all->memory.count; ++place)
    {
        const SKY_HostQuestion_t *question = all->memory.asked[place].question;

        if (question != NULL && question->owner == owner)
        {
            SKY_HostQuestions_EndAsked(all, place, status);
        }
    }
    for (uint32_t i = 0; i < waiting; ++i) /* once around: those of others stay, in their order */
    {
        SKY_HostQuestion_t *question = SKY_HostQuestions_TakeWaiting(all);

        if (question->owner == owner)
        {
            SKY_HostQuestions_End(all, question, status);
        }
        else
        {
            SKY_HostQuestions_Wait(all, question);
        }
    }
}

/* Return true if the way of a question leads to, or through, @p satellite. */
static bool IsBehind(const SKY_HostQuestion_t *question, SKY_Addr_t satellite)
{
    const SKY_HostPlace_t *place = &question->place;
    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(question->place.plane != 0u);

    return (place->plane == satellite.plane && place->slot == satellite.slot) ||
           (place->entry_plane == satellite.plane && place->entry_slot == satellite.slot);
}

void SKY_HostQuestions_Wake(SKY_Host_t *host, SKY_Addr_t satellite)
{
    SKY_ASSERT(host->cfg.security.is_on);
    SKY_ASSERT(satellite.plane != 0u);
    for (uint32_t place = 0; place < host->questions.memory.count; ++place)
    {
        SKY_HostQuestion_t *question = host->questions.memory.asked[place].question;

        if (question != NULL && IsBehind(question, satellite))
        {
            question->due_us       = host->now_us;
            host->questions.due_us = host->now_us;
        }
    }
}

void SKY_HostQuestions_Deny(SKY_Host_t *host, SKY_Addr_t satellite, SKY_Status_t status)
{
    SKY_ASSERT(status != SKY_STATUS_OK);
    SKY_ASSERT(status < SKY_STATUS_COUNT || status == SKY_STATUS_NO_RANDOM);
    for (uint32_t place = 0; place < host->questions.memory.count; ++place)
    {
        SKY_HostQuestion_t *question = host->questions.memory.asked[place].question;

        if (question != NULL && IsBehind(question, satellite))
        {
            question->answer.status = status;
            question->answer.src    = satellite;
            question->answer.op     = question->op;
            question->answer.apid   = question->apid;
            SKY_HostQuestions_EndAsked(&host->questions, place, SKY_STATUS_DONE);
        }
    }
}
