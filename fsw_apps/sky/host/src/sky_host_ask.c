/**
 * @file
 * Questions: one request each, sent again until it is answered or its time is over.
 *
 * Timers are not kept in order. `due_us` and `waiting_us` are never later than the first time at which something is to be done;
 * only then are all questions looked at, not with each packet.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_host_priv.h"

#define US_PER_MS          UINT64_C(1000)
#define PATIENCE_SENDINGS  3u
#define HURRY_SENDINGS     2u
#define VARIATIONS         4u /* times the variation above the mean: RFC 6298 */
#define PLACE_OF(id)       ((uint32_t)((id) / SKY_REQUEST_IDS) & (SKY_HOST_QUESTIONS_MAX - 1u))
#define REQUEST_BYTES_LEFT (SKY_LIMIT_PACKET_BYTES - SKY_REQUEST_OVERHEAD)

/* ---- timers ---------------------------------------------------------------------------------------------------------- */

/* Return how long to wait for the answer to a sending. @param peer  NULL: nothing is known of the satellite. @param tries
 * sendings before */
static uint64_t TimeoutUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer, uint32_t tries)
{
    const SKY_HostPatience_t *patience   = &host->questions.patience;
    uint64_t                  timeout_us = patience->first_us;

    if (peer != NULL && peer->peer.srtt_us != 0u)
    {
        timeout_us = (uint64_t)peer->peer.srtt_us + (uint64_t)VARIATIONS * peer->peer.rttvar_us;
    }
    timeout_us = timeout_us > patience->min_us ? timeout_us : patience->min_us;
    for (uint32_t i = 0; i < tries && timeout_us < patience->max_us; ++i)
    {
        timeout_us *= 2u;
    }
    SKY_ASSERT(timeout_us > 0u);
    SKY_ASSERT(patience->max_us > 0u);
    return timeout_us < patience->max_us ? timeout_us : patience->max_us;
}

/* Return the longest time that one of some satellites takes for so many sendings. */
static uint64_t LongestUs(const SKY_Host_t *host, const SKY_Addr_t *satellites, uint32_t count, uint32_t sendings)
{
    uint64_t longest_us = 0;

    for (uint32_t i = 0; i < count; ++i)
    {
        const SKY_HostPeer_t *peer   = SKY_HostPieces_FindPeer(host, satellites[i]);
        uint64_t              sum_us = 0;

        for (uint32_t tries = 0; tries < sendings; ++tries)
        {
            sum_us += TimeoutUs(host, peer, tries);
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
    const uint64_t longest_us = LongestUs(host, satellites, count, PATIENCE_SENDINGS);

    return longest_us > host->questions.patience.silence_us ? longest_us : host->questions.patience.silence_us;
}

uint64_t SKY_Host_HurryUs(const SKY_Host_t *host, const SKY_Addr_t *satellites, uint32_t count)
{
    return LongestUs(host, satellites, count, HURRY_SENDINGS);
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
    return host->questions.waiting + host->questions.on_way;
}

static bool IsSound(const SKY_HostQuestion_t *question)
{
    return question->place.plane != 0u && question->place.slot != 0u && question->deadline_ms != 0u &&
           question->payload_bytes <= REQUEST_BYTES_LEFT && (question->payload_bytes == 0u || question->payload != NULL) &&
           (question->room_bytes == 0u || question->room != NULL);
}

/* Put a question behind all others that wait. */
static void Wait(SKY_HostQuestions_t *all, SKY_HostQuestion_t *question)
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
    Wait(all, question);
    return SKY_HOST_BEGUN;
}

/* Free a question that is in no list and no place any more. */
static void End(SKY_HostQuestions_t *all, SKY_HostQuestion_t *question, SKY_Status_t status)
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

/* End a question that is on its way. */
static void EndAsked(SKY_HostQuestions_t *all, uint32_t place, SKY_Status_t status)
{
    SKY_HostAsked_t *asked = &all->memory.asked[place];

    SKY_ASSERT(place < all->memory.count);
    SKY_ASSERT(all->on_way > 0u);
    End(all, asked->question, status);
    asked->question = NULL;
    asked->next     = all->free;
    all->free       = place;
    --all->on_way;
}

/* Take out the question that has waited for the longest time. There is one. */
static SKY_HostQuestion_t *TakeWaiting(SKY_HostQuestions_t *all)
{
    SKY_HostQuestion_t *question = all->waiting_first;

    SKY_ASSERT(all->waiting > 0u);
    all->waiting_first = question->next;
    question->next     = NULL;
    --all->waiting;
    SKY_ASSERT((all->waiting == 0u) == (all->waiting_first == NULL));
    return question;
}

void SKY_HostAsk_StopAll(SKY_Host_t *host, SKY_Status_t status)
{
    SKY_HostQuestions_t *all = &host->questions;

    for (uint32_t place = 0; place < all->memory.count && all->on_way > 0u; ++place)
    {
        if (all->memory.asked[place].question != NULL)
        {
            EndAsked(all, place, status);
        }
    }
    while (all->waiting_first != NULL)
    {
        End(all, TakeWaiting(all), status);
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

/* ---- what goes ------------------------------------------------------------------------------------------------------- */

static void SendQuestion(SKY_Host_t *host, SKY_HostQuestion_t *question)
{
    const SKY_Addr_t addr    = {question->place.plane, question->place.slot};
    const SKY_Addr_t entry   = {question->place.entry_plane, question->place.entry_slot};
    const uint64_t   left_us = question->deadline_us - host->now_us;
    const uint64_t   wait_us = TimeoutUs(host, SKY_HostPieces_FindPeer(host, addr), question->tries);
    SKY_Packet_t     pkt;

    SKY_ASSERT(host->now_us < question->deadline_us);
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request  = true;
    pkt.apid        = question->apid;
    pkt.seq_flags   = SKY_SEQ_WHOLE;
    pkt.op          = question->op;
    pkt.flags       = question->flags;
    pkt.hop_limit   = SKY_LIMIT_HOP_LIMIT;
    pkt.credit      = question->credit;
    pkt.src         = host->self;
    pkt.dst         = addr;
    pkt.gateway     = entry;
    pkt.tenant      = question->tenant;
    pkt.epoch       = question->epoch;
    pkt.deadline_ms = (uint32_t)((left_us - 1u) / US_PER_MS + 1u); /* rounded up, because 0 would mean none */
    pkt.request_id  = question->request_id;
    pkt.chunk_id    = question->chunk_id;
    pkt.length      = question->payload_bytes;
    pkt.payload     = question->payload;
    (void)memcpy(pkt.key, question->key, SKY_KEY_BYTES);

    host->counters.repeats += question->sent > 0u ? 1u : 0u;
    question->first_us = question->sent > 0u ? question->first_us : host->now_us;
    question->last_us  = host->now_us;
    question->due_us   = wait_us < left_us ? host->now_us + wait_us : question->deadline_us;
    ++question->sent;
    ++question->tries;
    SKY_ASSERT(question->due_us > host->now_us); /* with an earlier time it would be sent without end */
    SKY_HostPieces_Send(host, question->place.endpoint, &pkt);
}

/* Let questions that are on their way act on time. */
static void ActOnTime(SKY_Host_t *host)
{
    uint64_t due_us = UINT64_MAX;

    for (uint32_t place = 0; place < host->questions.memory.count; ++place)
    {
        SKY_HostQuestion_t *question = host->questions.memory.asked[place].question;

        if (question == NULL)
        {
            continue;
        }
        if (host->now_us >= question->deadline_us)
        {
            EndAsked(&host->questions, place, SKY_STATUS_EXPIRED);
            continue;
        }
        if (host->now_us >= question->due_us)
        {
            SendQuestion(host, question);
        }
        due_us = question->due_us < due_us ? question->due_us : due_us;
    }
    host->questions.due_us = due_us;
}

/* End questions that have waited in vain. */
static void ExpireWaiting(SKY_Host_t *host)
{
    SKY_HostQuestions_t *all     = &host->questions;
    const uint32_t       waiting = all->waiting;

    all->waiting_us = UINT64_MAX;
    for (uint32_t i = 0; i < waiting; ++i) /* once around: a question that stays goes to the end */
    {
        SKY_HostQuestion_t *question = TakeWaiting(all);

        if (host->now_us >= question->deadline_us)
        {
            End(all, question, SKY_STATUS_EXPIRED);
            continue;
        }
        Wait(all, question);
    }
}

/* Send waiting questions, as long as there are places. */
static void BeginWaiting(SKY_Host_t *host)
{
    SKY_HostQuestions_t *all = &host->questions;

    while (all->waiting > 0u && all->on_way < all->memory.count)
    {
        SKY_HostQuestion_t *question = TakeWaiting(all);
        const uint32_t      place    = all->free;

        if (host->now_us >= question->deadline_us)
        {
            End(all, question, SKY_STATUS_EXPIRED);
            continue;
        }
        /* Make a request id. Bit 32 is 0, which it is not for transfers; the low bits keep apart questions that used one place in
         * turn. */
        ++all->number;
        question->request_id = (uint64_t)host->shell.Random(host->shell.context) << 33 | place * SKY_REQUEST_IDS | all->number;
        SKY_ASSERT(SKY_Host_IsQuestion(question->request_id));
        SKY_ASSERT(all->memory.asked[place].question == NULL);
        all->free                         = all->memory.asked[place].next;
        all->memory.asked[place].question = question;
        all->due_us                       = all->on_way > 0u ? all->due_us : UINT64_MAX;
        ++all->on_way;
        SendQuestion(host, question);
        all->due_us = question->due_us < all->due_us ? question->due_us : all->due_us;
    }
}

uint64_t SKY_HostAsk_Run(SKY_Host_t *host, bool timers)
{
    SKY_HostQuestions_t *all = &host->questions;

    if (timers && all->on_way > 0u && host->now_us >= all->due_us)
    {
        ActOnTime(host);
    }
    if (timers && all->waiting > 0u && host->now_us >= all->waiting_us)
    {
        ExpireWaiting(host);
    }
    BeginWaiting(host);
    const uint64_t due_us     = all->on_way > 0u ? all->due_us : UINT64_MAX;
    const uint64_t waiting_us = all->waiting > 0u ? all->waiting_us : UINT64_MAX;
    const uint64_t first_us   = due_us < waiting_us ? due_us : waiting_us;

    return first_us > host->now_us ? first_us : host->now_us; /* timers that are due may have to wait */
}

void SKY_HostAsk_OnNumber(SKY_Host_t *host)
{
    for (uint32_t place = 0; place < host->questions.memory.count; ++place)
    {
        SKY_HostQuestion_t *question = host->questions.memory.asked[place].question;

        if (question != NULL)
        {
            question->due_us = host->now_us;
            question->tries  = 0; /* nobody answers what was sent under the old number */
        }
    }
    host->questions.due_us = host->now_us;
}

/* ---- what comes ------------------------------------------------------------------------------------------------------ */

/* Return the question to which a request id belongs, or NULL if none is on its way. */
static SKY_HostQuestion_t *QuestionOf(const SKY_Host_t *host, uint64_t request_id)
{
    const uint32_t      place    = PLACE_OF(request_id);
    SKY_HostQuestion_t *question = place < host->questions.memory.count ? host->questions.memory.asked[place].question : NULL;

    return question != NULL && question->request_id == request_id ? question : NULL;
}

/* Only a satellite itself says what it holds or did. Any satellite on the way may say why a packet did not get there. */
static bool IsAnswer(const SKY_Host_t *host, const SKY_HostQuestion_t *question, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    const SKY_Addr_t asked     = {question->place.plane, question->place.slot};
    const bool       is_word   = pkt->status == SKY_STATUS_OK || pkt->status == SKY_STATUS_NOT_FOUND;
    const bool       is_theirs = pkt->apid == question->apid && SKY_Addr_Equal(pkt->src, asked);

    return endpoint == question->place.endpoint && !pkt->is_request && pkt->op == question->op &&
           SKY_Addr_Equal(pkt->dst, host->self) && (pkt->flags & SKY_FLAG_TLM) == 0u && (!is_word || is_theirs);
}

SKY_HostQuestion_t *SKY_HostAsk_Asked(const SKY_Host_t *host, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    SKY_HostQuestion_t *question = QuestionOf(host, pkt->request_id);

    return question != NULL && IsAnswer(host, question, endpoint, pkt) ? question : NULL;
}

bool SKY_HostAsk_IsNumberTaken(const SKY_Host_t *host, const SKY_HostQuestion_t *question, const SKY_Packet_t *pkt)
{
    const SKY_Addr_t entry = {question->place.entry_plane, question->place.entry_slot};

    /* The bus may refuse what RELAY carries. If it is refused under the next number as well, the number is not the reason. */
    return pkt->status == SKY_STATUS_REFUSED && pkt->op != SKY_OP_RELAY && !host->cfg.keeps_number &&
           SKY_Addr_Equal(pkt->src, entry) && question->numbers == host->numbers;
}

/* Of a question that was sent again one cannot tell which sending was answered (Karn); the first one gives the upper bound. */
static void Measure(SKY_Host_t *host, const SKY_HostQuestion_t *question)
{
    const SKY_Addr_t addr = {question->place.plane, question->place.slot};
    SKY_HostPeer_t  *peer = SKY_HostPieces_KnowPeer(host, addr);

    if (peer == NULL || (question->tries > 1u && peer->peer.srtt_us != 0u))
    {
        return;
    }
    const uint64_t rtt_us = host->now_us - (question->tries > 1u ? question->first_us : question->last_us);

    SKY_Peer_OnRtt(&peer->peer, rtt_us < UINT32_MAX ? (uint32_t)rtt_us : UINT32_MAX);
}

void SKY_HostAsk_OnAnswer(SKY_Host_t *host, SKY_HostQuestion_t *question, const SKY_Packet_t *pkt)
{
    if (pkt->status == SKY_STATUS_BUSY)
    {
        return; /* the question is sent again when its timer says so */
    }
    Measure(host, question);
    question->rtt_us         = host->now_us - question->last_us;
    question->answer         = *pkt;
    question->answer.payload = NULL;
    if (pkt->length > 0u && pkt->length <= question->room_bytes)
    {
        (void)memcpy(question->room, pkt->payload, pkt->length);
        question->answer.payload = question->room;
    }
    EndAsked(&host->questions, PLACE_OF(question->request_id), SKY_STATUS_DONE);
}

void SKY_HostAsk_Refuse(SKY_Host_t *host, uint64_t request_id, SKY_Status_t status)
{
    if (QuestionOf(host, request_id) != NULL) /* without a question it has been answered meanwhile */
    {
        EndAsked(&host->questions, PLACE_OF(request_id), status);
    }
}
