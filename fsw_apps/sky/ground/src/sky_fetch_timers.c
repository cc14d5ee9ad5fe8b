/**
 * @file
 * Timers of a fetch: what is lost, what is late, and when chunks are asked for again.
 *
 * A satellite answers requests in order, each with a burst whose last packet says so. A chunk of a burst that is over is lost,
 * or late; it gets a moment of grace (as in RFC 8985) before it is asked for again. If the end of a burst is lost, its rest is waited for
 * a few times as long as packets of an answer are apart. Only a request without any answer is waited for as long as a round trip may take.
 */
#include "sky_fetch_timers.h"

#include "sky_assert.h"

#define FETCH_ANSWERS 64u /* bits of `answers` */

typedef struct
{
    uint32_t chunks, packets;
} fetch_loss_t;

static bool is_since(uint16_t number, uint16_t since)
{
    return (int16_t)(uint16_t)(number - since) >= 0;
}

/* Let the timer run until @p due_us at least. */
static void fetch_watch(SKY_Fetch_t *fetch, uint64_t due_us)
{
    SKY_ASSERT(fetch->on_way > 0);
    SKY_ASSERT(due_us > 0);
    fetch->timer_us = fetch->timer_us < due_us ? due_us : fetch->timer_us;
}

void SKY_FetchTimers_Sent(SKY_Fetch_t *fetch, uint64_t now_us)
{
    SKY_ASSERT(fetch->number != 0);
    SKY_ASSERT(fetch->on_way > 0);
    fetch->answers <<= 1;
    if (fetch->timed == 0)
    {
        fetch->timed    = fetch->number;
        fetch->clocked  = fetch->number;
        fetch->asked_us = now_us;
    }
    fetch->sent_us = now_us;
    fetch_watch(fetch, now_us + fetch->peer->rto_us);
}

void SKY_FetchTimers_AskAgain(SKY_Fetch_t *fetch, uint32_t index)
{
    SKY_ASSERT(fetch->on_way > 0);
    SKY_ASSERT(fetch->peer->outstanding > 0);
    SKY_ASSERT(fetch->asked_by[index] != 0);
    SKY_ASSERT(index < fetch->cfg.count);
    SKY_ASSERT(fetch->on_way <= fetch->left);
    SKY_ChunkSet_Add(&fetch->todo, index);
    --fetch->peer->outstanding;
    if (--fetch->on_way == 0)
    {
        fetch->timer_us = 0;
    }
    SKY_ASSERT(fetch->on_way <= fetch->peer->outstanding);
}

/* Return true if something of the answer to a request came. Old requests count as answered. */
static bool fetch_was_heard(const SKY_Fetch_t *fetch, uint16_t number)
{
    const uint16_t before = (uint16_t)(fetch->number - number);
    SKY_ASSERT(number != 0);
    SKY_ASSERT(is_since(fetch->number, number));

    return before >= FETCH_ANSWERS || (fetch->answers & UINT64_C(1) << before) != 0;
}

/* Ask again for the chunks that were asked for up to request @p number. @return how many there are, and how many packets may have been lost:
 * a request without an answer is one. */
static fetch_loss_t fetch_again(SKY_Fetch_t *fetch, uint16_t number)
{
    fetch_loss_t loss   = {0, 0};
    uint16_t     silent = 0;                     /* last request without an answer */
    SKY_ASSERT(is_since(fetch->number, number)); /* the request was sent */

    for (uint32_t i = SKY_ChunkSet_Next(&fetch->missing, 0); i < fetch->cfg.count; i = SKY_ChunkSet_Next(&fetch->missing, i + 1))
    {
        const uint16_t asked = fetch->asked_by[i];

        if (!SKY_ChunkSet_Has(&fetch->todo, i) && is_since(number, asked))
        {
            const bool is_heard = fetch_was_heard(fetch, asked);

            SKY_FetchTimers_AskAgain(fetch, i);
            ++loss.chunks;
            loss.packets += is_heard || asked != silent ? 1u : 0u;
            silent = is_heard ? silent : asked;
        }
    }
    fetch->lost += loss.chunks;
    SKY_ASSERT(fetch->on_way + loss.chunks <= fetch->left);
    SKY_ASSERT(loss.packets <= loss.chunks);
    return loss;
}

/* Return true if a chunk is on its way that was asked for up to request @p number. */
static bool fetch_has_gap(const SKY_Fetch_t *fetch, uint16_t number)
{
    uint32_t i = SKY_ChunkSet_Next(&fetch->missing, 0);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING);

    while (i < fetch->cfg.count && (SKY_ChunkSet_Has(&fetch->todo, i) || !is_since(number, fetch->asked_by[i])))
    {
        i = SKY_ChunkSet_Next(&fetch->missing, i + 1);
    }
    return i < fetch->cfg.count;
}

/* Chunks of a burst that has ended may just be late: packets overtake each other on a link with jitter. One time of grace runs at
 * a time; bursts that end meanwhile get theirs after it. */
static void fetch_grace(SKY_Fetch_t *fetch, uint64_t now_us)
{
    SKY_ASSERT(is_since(fetch->number, fetch->over));
    if (fetch->gap_us == 0 && fetch_has_gap(fetch, fetch->over))
    {
        fetch->gap = fetch->over;
        SKY_ASSERT(fetch->on_way > 0);
        fetch->gap_us = now_us + SKY_Peer_GraceUs(fetch->peer, now_us);
        SKY_ASSERT(fetch->gap_us >= now_us);
    }
}

static void fetch_lost(SKY_Fetch_t *fetch, uint64_t now_us)
{
    SKY_ASSERT(fetch->gap_us != 0);
    SKY_ASSERT(is_since(fetch->over, fetch->gap));
    fetch->gap_us = 0;
    if (is_since(fetch->gap, fetch->timed))
    {
        fetch->timed = 0; /* the answer was lost, at least in part: time another one */
    }
    const fetch_loss_t loss = fetch_again(fetch, fetch->gap);

    if (loss.chunks > 0)
    {
        SKY_Peer_OnLoss(fetch->peer, now_us, loss.chunks, loss.packets);
    }
    fetch_grace(fetch, now_us);
}

void SKY_FetchTimers_Burst(SKY_Fetch_t *fetch, uint64_t now_us, uint16_t number, bool is_last)
{
    const uint16_t over = is_last ? number : (uint16_t)(number - 1);
    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING);

    if (is_since(over, (uint16_t)(fetch->over + 1)) && is_since(fetch->number, number))
    {
        SKY_ASSERT(is_since(fetch->number, over));
        fetch->over = over;
        fetch_grace(fetch, now_us);
    }
    if (number == fetch->heard)
    {
        const bool waits = fetch->on_way > 0 && !is_since(fetch->over, number);

        fetch->tail_us = waits ? now_us + SKY_Peer_TailUs(fetch->peer, now_us) : 0;
        SKY_ASSERT(!waits || fetch->tail_us > now_us);
    }
}

void SKY_FetchTimers_Hear(SKY_Fetch_t *fetch, uint64_t now_us, uint16_t number)
{
    const bool was_sent = number != 0 && is_since(fetch->number, number);
    SKY_ASSERT(fetch->timed == 0 || is_since(fetch->number, fetch->timed)); /* the timed request was sent */

    if (was_sent && number == fetch->timed)
    {
        SKY_Peer_OnRtt(fetch->peer, (uint32_t)(now_us - fetch->asked_us));
        fetch->timed = 0;
    }
    if (was_sent && number == fetch->late)
    {
        SKY_Peer_OnRtt(fetch->peer, (uint32_t)(now_us - fetch->late_us));
        SKY_Peer_OnAge(fetch->peer, now_us, now_us - fetch->late_us);
    }
    if (was_sent && fetch->late != 0 && is_since(number, fetch->late))
    {
        fetch->late = 0; /* it is here, or lost, most likely */
    }
    if (was_sent && number == fetch->clocked)
    {
        SKY_Peer_OnAge(fetch->peer, now_us, now_us - fetch->asked_us);
    }
    if (was_sent && number == fetch->heard)
    {
        SKY_Peer_OnGap(fetch->peer, now_us - fetch->heard_us);
    }
    if (was_sent && (fetch->heard == 0 || is_since(number, fetch->heard)))
    {
        fetch->heard    = number;
        fetch->heard_us = now_us;
    }
    if (was_sent && (uint16_t)(fetch->number - number) < FETCH_ANSWERS)
    {
        fetch->answers |= UINT64_C(1) << (uint16_t)(fetch->number - number);
    }
    SKY_ASSERT(fetch->heard == 0 || is_since(fetch->number, fetch->heard));
    SKY_ASSERT(!was_sent || fetch->heard != 0);
}

void SKY_FetchTimers_Wind(SKY_Fetch_t *fetch, uint64_t now_us)
{
    SKY_ASSERT(fetch->on_way <= fetch->left);
    SKY_ASSERT(fetch->number != 0);
    fetch->timer_us = 0;
    if (fetch->on_way == 0)
    {
        return;
    }
    if (fetch->heard == fetch->number)
    {
        fetch_watch(fetch, now_us + fetch->peer->rto_us); /* the rest of that answer is waited for, but not as long */
        return;
    }
    fetch_watch(fetch, now_us + SKY_Peer_TailUs(fetch->peer, now_us));
    fetch_watch(fetch, fetch->sent_us + fetch->peer->rto_us);
}

/* Time another request, because the timed one is given up. If its answer comes after all, its round trip counts (as in RFC 3522). Else a timer
 * that is too short for a queue stays too short: each answer comes after its chunks have been asked for again. */
static void fetch_time_another(SKY_Fetch_t *fetch)
{
    SKY_ASSERT(fetch->timed == 0 || is_since(fetch->number, fetch->timed));
    SKY_ASSERT(fetch->late == 0 || is_since(fetch->number, fetch->late));
    if (fetch->late == 0)
    {
        fetch->late    = fetch->timed;
        fetch->late_us = fetch->asked_us;
    }
    fetch->timed = 0;
}

/* Return the time at which all is asked for again, or 0 if nothing is on its way. The timer may leave no time for another answer before the
 * deadline: the last repeat goes earlier then, but not before an answer to the newest request can be here. */
static uint64_t fetch_again_us(const SKY_Fetch_t *fetch, uint64_t now_us)
{
    const uint64_t round_us = fetch->peer->srtt_us;
    const uint64_t end_us   = fetch->cfg.deadline_us;
    const uint64_t spare_us = round_us + SKY_Peer_GraceUs(fetch->peer, now_us);
    SKY_ASSERT(fetch->sent_us <= now_us);
    SKY_ASSERT(now_us < end_us);
    if (fetch->timer_us == 0 || round_us == 0 || end_us - fetch->sent_us <= 2 * round_us)
    {
        return fetch->timer_us;
    }
    const uint64_t answer_us = fetch->sent_us + round_us;
    const uint64_t last_us   = end_us - answer_us > spare_us ? end_us - spare_us : answer_us;
    SKY_ASSERT(last_us >= answer_us);
    SKY_ASSERT(last_us < end_us);

    return last_us < fetch->timer_us ? last_us : fetch->timer_us;
}

uint64_t SKY_FetchTimers_Run(SKY_Fetch_t *fetch, uint64_t now_us)
{
    uint64_t next_us = fetch->cfg.deadline_us;

    SKY_ASSERT(fetch->state == SKY_SHARE_RUNNING);
    if (fetch->tail_us != 0 && now_us >= fetch->tail_us)
    {
        fetch->tail_us = 0;
        fetch->over    = fetch->heard;
        fetch->gap     = fetch->heard;
        fetch->gap_us  = now_us;
        SKY_ASSERT(is_since(fetch->number, fetch->heard));
    }
    if (fetch->gap_us != 0 && now_us >= fetch->gap_us)
    {
        fetch_lost(fetch, now_us);
    }
    const uint64_t again_us = fetch_again_us(fetch, now_us);

    if (again_us != 0 && now_us >= again_us)
    {
        if (now_us >= fetch->timer_us)
        {
            SKY_Peer_OnTimeout(fetch->peer, now_us);
        }
        (void)fetch_again(fetch, fetch->number);
        SKY_ASSERT(fetch->on_way == 0);
        fetch->over = fetch->number;
        fetch_time_another(fetch);
        fetch->gap_us  = 0;
        fetch->tail_us = 0;
    }
    if (fetch->gap_us != 0 && fetch->gap_us < next_us)
    {
        next_us = fetch->gap_us;
    }
    if (fetch->tail_us != 0 && fetch->tail_us < next_us)
    {
        next_us = fetch->tail_us;
    }
    if (fetch->timer_us != 0 && again_us < next_us)
    {
        next_us = again_us;
    }
    SKY_ASSERT(next_us <= fetch->cfg.deadline_us);
    return next_us;
}
