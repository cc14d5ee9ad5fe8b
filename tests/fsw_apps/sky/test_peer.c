/* Window and timer of a satellite; what both kinds of transfer share. */
#include "sky_transfer.h"

#include <string.h>

#include "check.h"
#include "sky_defaults.h"

static const SKY_PeerCfg_t cfg =
    {.window_initial = 4, .window_max = 16, .burst = 3, .rto_initial_us = 1000, .rto_min_us = 100, .rto_max_us = 10000};
static const SKY_Addr_t addr = {3, 10};

static SKY_Peer_t     peer;
static SKY_ShareCfg_t share;
static SKY_Packet_t   pkt;

static void Defaults(void)
{
    SKY_PeerCfg_t odd = {0};

    SKY_Peer_Init(&peer, &cfg, addr);
    CHECK_EQ(peer.window, 4);
    CHECK_EQ(peer.threshold, 16);
    CHECK_EQ(peer.rto_us, 1000);
    CHECK_EQ(peer.cfg.burst, 3);
    CHECK(SKY_Addr_Equal(peer.addr, addr));

    SKY_Peer_Init(&peer, &odd, addr); /* all zero still gives a transfer that moves */
    CHECK_EQ(peer.window, 2);
    CHECK_EQ(peer.cfg.burst, 2);
    CHECK_EQ(peer.rto_us, 1);

    odd.window_max     = 100000;
    odd.window_initial = 100000;
    odd.burst          = 100000;
    odd.rto_initial_us = 9;
    odd.rto_min_us     = 5;
    odd.rto_max_us     = 7;
    SKY_Peer_Init(&peer, &odd, addr);
    CHECK_EQ(peer.window, SKY_LIMIT_CHUNK_SET);
    CHECK_EQ(peer.cfg.burst, SKY_LIMIT_CHUNK_SET);
    CHECK_EQ(peer.rto_us, 7);
}

/* What the ground's client and the twin's hosts have. */
static void OfHost(void)
{
    const SKY_PeerCfg_t host = SKY_PeerCfg_OfHost(SKY_DEFAULT_WINDOW, SKY_DEFAULT_CREDIT);

    SKY_Peer_Init(&peer, &host, addr);
    CHECK_EQ(peer.window, 2 * SKY_DEFAULT_CREDIT);
    CHECK_EQ(peer.threshold, SKY_DEFAULT_WINDOW);
    CHECK_EQ(peer.cfg.burst, SKY_DEFAULT_CREDIT);
    CHECK_EQ(peer.rto_us, SKY_HOST_RTO_INITIAL_US);
    CHECK_EQ(peer.cfg.rto_min_us, SKY_HOST_RTO_MIN_US);
    CHECK_EQ(peer.cfg.rto_max_us, SKY_HOST_RTO_MAX_US);
}

/* The numbers are those of RFC 6298, 2.2 and 2.3. */
static void RoundTrip(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnRtt(&peer, 800);
    CHECK_EQ(peer.srtt_us, 800);
    CHECK_EQ(peer.rttvar_us, 400);
    CHECK_EQ(peer.rto_us, 2400);
    SKY_Peer_OnRtt(&peer, 1600);
    CHECK_EQ(peer.rttvar_us, 500);
    CHECK_EQ(peer.srtt_us, 900);
    SKY_Peer_OnRtt(&peer, 100);
    CHECK_EQ(peer.rttvar_us, 575);
    CHECK_EQ(peer.srtt_us, 800);
    SKY_Peer_OnRtt(&peer, UINT32_MAX); /* a clock that jumped */
    CHECK_EQ(peer.srtt_us, 1950);
    CHECK_EQ(peer.rto_us, 10000);
    for (int i = 0; i < 200; ++i)
    {
        SKY_Peer_OnRtt(&peer, 0);
    }
    CHECK(peer.srtt_us >= 1 && peer.srtt_us < 10);
    CHECK_EQ(peer.rto_us, peer.srtt_us + 100);
}

static void Window(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnDelivered(&peer, 4);
    CHECK_EQ(peer.window, 8); /* slow start: doubles in a round trip */
    SKY_Peer_OnDelivered(&peer, 100);
    CHECK_EQ(peer.window, 16);
    SKY_Peer_OnDelivered(&peer, 100);
    CHECK_EQ(peer.window, 16); /* and no further */

    SKY_Peer_OnLoss(&peer, 5000, 2, 2);
    CHECK_EQ(peer.window, 8);
    SKY_Peer_OnLoss(&peer, 5999, 2, 2); /* of the same burst */
    CHECK_EQ(peer.window, 8);
    SKY_Peer_OnDelivered(&peer, 7);
    CHECK_EQ(peer.window, 8);
    SKY_Peer_OnDelivered(&peer, 1);
    CHECK_EQ(peer.window, 9); /* one a round trip from now on */
    SKY_Peer_OnLoss(&peer, 6000, 2, 2);
    CHECK_EQ(peer.window, 4);

    SKY_Peer_OnRtt(&peer, 200);
    SKY_Peer_OnAge(&peer, 90000, 251); /* a quarter more than the round trip: packets wait in a queue */
    SKY_Peer_OnLoss(&peer, 90000, 2, 2);
    SKY_Peer_OnLoss(&peer, 90100, 2, 2);
    CHECK_EQ(peer.window, 2);
    SKY_Peer_OnLoss(&peer, 90200, 2, 2);
    CHECK_EQ(peer.window, 2); /* never less */
}

/* A chunk here and there says nothing of the window, even if packets wait in a queue; several in one round trip do. */
static void BadLuck(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnRtt(&peer, 500);
    SKY_Peer_OnDelivered(&peer, 12);
    CHECK_EQ(peer.window, 16);
    for (uint32_t i = 0; i < 10; ++i)
    {
        SKY_Peer_OnAge(&peer, 1000 + 500 * i, 626);
        SKY_Peer_OnLoss(&peer, 1000 + 500 * i, 1, 1);
    }
    CHECK_EQ(peer.window, 16);
    SKY_Peer_OnLoss(&peer, 5999, 1, 1); /* the second of the last round */
    CHECK_EQ(peer.window, 8);

    SKY_Peer_OnDelivered(&peer, 100);
    peer.window = 64;
    SKY_Peer_OnAge(&peer, 9000, 626);
    SKY_Peer_OnLoss(&peer, 9000, 3, 3); /* of 64 */
    CHECK_EQ(peer.window, 64);
    SKY_Peer_OnLoss(&peer, 9000, 1, 1);
    CHECK_EQ(peer.window, 32);
}

/* One chunk in ten is lost, and no packet waits in a queue: the window stays, and grows by one a round trip. */
static void SteadyLoss(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnRtt(&peer, 500);
    SKY_Peer_OnDelivered(&peer, 6);
    CHECK_EQ(peer.window, 10);
    SKY_Peer_OnLoss(&peer, 1000, 2, 2);
    SKY_Peer_OnDelivered(&peer, 10);
    CHECK_EQ(peer.window, 11); /* not 16: slow start is over */
    for (uint32_t i = 0; i < 100; ++i)
    {
        SKY_Peer_OnAge(&peer, 1000 + 500 * i, 625); /* as late as a packet may be */
        SKY_Peer_OnLoss(&peer, 1000 + 500 * i, 2, 2);
        SKY_Peer_OnDelivered(&peer, 18);
    }
    CHECK_EQ(peer.window, 16);
}

/* Then packets begin to wait, and losses are those of a full queue. That is remembered for two round trips. */
static void QueueSeen(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnAge(&peer, 900, 100000); /* it says nothing, because nothing was measured before */
    CHECK_EQ(peer.queue_us, 0);
    SKY_Peer_OnRtt(&peer, 500);
    SKY_Peer_OnDelivered(&peer, 12);
    SKY_Peer_OnAge(&peer, 1000, 626);
    SKY_Peer_OnLoss(&peer, 2000, 2, 2);
    CHECK_EQ(peer.window, 16);
    SKY_Peer_OnAge(&peer, 2500, 626);
    SKY_Peer_OnLoss(&peer, 3499, 2, 2);
    CHECK_EQ(peer.window, 8);
}

/* Some links drop what is too much for them, and let nothing wait. */
static void TooMuchLost(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnRtt(&peer, 500);
    SKY_Peer_OnDelivered(&peer, 12);
    SKY_Peer_OnLoss(&peer, 1000, 100,
                    9); /* among them chunks of requests that were not answered, which may be one lost packet each */
    CHECK_EQ(peer.window, 16);
    SKY_Peer_OnLoss(&peer, 1001, 1, 1); /* ten in a row are a quarter of the last chunks, of which older ones count less */
    CHECK_EQ(peer.window, 8);
    SKY_Peer_OnDelivered(&peer, 100000);
    CHECK(peer.loss_share < SKY_PEER_ALL / 1000u);
    SKY_Peer_OnLoss(&peer, 9000, 100000, 100000);
    CHECK(peer.loss_share > SKY_PEER_ALL * 9u / 10u);
    CHECK(peer.loss_share <= SKY_PEER_ALL);
}

/* A path may become longer for good. But the least round trip is forgotten slowly, because a queue may last as well. */
static void LeastRoundTrip(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnRtt(&peer, 5000);
    SKY_Peer_OnRtt(&peer, 4000);
    CHECK_EQ(peer.least_us, 4000);
    for (uint32_t i = 0; i < 100; ++i)
    {
        SKY_Peer_OnRtt(&peer, 6000);
    }
    CHECK(peer.least_us > 4000);
    CHECK(peer.least_us < 4800); /* packets of 6,000 still count as waiting */
    for (uint32_t i = 0; i < 1000; ++i)
    {
        SKY_Peer_OnRtt(&peer, 6000);
    }
    CHECK_EQ(peer.least_us, 6000);
}

/* The next packet of an answer is waited for twice as long as packets were apart, and longer if they came late. */
static void Tail(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 0), 1000); /* the timer, as long as nothing is known */
    SKY_Peer_OnRtt(&peer, 400);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 0), 1200);
    peer.rttvar_us = 1;
    SKY_Peer_OnGap(&peer, 0);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 0), 100); /* a quarter of a round trip, or the least of the timer */
    SKY_Peer_OnGap(&peer, 300);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 0), 600);
    SKY_Peer_OnGap(&peer, 10);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 0), 2 * (300 - 300 / 32));
    SKY_Peer_OnGap(&peer, UINT64_MAX);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 0), 1200); /* never longer than the timer */
    for (uint32_t i = 0; i < 1000; ++i)
    {
        SKY_Peer_OnGap(&peer, 1);
    }
    CHECK_EQ(SKY_Peer_TailUs(&peer, 1000), 100);
    SKY_Peer_OnLate(&peer, 1000);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 1001), 1200);
    CHECK_EQ(SKY_Peer_TailUs(&peer, 1000 + 64 * 400), 100);
}

static void Grace(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnRtt(&peer, 400);
    CHECK_EQ(SKY_Peer_GraceUs(&peer, 0), 200); /* the variation, as long as it is large */
    peer.rttvar_us = 1;
    CHECK_EQ(SKY_Peer_GraceUs(&peer, 0), 100);
    SKY_Peer_OnLate(&peer, 1000);
    SKY_Peer_OnLate(&peer, 1001); /* of the same round */
    CHECK_EQ(SKY_Peer_GraceUs(&peer, 1500), 200);
    SKY_Peer_OnLate(&peer, 2000);
    SKY_Peer_OnLate(&peer, 3000);
    SKY_Peer_OnLate(&peer, 4000);
    CHECK_EQ(SKY_Peer_GraceUs(&peer, 4000), 400); /* a round trip at most */
    CHECK_EQ(SKY_Peer_GraceUs(&peer, 4000 + 64 * 400 - 1), 400);
    CHECK_EQ(SKY_Peer_GraceUs(&peer, 4000 + 64 * 400), 100); /* it has not been needed for long */
}

static void Timeout(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnTimeout(&peer, 5000);
    CHECK_EQ(peer.rto_us, 2000);
    CHECK_EQ(peer.window, 2);
    SKY_Peer_OnTimeout(&peer, 5500); /* the other share of this satellite */
    CHECK_EQ(peer.rto_us, 2000);
    SKY_Peer_OnTimeout(&peer, 7000);
    CHECK_EQ(peer.rto_us, 4000);
    SKY_Peer_OnTimeout(&peer, 20000);
    SKY_Peer_OnTimeout(&peer, 40000);
    CHECK_EQ(peer.rto_us, 10000);
}

/* The first silence is a lost packet. The next one, or one while packets wait in a queue, may be a full link. */
static void SilenceOnce(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    SKY_Peer_OnRtt(&peer, 400);
    SKY_Peer_OnDelivered(&peer, 12);
    for (uint32_t i = 0; i < 10; ++i)
    {
        SKY_Peer_OnTimeout(&peer, 10000u + 10000u * i);
        SKY_Peer_OnTimeout(&peer, 10000u + 10000u * i + 599u); /* the other share of this satellite */
        CHECK_EQ(peer.window, 16);
        CHECK_EQ(peer.rto_us, 1200);
        SKY_Peer_OnDelivered(&peer, 10);
    }
    SKY_Peer_OnTimeout(&peer, 200000);
    SKY_Peer_OnTimeout(&peer, 200600);
    CHECK_EQ(peer.window, 8);
    CHECK_EQ(peer.rto_us, 2400);
    SKY_Peer_OnRtt(&peer, 400); /* an answer */
    peer.rto_us = 1200;
    SKY_Peer_OnTimeout(&peer, 300000);
    CHECK_EQ(peer.rto_us, 1200);
    SKY_Peer_OnRtt(&peer, 400);
    peer.rto_us = 1200;
    SKY_Peer_OnAge(&peer, 400000, 501);
    SKY_Peer_OnTimeout(&peer, 400000);
    CHECK_EQ(peer.rto_us, 2400);
    SKY_Peer_OnRtt(&peer, 400);
    peer.rto_us = 1200;
    SKY_Peer_OnLate(&peer, 500000); /* the answer was waited for too shortly before */
    SKY_Peer_OnTimeout(&peer, 500001);
    CHECK_EQ(peer.rto_us, 2400);
}

static void Credit(void)
{
    SKY_Peer_Init(&peer, &cfg, addr);
    CHECK_EQ(peer.credit, SKY_LIMIT_CHUNK_SET);
    SKY_Peer_OnCredit(&peer, 20);
    CHECK_EQ(peer.credit, 20);
    SKY_Peer_OnCredit(&peer, 0);
    CHECK_EQ(peer.credit, 1);
    SKY_Peer_OnCredit(&peer, 65535);
    CHECK_EQ(peer.credit, SKY_LIMIT_CHUNK_SET);
}

static void share_start(void)
{
    (void)memset(&share, 0, sizeof(share));
    share.stripe.chunk_total = 496;
    share.stripe.chunk_len   = 6000;
    share.stripe.block_len   = 495u * 6000u + 1u;
    share.base               = 3;
    share.stride             = 10;
    share.count              = 50;
    share.packet_bytes       = 1472;
    share.deadline_us        = UINT64_MAX;
    share.request_id         = 0xABCDEF0000ull;
}

#define CHECK_SHARE(change, expected)                   \
    do                                                  \
    {                                                   \
        share_start();                                  \
        share.change;                                   \
        CHECK_EQ(SKY_ShareCfg_Check(&share), expected); \
    } while (0)

static void ShareNumbers(void)
{
    CHECK_SHARE(base = 3, true);
    CHECK_SHARE(base = 5, true);
    CHECK_SHARE(base = 6, false); /* 6 + 49 * 10 is chunk 496 */
    CHECK_SHARE(stride = 0, false);
    CHECK_SHARE(stride = UINT32_MAX, false);
    CHECK_SHARE(count = 0, false);
    CHECK_SHARE(count = SKY_LIMIT_CHUNK_SET + 1, false);
    CHECK_SHARE(stripe.chunk_len = 0, false);
    CHECK_SHARE(stripe.chunk_len = SKY_LIMIT_CHUNK_BYTES + 1, false);
    CHECK_SHARE(stripe.chunk_total = 0, false);
    CHECK_SHARE(stripe.chunk_total = UINT32_MAX, false);
    CHECK_SHARE(stripe.block_len = 495u * 6000u, false);
    CHECK_SHARE(stripe.block_len = 496u * 6000u, true);
    CHECK_SHARE(stripe.block_len = 496u * 6000u + 1u, false);
    CHECK_SHARE(packet_bytes = SKY_RESPONSE_OVERHEAD, false);
    CHECK_SHARE(packet_bytes = SKY_LIMIT_PACKET_BYTES, true);
    CHECK_SHARE(packet_bytes = SKY_LIMIT_PACKET_BYTES + 1, false);
    CHECK_SHARE(packet_bytes = SKY_RESPONSE_OVERHEAD + 94, true); /* 64 parts of 94 bytes hold 6016 */
    CHECK_SHARE(packet_bytes = SKY_RESPONSE_OVERHEAD + 93, false);
    share_start();
    CHECK_EQ(SKY_Stripe_ChunkBytes(&share.stripe, 494), 6000);
    CHECK_EQ(SKY_Stripe_ChunkBytes(&share.stripe, 495), 1);
}

static void Owned(void)
{
    share_start();
    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.request_id = share.request_id + 99;
    CHECK(SKY_ShareCfg_Owns(&share, &pkt));
    pkt.is_request = true;
    CHECK(!SKY_ShareCfg_Owns(&share, &pkt));
    pkt.is_request = false;
    pkt.request_id = share.request_id + 0x10000;
    CHECK(!SKY_ShareCfg_Owns(&share, &pkt));
    pkt.request_id = share.request_id;
    pkt.tenant     = 1;
    CHECK(!SKY_ShareCfg_Owns(&share, &pkt));
    pkt.tenant  = 0;
    pkt.key[31] = 1;
    CHECK(!SKY_ShareCfg_Owns(&share, &pkt));
}

static void Errors(void)
{
    CHECK_EQ(SKY_ShareState_OfError(SKY_STATUS_EXPIRED), SKY_SHARE_REFUSED); /* only our own clock says that */
    CHECK_EQ(SKY_ShareState_OfError(SKY_STATUS_BUSY), SKY_SHARE_RUNNING);
    CHECK_EQ(SKY_ShareState_OfError(SKY_STATUS_BAD_CRC), SKY_SHARE_RUNNING);
    CHECK_EQ(SKY_ShareState_OfError(SKY_STATUS_UNREACHABLE), SKY_SHARE_REFUSED);
}

static void Request(void)
{
    share_start();
    SKY_Peer_Init(&peer, &cfg, addr);
    share.self.slot = 7;
    share.key[5]    = 9;
    SKY_ShareCfg_Request(&share, &peer, 1000, SKY_OP_GET, 5, &pkt);
    CHECK(pkt.is_request);
    CHECK_EQ(pkt.apid, SKY_APID_KVC);
    CHECK_EQ(pkt.seq_flags, SKY_SEQ_WHOLE);
    CHECK_EQ(pkt.hop_limit, SKY_LIMIT_HOP_LIMIT);
    CHECK(SKY_Addr_Equal(pkt.dst, addr));
    CHECK_EQ(pkt.src.slot, 7);
    CHECK_EQ(pkt.request_id, share.request_id + 5);
    CHECK_EQ(pkt.key[5], 9);
    CHECK_EQ(pkt.chunk_total, 496);
    CHECK_EQ(pkt.deadline_ms, 0); /* none */

    share.deadline_us = 3500;
    SKY_ShareCfg_Request(&share, &peer, 1000, SKY_OP_GET, 5, &pkt);
    CHECK_EQ(pkt.deadline_ms, 3); /* rounded up */
    SKY_ShareCfg_Request(&share, &peer, 3500, SKY_OP_GET, 5, &pkt);
    CHECK_EQ(pkt.deadline_ms, 1); /* 0 would mean none */
    share.deadline_us = UINT64_MAX - 1;
    SKY_ShareCfg_Request(&share, &peer, 0, SKY_OP_GET, 5, &pkt);
    CHECK_EQ(pkt.deadline_ms, UINT32_MAX);
}

static void Parts(void)
{
    static const uint8_t chunk[250];

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.chunk_len  = sizeof(chunk);
    CHECK_EQ(SKY_Packet_CutPart(&pkt, chunk, 0, SKY_REQUEST_OVERHEAD + 250), 250);
    CHECK_EQ(pkt.seq_flags, SKY_SEQ_WHOLE);
    CHECK_EQ(SKY_Packet_CutPart(&pkt, chunk, 0, SKY_REQUEST_OVERHEAD + 100), 100);
    CHECK_EQ(pkt.seq_flags, SKY_SEQ_FIRST);
    CHECK_EQ(SKY_Packet_CutPart(&pkt, chunk, 100, SKY_REQUEST_OVERHEAD + 100), 200);
    CHECK_EQ(pkt.seq_flags, SKY_SEQ_CONTINUE);
    CHECK_EQ(SKY_Packet_CutPart(&pkt, chunk, 200, SKY_REQUEST_OVERHEAD + 100), 250);
    CHECK_EQ(pkt.seq_flags, SKY_SEQ_LAST);
    CHECK_EQ(pkt.offset, 200);
    CHECK_EQ(pkt.length, 50);
    CHECK(pkt.payload == chunk + 200);
    pkt.is_request = false; /* responses have a longer header */
    CHECK_EQ(SKY_Packet_CutPart(&pkt, chunk, 0, SKY_REQUEST_OVERHEAD + 100), 92);
}

int main(void)
{
    RUN(Defaults);
    RUN(OfHost);
    RUN(RoundTrip);
    RUN(Window);
    RUN(BadLuck);
    RUN(SteadyLoss);
    RUN(QueueSeen);
    RUN(TooMuchLost);
    RUN(LeastRoundTrip);
    RUN(Tail);
    RUN(Grace);
    RUN(Timeout);
    RUN(SilenceOnce);
    RUN(Credit);
    RUN(ShareNumbers);
    RUN(Owned);
    RUN(Errors);
    RUN(Request);
    RUN(Parts);
    return CHECK_RESULT();
}
