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

#define US_PER_MS    UINT64_C(1000)
#define PLACE_OF(id) ((uint32_t)((id) / SKY_REQUEST_IDS) & (SKY_HOST_QUESTIONS_MAX - 1u))

/* ---- what goes ------------------------------------------------------------------------------------------------------- */

/* Return true if the satellite of a question may be asked now. If not, the question has the time at which to try again. It may have
 * ended, because the satellite cannot be asked at all. */
static bool IsOpen(SKY_Host_t *host, SKY_HostQuestion_t *question, SKY_Addr_t addr, SKY_Addr_t entry)
{
    SKY_HostPeer_t *peer = host->cfg.security.is_on ? SKY_HostPieces_KnowPeer(host, addr) : NULL;

    if (!host->cfg.security.is_on || (peer != NULL && SKY_HostOpen_May(host, peer, entry, question->place.endpoint)))
    {
        return true;
    }
    const uint64_t due_us = SKY_HostOpen_DueUs(host, SKY_Host_PeerOf(host, addr), entry);

    question->due_us = due_us < question->deadline_us ? due_us : question->deadline_us;
    SKY_ASSERT(question->due_us > host->now_us);
    return false;
}

/* Note a question for telemetry, so that what comes of it is taken. */
static void NoteLease(SKY_Host_t *host, const SKY_HostQuestion_t *question, SKY_Addr_t addr)
{
    SKY_HostPeer_t *peer = SKY_HostPieces_KnowPeer(host, addr);

    SKY_ASSERT(question->op == SKY_OP_RELAY);
    if (peer != NULL && peer->lease_ids[0] != question->request_id)
    {
        peer->lease_endpoint = question->place.endpoint;
        peer->lease_ids[1]   = peer->lease_ids[0];
        peer->lease_ids[0]   = question->request_id;
    }
}

static void SendQuestion(SKY_Host_t *host, SKY_HostQuestion_t *question)
{
    const SKY_Addr_t addr    = {question->place.plane, question->place.slot};
    const SKY_Addr_t entry   = {question->place.entry_plane, question->place.entry_slot};
    const uint64_t   left_us = question->deadline_us - host->now_us;
    SKY_Packet_t     pkt;

    SKY_ASSERT(host->now_us < question->deadline_us);
    if (!IsOpen(host, question, addr, entry))
    {
        return;
    }
    const uint64_t wait_us = SKY_HostQuestions_TimeoutUs(host, SKY_Host_PeerOf(host, addr), question->tries);

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request    = true;
    pkt.apid          = question->apid;
    pkt.seq_flags     = SKY_SEQ_WHOLE;
    pkt.op            = question->op;
    pkt.flags         = question->flags;
    pkt.hop_limit     = SKY_LIMIT_HOP_LIMIT;
    pkt.credit        = question->credit;
    pkt.src           = host->self;
    pkt.dst           = addr;
    pkt.gateway       = entry;
    pkt.tenant        = question->tenant;
    pkt.epoch         = question->epoch;
    pkt.deadline_ms   = (uint32_t)((left_us - 1u) / US_PER_MS + 1u); /* rounded up, because 0 would mean none */
    pkt.request_id    = question->request_id;
    pkt.chunk_id      = question->chunk_id;
    pkt.block_version = question->block_version;
    pkt.content       = question->content;
    pkt.length        = question->payload_bytes;
    pkt.payload       = question->payload;
    (void)memcpy(pkt.key, question->key, SKY_KEY_BYTES);

    if (question->op == SKY_OP_RELAY && (question->flags & SKY_FLAG_TLM) != 0u)
    {
        NoteLease(host, question, addr);
    }
    host->counters.repeats += question->sent > 0u ? 1u : 0u;
    question->first_us = question->sent > 0u ? question->first_us : host->now_us;
    question->last_us  = host->now_us;
    question->due_us   = wait_us < left_us ? host->now_us + wait_us : question->deadline_us;
    ++question->sent;
    ++question->tries;
    SKY_ASSERT(question->due_us > host->now_us); /* with an earlier time it would be sent without end */
    SKY_HostOpen_Send(host, question->place.endpoint, &pkt);
}

/* Let questions that are on their way act on time. */
static void ActOnTime(SKY_Host_t *host)
{
    uint64_t due_us = UINT64_MAX;
    SKY_ASSERT(host->questions.on_way <= host->questions.memory.count);
    SKY_ASSERT(host->questions.on_way > 0u);

    for (uint32_t place = 0; place < host->questions.memory.count; ++place)
    {
        SKY_HostQuestion_t *question = host->questions.memory.asked[place].question;

        if (question == NULL)
        {
            continue;
        }
        if (host->now_us >= question->deadline_us)
        {
            SKY_HostQuestions_EndAsked(&host->questions, place, SKY_STATUS_EXPIRED);
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
    SKY_ASSERT(all->waiting > 0u);

    all->waiting_us = UINT64_MAX;
    for (uint32_t i = 0; i < waiting; ++i) /* once around: a question that stays goes to the end */
    {
        SKY_HostQuestion_t *question = SKY_HostQuestions_TakeWaiting(all);

        if (host->now_us >= question->deadline_us)
        {
            SKY_HostQuestions_End(all, question, SKY_STATUS_EXPIRED);
            continue;
        }
        SKY_HostQuestions_Wait(all, question);
    }
}

/* Send waiting questions, as long as there are places. */
static void BeginWaiting(SKY_Host_t *host)
{
    SKY_HostQuestions_t *all = &host->questions;

    while (all->waiting > 0u && all->on_way < all->memory.count)
    {
        SKY_HostQuestion_t *question = SKY_HostQuestions_TakeWaiting(all);
        const uint32_t      place    = all->free;

        if (host->now_us >= question->deadline_us)
        {
            SKY_HostQuestions_End(all, question, SKY_STATUS_EXPIRED);
            continue;
        }
        /* Make a request id. Bit 32 is 0, which it is not for transfers; the low bits keep apart questions that used one place in
         * turn. */
        ++all->number;
        question->request_id = (uint64_t)SKY_HostRandom_Number(host) << 33 | place * SKY_REQUEST_IDS | all->number;
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
    SKY_ASSERT(host->questions.on_way <= host->questions.memory.count);
    SKY_ASSERT((host->questions.waiting == 0u) == (host->questions.waiting_first == NULL));

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
    SKY_ASSERT(host->self.plane == 0u);
    SKY_ASSERT(host->self.slot != 0u);
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
    SKY_ASSERT(host->questions.memory.count <= SKY_HOST_QUESTIONS_MAX);

    return question != NULL && question->request_id == request_id ? question : NULL;
}

/* Only a satellite itself says what it holds or did. Any satellite on the way may say why a packet did not get there. */
static bool IsAnswer(const SKY_Host_t *host, const SKY_HostQuestion_t *question, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    const SKY_Addr_t asked     = {question->place.plane, question->place.slot};
    const bool       is_word   = pkt->status == SKY_STATUS_OK || pkt->status == SKY_STATUS_NOT_FOUND;
    const bool       is_theirs = pkt->apid == question->apid && SKY_Addr_Equal(pkt->src, asked);
    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(question->request_id == pkt->request_id);
    SKY_ASSERT((pkt->flags & SKY_FLAG_TLM) == 0u); /* SKY_Host_Receive takes telemetry before */

    return endpoint == question->place.endpoint && !pkt->is_request && pkt->op == question->op &&
           SKY_Addr_Equal(pkt->dst, host->self) && (!is_word || is_theirs);
}

SKY_HostQuestion_t *SKY_HostAsk_Asked(const SKY_Host_t *host, uint64_t endpoint, const SKY_Packet_t *pkt)
{
    SKY_HostQuestion_t *question = QuestionOf(host, pkt->request_id);

    return question != NULL && question->sent > 0u && IsAnswer(host, question, endpoint, pkt) ? question : NULL;
}

bool SKY_HostAsk_IsNumberTaken(const SKY_Host_t *host, const SKY_HostQuestion_t *question, const SKY_Packet_t *pkt)
{
    const SKY_Addr_t entry = {question->place.entry_plane, question->place.entry_slot};
    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(question->numbers <= host->numbers);

    /* The bus may refuse what RELAY carries. If it is refused under the next number as well, the number is not the reason. */
    return pkt->status == SKY_STATUS_REFUSED && pkt->op != SKY_OP_RELAY && !host->cfg.keeps_number &&
           SKY_Addr_Equal(pkt->src, entry) && question->numbers == host->numbers;
}

/*
 * Measure the round trip of an answer. Of a question that was sent again one cannot tell which sending was answered (Karn). The last one gives a
 * guess, because a lost packet is likelier than a long way. If the next question was sent again, too, the first sending gives the upper bound.
 * @param peer  the satellite, or NULL
 * @return time from the sending that counts
 */
static uint64_t Measure(SKY_Host_t *host, const SKY_HostQuestion_t *question, SKY_HostPeer_t *peer)
{
    const bool     again    = question->tries > 1u;
    const bool     is_known = peer == NULL || peer->peer.srtt_us != 0u;
    const bool     is_guess = peer != NULL && peer->peer.is_guess;
    const uint64_t since_us = host->now_us - (again && is_guess ? question->first_us : question->last_us);
    const uint32_t rtt_us   = since_us < UINT32_MAX ? (uint32_t)since_us : UINT32_MAX;
    SKY_ASSERT(question->sent > 0u);
    SKY_ASSERT(question->last_us <= host->now_us);

    if (again && !is_known)
    {
        SKY_Peer_OnGuess(&peer->peer, rtt_us);
    }
    else if (peer != NULL && (!again || is_guess))
    {
        SKY_Peer_OnRtt(&peer->peer, rtt_us);
    }
    return since_us;
}

void SKY_HostAsk_OnAnswer(SKY_Host_t *host, SKY_HostQuestion_t *question, const SKY_Packet_t *pkt)
{
    const SKY_Addr_t addr = {question->place.plane, question->place.slot};
    SKY_HostPeer_t  *peer = SKY_HostPieces_KnowPeer(host, addr);

    SKY_ASSERT(question->status == SKY_STATUS_RUNNING);
    SKY_ASSERT(question->request_id == pkt->request_id);
    if (peer != NULL && SKY_Addr_Equal(pkt->src, addr)) /* another one may say why it cannot be reached */
    {
        peer->doubt_us = 0;
    }
    if (pkt->status == SKY_STATUS_BUSY)
    {
        return; /* the question is sent again when its timer says so */
    }
    question->rtt_us         = Measure(host, question, peer);
    question->answer         = *pkt;
    question->answer.payload = NULL;
    if (pkt->length > 0u && pkt->length <= question->room_bytes)
    {
        (void)memcpy(question->room, pkt->payload, pkt->length);
        question->answer.payload = question->room;
    }
    SKY_HostQuestions_EndAsked(&host->questions, PLACE_OF(question->request_id), SKY_STATUS_DONE);
}

void SKY_HostAsk_Refuse(SKY_Host_t *host, uint64_t request_id, SKY_Status_t status)
{
    SKY_ASSERT(SKY_Host_IsQuestion(request_id));
    SKY_ASSERT(status != SKY_STATUS_RUNNING);
    if (QuestionOf(host, request_id) != NULL) /* without a question it has been answered meanwhile */
    {
        SKY_HostQuestions_EndAsked(&host->questions, PLACE_OF(request_id), status);
    }
}
