/* Fetching a share over a link that loses packets: how soon a loss is noticed, and what is asked for again. */
#include "fetch_rig.h"

static void data(uint64_t now_us, uint16_t number, uint32_t id, bool last)
{
    SKY_Packet_t answer;

    SKY_ShareCfg_Request(&share, &peer, 0, SKY_OP_GET, number, &answer);
    answer.is_request = false;
    answer.status     = SKY_STATUS_OK;
    answer.chunk_id   = id;
    answer.chunk_len  = SKY_Stripe_ChunkBytes(&share.stripe, id);
    answer.payload    = source + (size_t)id * share.stripe.chunk_len;
    answer.length     = answer.chunk_len;
    answer.chunk_crc  = SKY_Crc32c(0, answer.payload, answer.length);
    answer.flags      = last ? SKY_FLAG_LAST : 0;
    SKY_Fetch_OnPacket(&fetch, now_us, &answer);
}

/* A fetch with two requests of four chunks each on their way. The first one's answer has begun after a round trip of 500. */
static void begin_two(void)
{
    start(20);
    peer.window = 8;
    CHECK(next(0));
    CHECK(next(100));
    CHECK_EQ(peer.outstanding, 8);
    data(500, 1, 0, false);
    CHECK_EQ(peer.srtt_us, 500);
    CHECK_EQ(peer.rto_us, 1500);
}

/* The rest of an answer is waited for by the pace of what has come. What was asked for later is still on its way. */
static void EndOfAnswer(void)
{
    begin_two();
    CHECK_EQ(fetch.tail_us, 500 + 1500); /* nothing is known of the pace */
    data(510, 1, 1, false);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 510), 250); /* the variation of the round trip is more than twice the pace */
    CHECK_EQ(fetch.tail_us, 510 + 250);
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 759), 760);
    CHECK_EQ(fetch.on_way, 6);
    (void)SKY_Fetch_OnTime(&fetch, 760);
    CHECK_EQ(fetch.on_way, 4);
    CHECK_EQ(fetch.lost, 2);
    CHECK_EQ(peer.silences, 0); /* it was no silence */
    CHECK_EQ(fetch.tail_us, 0);
    CHECK(SKY_ChunkSet_Has(&fetch.todo, 2));
    CHECK(SKY_ChunkSet_Has(&fetch.todo, 3));
    CHECK(!SKY_ChunkSet_Has(&fetch.todo, 4));
    data(800, 2, 4, false);
    data(800, 2, 7, true);
    CHECK_EQ(fetch.tail_us, 0); /* its answer has an end */
}

/* The last packet may be lost while an earlier one is waited for: both come again, once. */
static void EndAndGap(void)
{
    begin_two();
    data(510, 1, 3, true);
    CHECK(fetch.gap_us != 0);
    data(520, 2, 4, false);
    CHECK(fetch.tail_us > fetch.gap_us);
    (void)SKY_Fetch_OnTime(&fetch, fetch.tail_us);
    CHECK_EQ(fetch.gap_us, 0);
    CHECK_EQ(fetch.on_way, 0);
    CHECK_EQ(fetch.lost, 5);
    CHECK_EQ(fetch.timer_us, 0);
    CHECK(next(2000));
    CHECK_EQ(req.chunk_id, 1);
}

/* Silence is measured from the newest request on, but not while others are answered. */
static void Silence(void)
{
    begin_two();
    data(510, 1, 1, false);
    CHECK_EQ(fetch.timer_us, 100 + 1500);
    data(1550, 1, 2, false);
    CHECK_EQ(fetch.timer_us, 1550 + 1500); /* twice the pace would be longer still */
    CHECK(next(1560));
    CHECK_EQ(fetch.timer_us, 1560 + 1500); /* the third request has all of its time */
    data(1570, 3, 9, false);
    CHECK_EQ(fetch.timer_us, 1570 + peer.rto_us);
    CHECK_EQ(fetch.over, 2);
}

/* A request without any answer is one lost packet, not as many as it has asked for. Of old ones nothing is known. */
static void LostRequest(void)
{
    start(20);
    peer.window = 8;
    CHECK(next(0));
    CHECK(next(0));
    data(500, 2, 4, false);
    data(500, 2, 7, true);
    peer.loss_share = 0;
    (void)SKY_Fetch_OnTime(&fetch, fetch.gap_us);
    CHECK_EQ(fetch.lost, 4); /* of the first request */
    CHECK_EQ(peer.loss_share, SKY_PEER_ALL / 32u);
    (void)SKY_Fetch_OnTime(&fetch, fetch.gap_us);
    CHECK_EQ(fetch.lost, 6); /* and two of the second */
    CHECK_EQ(peer.loss_share, (((SKY_PEER_ALL / 32u * 31u + SKY_PEER_ALL) / 32u) * 31u + SKY_PEER_ALL) / 32u);

    start(300);
    peer.cfg.window_max = 300;
    peer.window         = 300;
    for (uint32_t i = 0; i < 66; ++i)
    {
        CHECK(next(0));
    }
    data(500, 1, 3, true); /* 65 requests ago */
    data(500, 66, 263, true);
    peer.loss_share = 0;
    SKY_Peer_OnDelivered(&peer, 1);
    (void)SKY_Fetch_OnTime(&fetch, fetch.gap_us);
    (void)SKY_Fetch_OnTime(&fetch, fetch.gap_us);
    CHECK_EQ(fetch.lost, 66u * 4u - 2u);
    CHECK_EQ(fetch.on_way, 0);
}

/* One silence does no harm: all is asked for again, the window stays, and so does the timer. */
static void FirstSilence(void)
{
    start(20);
    SKY_Peer_OnRtt(&peer, 500);
    peer.window = 8;
    CHECK(next(0));
    CHECK(next(0));
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 1499), 1500);
    (void)SKY_Fetch_OnTime(&fetch, 1500);
    CHECK_EQ(fetch.lost, 8);
    CHECK_EQ(fetch.on_way, 0);
    CHECK_EQ(peer.window, 8);
    CHECK_EQ(peer.rto_us, 1500);
    CHECK(next(1500));
    CHECK(next(1500));
    (void)SKY_Fetch_OnTime(&fetch, 3000);
    CHECK_EQ(peer.window, 4);
    CHECK_EQ(peer.rto_us, 3000);
    CHECK(next(3000));
    data(3500, 5, 0, false);
    CHECK_EQ(peer.silences, 0);
    CHECK_EQ(peer.rto_us, 500 + 4 * 187); /* the answer was timed */
}

/* An answer that comes after its request was given up says how long it took. Else a timer that is too short for a queue stays too short:
 * answers to repeats come later still. */
static void LateAnswer(void)
{
    start(1);
    CHECK(next(0));
    (void)SKY_Fetch_OnTime(&fetch, 1000);
    CHECK(next(1000));
    (void)SKY_Fetch_OnTime(&fetch, 3000);
    CHECK(next(3000));
    data(3500, 1, 0, true); /* the third request is on its way */
    CHECK_EQ(fetch.state, SKY_SHARE_DONE);
    CHECK_EQ(peer.outstanding, 0);
    CHECK_EQ(peer.srtt_us, 3500);
    CHECK_EQ(peer.rto_us, 3 * 3500);
    CHECK_EQ(peer.queue_us, 0); /* no round trip was shorter */
}

/* If answers came sooner before, a late one shows a queue: the next silence does not count as a lost packet. */
static void LateInQueue(void)
{
    start(1);
    SKY_Peer_OnRtt(&peer, 500);
    CHECK(next(0));
    (void)SKY_Fetch_OnTime(&fetch, 1500);
    CHECK_EQ(peer.rto_us, 1500); /* the first silence is borne */
    CHECK(next(1500));
    data(1600, 1, 0, true);
    CHECK_EQ(peer.srtt_us, (7 * 500 + 1600) / 8);
    CHECK(peer.queue_us > 1600);
}

/* If the repeat is answered first, the request before it was lost, most likely. What comes of that answer tells nothing of time. */
static void AnswerToRepeat(void)
{
    start(4);
    CHECK(next(0));
    (void)SKY_Fetch_OnTime(&fetch, 1000);
    peer.window = 4;
    CHECK(next(1000));
    data(1500, 2, 0, false);
    CHECK_EQ(peer.srtt_us, 500);
    CHECK_EQ(fetch.late, 0);
    data(1501, 1, 1, false);
    CHECK_EQ(peer.srtt_us, 500);
    CHECK_EQ(fetch.left, 2);
    CHECK_EQ(fetch.on_way, 2);
}

/* A packet that answers an earlier request than the late one tells nothing of that. */
static void AnswerBeforeLate(void)
{
    begin_two();
    CHECK_EQ(fetch.timed, 0);
    peer.window = 12;
    CHECK(next(600));
    CHECK_EQ(fetch.timed, 3);
    (void)SKY_Fetch_OnTime(&fetch, 2100);
    CHECK_EQ(fetch.late, 3);
    CHECK_EQ(fetch.timed, 0);
    data(2200, 1, 1, false);
    CHECK_EQ(fetch.late, 3);
    CHECK_EQ(peer.srtt_us, 500);
    data(2300, 3, 8, false);
    CHECK_EQ(fetch.late, 0);
    CHECK_EQ(peer.srtt_us, (7 * 500 + 1700) / 8);
}

/* Ask at @p asked_us, with a deadline of @p deadline_us and a round trip of 500. @return the time at which all is asked for again */
static uint64_t again_us(uint64_t asked_us, uint64_t deadline_us)
{
    start(4);
    SKY_Peer_OnRtt(&peer, 500);
    CHECK_EQ(SKY_Peer_GraceUs(&peer, asked_us), 250);
    CHECK_EQ(peer.rto_us, 1500);
    fetch.cfg.deadline_us = deadline_us;
    CHECK(next(asked_us));
    return SKY_Fetch_OnTime(&fetch, asked_us);
}

/* The last repeat does not wait for the timer if its answer would come after the deadline, but for an answer that may still come. */
static void LastRepeat(void)
{
    CHECK_EQ(again_us(0, 2251), 1500); /* the timer leaves time enough */
    (void)SKY_Fetch_OnTime(&fetch, 1500);
    CHECK_EQ(peer.silences, 1);
    CHECK_EQ(again_us(0, 2249), 1499);
    CHECK_EQ(again_us(0, 2000), 2000 - 750);
    CHECK_EQ(again_us(600, 1800), 600 + 500); /* an answer may come until then */
    CHECK_EQ(again_us(600, 1601), 600 + 500);
    CHECK_EQ(again_us(600, 1600), 1600); /* an answer to a repeat could not */

    CHECK_EQ(again_us(0, 2000), 1250);
    (void)SKY_Fetch_OnTime(&fetch, 1249);
    CHECK_EQ(fetch.on_way, 4);
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 1250), 2000);
    CHECK_EQ(fetch.on_way, 0);
    CHECK_EQ(fetch.lost, 4);
    CHECK_EQ(peer.silences, 0); /* the timer has not run out */
    CHECK_EQ(peer.rto_us, 1500);
    CHECK(next(1250));
    CHECK_EQ(SKY_Fetch_OnTime(&fetch, 1250), 2000); /* there is no time for another one */
    data(1400, 1, 0, false);                        /* the answer to the first request after all */
    CHECK_EQ(peer.srtt_us, (7 * 500 + 1400) / 8);
    (void)SKY_Fetch_OnTime(&fetch, 2000);
    CHECK_EQ(fetch.state, SKY_SHARE_EXPIRED);
}

/* Packets of one answer that come ever later wait in a queue. */
static void Queue(void)
{
    begin_two();
    data(625, 1, 1, false);
    CHECK_EQ(peer.queue_us, 0);
    data(626, 1, 2, false);
    CHECK_EQ(peer.queue_us, 626 + 2 * 500);
}

/* An answer to what was never asked says nothing of when it came. */
static void NeverAsked(void)
{
    start(20);
    CHECK(next(0));
    data(500, 2, 0, false);
    data(501, 0, 1, false);
    CHECK_EQ(fetch.heard, 0);
    CHECK_EQ(fetch.tail_us, 0);
    CHECK_EQ(peer.srtt_us, 0);
    CHECK_EQ(peer.longest_us, 0);
    data(600, 1, 2, false);
    CHECK_EQ(fetch.heard, 1);
    CHECK_EQ(peer.srtt_us, 600);
}

/* Other chunks of a row may do: what is not on its way can be left out at any time. */
static void LeaveOut(void)
{
    begin_two();
    SKY_Fetch_Skip(&fetch, 1); /* on its way */
    SKY_Fetch_Skip(&fetch, 0); /* here */
    CHECK_EQ(fetch.left, 19);
    SKY_Fetch_Skip(&fetch, 8);
    CHECK_EQ(fetch.left, 18);
    data(510, 1, 3, true);
    (void)SKY_Fetch_OnTime(&fetch, fetch.gap_us);
    SKY_Fetch_Skip(&fetch, 1); /* lost */
    CHECK_EQ(fetch.left, 16);
    peer.window = 8;
    CHECK(next(1000));
    CHECK_EQ(req.chunk_id, 2);
    CHECK_EQ(req.credit, 4); /* 2, 9, 10, 11 */
}

int main(void)
{
    fill();
    RUN(EndOfAnswer);
    RUN(EndAndGap);
    RUN(Silence);
    RUN(LostRequest);
    RUN(FirstSilence);
    RUN(LateAnswer);
    RUN(LateInQueue);
    RUN(AnswerToRepeat);
    RUN(AnswerBeforeLate);
    RUN(LastRepeat);
    RUN(Queue);
    RUN(NeverAsked);
    RUN(LeaveOut);
    return CHECK_RESULT();
}
