/* Hellos: who is there, how far away, what is told and when; links that flap; packets that make no sense. */
#include "sky_hello.h"

#include <string.h>

#include "check.h"

#define ALL_UP    0x0Fu
#define START_US  UINT64_C(1000000000)
#define SECOND_US UINT64_C(1000000)
#define PERIOD_US (10u * SECOND_US)
#define MANY      95u

static SKY_Torus_t    torus;
static SKY_Router_t   router;
static SKY_Map_t      map;
static SKY_Hello_t    hello;
static SKY_HelloOut_t out;
static uint32_t       memory[MANY * SKY_MAP_SATELLITE_BYTES / sizeof(uint32_t)];
static uint8_t        payload[SKY_HELLO_MAX_BYTES + 1u];

static const SKY_Addr_t self = {3, 10};

static void StartWith(uint64_t period_us, bool with_map)
{
    CHECK(SKY_Torus_Init(&torus, 5, 19, false));
    CHECK(SKY_Router_Init(&router, &torus, self));
    if (with_map)
    {
        CHECK(SKY_Map_Init(&map, &torus, self, memory, sizeof(memory)));
        SKY_Router_SetMap(&router, &map);
    }
    SKY_Hello_Init(&hello, &router, START_US, period_us);
}

static uint32_t Drain(uint64_t now_us)
{
    uint32_t count = 0;

    while (SKY_Hello_Next(&hello, now_us, &out))
    {
        ++count;
    }
    return count;
}

static void Start(void)
{
    StartWith(PERIOD_US, true);
    CHECK_EQ(Drain(START_US), 4); /* who is there is greeted at once */
}

/* A HELLO of the neighbour on a link: its digest, and link states of (1, 1), (1, 2) and so on, all of the same sequence. */
static SKY_Packet_t From(SKY_LinkId_t link, uint64_t digest, uint32_t count, uint32_t sequence, uint32_t down)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    (void)memset(payload, 0, sizeof(payload));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_ISL;
    pkt.op         = SKY_OP_HELLO;
    pkt.src        = SKY_Torus_Neighbour(&torus, self, link);
    pkt.dst        = self;
    pkt.request_id = 4711;
    pkt.payload    = payload;
    pkt.length     = SKY_HELLO_BYTES + count * SKY_LINK_STATE_BYTES;
    for (uint32_t i = 0; i < 8u; ++i)
    {
        payload[SKY_HELLO_OFF_DIGEST + i] = (uint8_t)(digest >> (56u - 8u * i) & 0xFFu);
    }
    payload[SKY_HELLO_OFF_COUNT]      = (uint8_t)(count >> 8);
    payload[SKY_HELLO_OFF_COUNT + 1u] = (uint8_t)(count & 0xFFu);
    for (uint32_t i = 0; i < count && i < SKY_LIMIT_LINK_STATES; ++i)
    {
        uint8_t *state = payload + SKY_HELLO_BYTES + i * SKY_LINK_STATE_BYTES;

        state[SKY_LINK_STATE_OFF_PLANE + 1u]    = 1;
        state[SKY_LINK_STATE_OFF_SLOT + 1u]     = (uint8_t)(i + 1u);
        state[SKY_LINK_STATE_OFF_SEQUENCE + 3u] = (uint8_t)sequence;
        state[SKY_LINK_STATE_OFF_DOWN + 1u]     = (uint8_t)down;
    }
    return pkt;
}

static SKY_Packet_t NewsFrom(SKY_LinkId_t link, uint32_t count, uint32_t sequence, uint32_t down)
{
    SKY_Packet_t pkt = From(link, 0, count, sequence, down);

    pkt.flags = SKY_FLAG_GOSSIP;
    return pkt;
}

static SKY_HelloResult_t Begin(uint64_t now_us, const SKY_Packet_t *pkt, SKY_LinkId_t ingress)
{
    return SKY_Hello_Begin(&hello, now_us, pkt, ingress, &out);
}

/* ---- greetings ------------------------------------------------------------------------------------------------------- */

static void Greetings(void)
{
    uint32_t seen = 0;

    StartWith(PERIOD_US, true);
    CHECK_EQ(SKY_Hello_NextDue(&hello), 0);
    for (uint32_t i = 0; i < SKY_ISL_COUNT; ++i)
    {
        CHECK(SKY_Hello_Next(&hello, START_US, &out));
        CHECK(out.pkt.is_request && out.pkt.op == SKY_OP_HELLO && out.pkt.apid == SKY_APID_ISL && out.pkt.hop_limit == 1u);
        CHECK(SKY_Addr_Equal(out.pkt.dst, SKY_Torus_Neighbour(&torus, self, out.link)) && SKY_Addr_Equal(out.pkt.src, self));
        CHECK(out.pkt.length == SKY_HELLO_BYTES && out.pkt.payload == out.payload && out.pkt.flags == 0u);
        seen |= 1u << out.link;
    }
    CHECK_EQ(seen, ALL_UP);
    CHECK(!SKY_Hello_Next(&hello, START_US, &out));
    CHECK(SKY_Hello_NextDue(&hello) > START_US && SKY_Hello_NextDue(&hello) <= START_US + PERIOD_US);
    SKY_Hello_Poll(&hello, SKY_Hello_NextDue(&hello) - 1u);
    CHECK_EQ(Drain(START_US), 0);
    SKY_Hello_Poll(&hello, START_US + PERIOD_US);
    CHECK_EQ(Drain(START_US + PERIOD_US), 4);
    for (uint64_t now_us = START_US + PERIOD_US, i = 0, before_us = 0; i < 16u; ++i) /* a different time from one to the next */
    {
        const uint64_t wait_us = SKY_Hello_NextDue(&hello) - now_us;

        CHECK(wait_us >= PERIOD_US * 3u / 4u && wait_us <= PERIOD_US && wait_us != before_us);
        before_us = wait_us;
        now_us += wait_us;
        SKY_Hello_Poll(&hello, now_us);
        CHECK_EQ(Drain(now_us), 4);
    }

    StartWith(0, true); /* no greetings */
    CHECK_EQ(Drain(START_US), 0);
    CHECK(SKY_Hello_NextDue(&hello) == UINT64_MAX);
    SKY_Hello_Poll(&hello, START_US + 100u * PERIOD_US);
    CHECK_EQ(router.usable, ALL_UP);
}

static void AnAnswerIsMeasured(void)
{
    const uint64_t delays_us[] = {5000, 7000, 3000, 9000};
    SKY_Packet_t   answer;
    uint64_t       now_us = START_US;

    Start();
    CHECK_EQ(SKY_Hello_MinUs(&hello.links[SKY_LINK_EAST]), 0);
    for (uint32_t i = 0; i < 20u; ++i)
    {
        now_us += PERIOD_US;
        SKY_Hello_Poll(&hello, now_us);
        CHECK_EQ(Drain(now_us), 4);
        answer            = From(SKY_LINK_EAST, 0, 0, 0, 0);
        answer.is_request = false;
        answer.request_id = hello.links[SKY_LINK_EAST].asked_id;
        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            SKY_Hello_Heard(&hello, now_us, (SKY_LinkId_t)link);
        }
        CHECK_EQ(Begin(now_us + 2u * (i < 4u ? delays_us[i] : 6000u), &answer, SKY_LINK_EAST), SKY_HELLO_TAKEN);
        CHECK_EQ(Begin(now_us + 1u, &answer, SKY_LINK_EAST), SKY_HELLO_TAKEN); /* a copy measures nothing */
        CHECK_EQ(SKY_Hello_MinUs(&hello.links[SKY_LINK_EAST]), i < 2u ? 5000 : i < 18u ? 3000 : 6000);
    }
    CHECK(hello.links[SKY_LINK_EAST].mean_us > 5500u && hello.links[SKY_LINK_EAST].mean_us < 6500u);
    CHECK_EQ(hello.links[SKY_LINK_WEST].mean_us, 0);

    /* What answers no greeting of ours, or not from where it was asked. */
    SKY_Hello_Poll(&hello, now_us + PERIOD_US);
    CHECK_EQ(Drain(now_us + PERIOD_US), 4);
    answer            = From(SKY_LINK_WEST, 0, 0, 0, 0);
    answer.is_request = false;
    answer.request_id = hello.links[SKY_LINK_NORTH].asked_id;
    CHECK_EQ(Begin(now_us + PERIOD_US, &answer, SKY_LINK_WEST), SKY_HELLO_TAKEN);
    answer.request_id = 7; /* no link */
    CHECK_EQ(Begin(now_us + PERIOD_US, &answer, SKY_LINK_WEST), SKY_HELLO_TAKEN);
    answer.request_id = hello.links[SKY_LINK_WEST].asked_id ^ 8u;
    CHECK_EQ(Begin(now_us + PERIOD_US, &answer, SKY_LINK_WEST), SKY_HELLO_TAKEN);
    answer.request_id = hello.links[SKY_LINK_WEST].asked_id;
    CHECK_EQ(Begin(now_us + PERIOD_US + 2u * UINT64_C(0x100000000), &answer, SKY_LINK_WEST), SKY_HELLO_TAKEN); /* hours later */
    CHECK_EQ(hello.links[SKY_LINK_NORTH].mean_us + hello.links[SKY_LINK_WEST].mean_us, 0);
    CHECK_EQ(Begin(now_us + PERIOD_US, &answer, SKY_LINK_WEST), SKY_HELLO_TAKEN); /* in no time at all */
    CHECK_EQ(hello.links[SKY_LINK_WEST].mean_us, 1);
    CHECK_EQ(SKY_Hello_MinUs(&hello.links[SKY_LINK_WEST]), 1);
}

static void AGreetingIsAnswered(void)
{
    SKY_Packet_t pkt;

    Start();
    pkt = From(SKY_LINK_SOUTH, 0, 0, 0, 0);
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_SOUTH), SKY_HELLO_ANSWER);
    CHECK(out.link == SKY_LINK_SOUTH && !out.pkt.is_request && out.pkt.request_id == 4711u);
    CHECK(SKY_Addr_Equal(out.pkt.dst, pkt.src) && out.pkt.length == SKY_HELLO_BYTES);
    CHECK_EQ(Drain(START_US), 0); /* they know the same */

    /* Once a link of our own was down, that is in each greeting and answer. */
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_EAST, true, true);
    CHECK_EQ(Drain(START_US), 3);
    pkt = From(SKY_LINK_SOUTH, map.digest, 0, 0, 0);
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_SOUTH), SKY_HELLO_ANSWER);
    CHECK_EQ(out.pkt.length, SKY_HELLO_BYTES + SKY_LINK_STATE_BYTES);
    CHECK_EQ(out.payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_PLANE + 1u], 3);
    CHECK_EQ(out.payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_SLOT + 1u], 10);
    CHECK_EQ(out.payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_SEQUENCE + 3u], 1);
    CHECK_EQ(out.payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_DOWN + 1u], 1u << SKY_LINK_EAST);
}

static void NonsenseIsRefused(void)
{
    SKY_Packet_t pkt;

    Start();
    pkt = From(SKY_LINK_SOUTH, 0, 1, 1, 1);
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_NORTH), SKY_HELLO_REFUSED); /* another neighbour's */
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_GROUND), SKY_HELLO_REFUSED);
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_NONE), SKY_HELLO_REFUSED);
    pkt.status = SKY_STATUS_BAD_OP;
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_SOUTH), SKY_HELLO_REFUSED);
    pkt.status = SKY_STATUS_OK;
    ++pkt.length;
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_SOUTH), SKY_HELLO_REFUSED);
    pkt.length = SKY_HELLO_BYTES - 1u;
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_SOUTH), SKY_HELLO_REFUSED);
    pkt = From(SKY_LINK_SOUTH, 0, SKY_LIMIT_LINK_STATES + 1u, 1, 1);
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_SOUTH), SKY_HELLO_REFUSED);
    CHECK_EQ(map.digest, 0);
    CHECK_EQ(hello.refused, 7);

    pkt                                                      = NewsFrom(SKY_LINK_SOUTH, 3, 1, 1);
    payload[SKY_HELLO_BYTES + SKY_LINK_STATE_OFF_PLANE + 1u] = 9; /* nobody: the others count */
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_SOUTH), SKY_HELLO_TAKEN);
    CHECK_EQ(map.exceptions, 2);
    CHECK_EQ(hello.refused, 8);
}

/* ---- up and down ----------------------------------------------------------------------------------------------------- */

static void SilenceTakesALinkDown(void)
{
    uint64_t now_us = START_US;

    Start();
    for (uint32_t i = 0; i < SKY_HELLO_LOST + 1u; ++i)
    {
        CHECK_EQ(router.usable, ALL_UP);
        now_us += PERIOD_US;
        SKY_Hello_Heard(&hello, now_us, SKY_LINK_NORTH);
        SKY_Hello_Heard(&hello, now_us, SKY_LINK_SOUTH);
        SKY_Hello_Heard(&hello, now_us, SKY_LINK_WEST);
        SKY_Hello_Poll(&hello, now_us);
        if (i + 1u < SKY_HELLO_LOST)
        {
            CHECK_EQ(Drain(now_us), 4);
        }
        else
        {
            break;
        }
    }
    CHECK_EQ(router.usable, ALL_UP & ~(1u << SKY_LINK_EAST));
    CHECK_EQ(map.down[map.self], 1u << SKY_LINK_EAST);
    CHECK_EQ(Drain(now_us), 4 + 3); /* it is still greeted, and the others are told */
    SKY_Hello_Heard(&hello, now_us + 1u, SKY_LINK_EAST);
    CHECK_EQ(router.usable, ALL_UP);
    CHECK_EQ(Drain(now_us + 1u), 4); /* all are told; who is back is told everything */
}

static void CutsAndTables(void)
{
    Start();
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_EAST, true, false); /* as it was */
    CHECK_EQ(Drain(START_US), 0);
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_EAST, true, true);
    CHECK_EQ(router.usable, ALL_UP & ~(1u << SKY_LINK_EAST));
    CHECK_EQ(Drain(START_US), 3);
    SKY_Hello_Heard(&hello, START_US, SKY_LINK_EAST); /* not while it is cut */
    SKY_Hello_Poll(&hello, START_US + PERIOD_US);
    CHECK_EQ(Drain(START_US + PERIOD_US), 3);
    SKY_Hello_SetLink(&hello, START_US + PERIOD_US, SKY_LINK_EAST, true, false);
    CHECK_EQ(router.usable, ALL_UP & ~(1u << SKY_LINK_EAST)); /* not before it is heard; it is greeted at once */
    CHECK_EQ(Drain(START_US + PERIOD_US), 1);
    SKY_Hello_Heard(&hello, START_US + PERIOD_US, SKY_LINK_EAST);
    CHECK_EQ(router.usable, ALL_UP);
    SKY_Hello_SetLink(&hello, START_US + PERIOD_US, SKY_LINK_EAST, false, false); /* the table has no such link */
    CHECK_EQ(router.usable, ALL_UP & ~(1u << SKY_LINK_EAST));

    StartWith(0, true); /* without greetings a link is back at once */
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_EAST, true, true);
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_EAST, true, false);
    CHECK_EQ(router.usable, ALL_UP);
}

static void LinksThatAreNotThere(void)
{
    static const SKY_Addr_t edge = {1, 10};

    CHECK(SKY_Torus_Init(&torus, 5, 19, true));
    CHECK(SKY_Router_Init(&router, &torus, edge));
    SKY_Hello_Init(&hello, &router, START_US, PERIOD_US);
    CHECK_EQ(Drain(START_US), 3); /* none over the seam */
    SKY_Hello_Poll(&hello, START_US + PERIOD_US);
    CHECK_EQ(Drain(START_US + PERIOD_US), 3);

    StartWith(PERIOD_US, true);
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_NORTH, true, false); /* as it is: still to be greeted */
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_EAST, false, false);
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_WEST, true, true);
    CHECK_EQ(Drain(START_US), 2u + 2u);                 /* two greetings, and news of the two links to both */
    for (uint32_t i = 1; i <= SKY_HELLO_LOST + 2u; ++i) /* silence that goes on is no more than silence */
    {
        SKY_Hello_Poll(&hello, START_US + i * PERIOD_US);
        CHECK_EQ(Drain(START_US + i * PERIOD_US), 2);
    }
    CHECK_EQ(router.usable, 0);
}

/* One turn: down for a second and up again. @return how long it was held down after that, in seconds */
static uint64_t Flap(uint64_t *now_us)
{
    uint64_t back_us;

    SKY_Hello_SetLink(&hello, *now_us, SKY_LINK_EAST, true, true);
    *now_us += SECOND_US;
    SKY_Hello_SetLink(&hello, *now_us, SKY_LINK_EAST, true, false);
    back_us = *now_us;
    while ((router.usable & 1u << SKY_LINK_EAST) == 0u)
    {
        const uint64_t due_us = SKY_Hello_NextDue(&hello);

        CHECK(due_us > *now_us || due_us == 0u);
        SKY_Hello_Poll(&hello, *now_us); /* too early: nothing changes */
        CHECK_EQ(router.usable & 1u << SKY_LINK_EAST, 0);
        *now_us = due_us > *now_us ? due_us : *now_us;
        SKY_Hello_Poll(&hello, *now_us);
        (void)Drain(*now_us);
    }
    (void)Drain(*now_us);
    return (*now_us - back_us) / SECOND_US;
}

static void ALinkThatFlapsIsHeldDown(void)
{
    static const uint64_t held_s[] = {0, 0, 0, 1, 2, 4, 8, 16, 32, 32, 32};
    uint64_t              now_us   = START_US;

    StartWith(0, true);
    for (uint32_t i = 0; i < sizeof(held_s) / sizeof(held_s[0]); ++i)
    {
        CHECK_EQ(Flap(&now_us), held_s[i]);
    }
    now_us += SKY_HELLO_CALM_US; /* a minute later it is a good link again */
    CHECK_EQ(Flap(&now_us), 0);

    /* What is cut while it is held down stays down when its time is over. */
    for (uint32_t i = 0; i < 3u; ++i)
    {
        (void)Flap(&now_us);
    }
    SKY_Hello_SetLink(&hello, now_us, SKY_LINK_EAST, true, true);
    SKY_Hello_SetLink(&hello, now_us, SKY_LINK_EAST, true, false);
    SKY_Hello_SetLink(&hello, now_us, SKY_LINK_EAST, true, true);
    SKY_Hello_Poll(&hello, now_us + SKY_HELLO_HOLD_MOST_US);
    CHECK_EQ(router.usable, ALL_UP & ~(1u << SKY_LINK_EAST));
}

/* ---- news ------------------------------------------------------------------------------------------------------------ */

static void NewsGoesOn(void)
{
    SKY_Packet_t pkt;
    uint32_t     seen = 0;

    Start();
    pkt = NewsFrom(SKY_LINK_NORTH, 2, 7, 1u << SKY_LINK_SOUTH);
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_NORTH), SKY_HELLO_TAKEN); /* no answer, and its digest says nothing yet */
    CHECK_EQ(map.exceptions, 2);
    CHECK_EQ(SKY_Hello_NextDue(&hello), 0);
    while (SKY_Hello_Next(&hello, START_US, &out))
    {
        CHECK(out.pkt.is_request && out.pkt.flags == SKY_FLAG_GOSSIP);
        CHECK_EQ(out.pkt.length, SKY_HELLO_BYTES + 2u * SKY_LINK_STATE_BYTES);
        CHECK(memcmp(out.payload + SKY_HELLO_BYTES, payload + SKY_HELLO_BYTES, 2u * SKY_LINK_STATE_BYTES) == 0);
        seen |= 1u << out.link;
    }
    CHECK_EQ(seen, ALL_UP & ~(1u << SKY_LINK_NORTH));
    pkt = NewsFrom(SKY_LINK_WEST, 2, 7, 1u << SKY_LINK_SOUTH); /* again, from elsewhere: it goes no further */
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_WEST), SKY_HELLO_TAKEN);
    CHECK_EQ(Drain(START_US), 0);
}

static void WhoKnowsSomethingElseIsTold(void)
{
    SKY_Packet_t pkt;

    Start();
    pkt = NewsFrom(SKY_LINK_NORTH, 5, 7, 1u << SKY_LINK_SOUTH);
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_NORTH), SKY_HELLO_TAKEN);
    (void)Drain(START_US);
    pkt = From(SKY_LINK_EAST, 0, 0, 0, 0); /* it has begun anew, or news was lost */
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_EAST), SKY_HELLO_ANSWER);
    CHECK(SKY_Hello_Next(&hello, START_US, &out));
    CHECK_EQ(out.link, SKY_LINK_EAST);
    CHECK_EQ(out.payload[SKY_HELLO_OFF_COUNT + 1u], 5);
    CHECK_EQ(Drain(START_US), 0);
    pkt            = From(SKY_LINK_WEST, 12345, 0, 0, 0);
    pkt.is_request = false; /* in an answer it shows as well */
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_WEST), SKY_HELLO_TAKEN);
    CHECK_EQ(Drain(START_US), 1);
}

/* A neighbour whose digest is wrong each time, or that has no map, is told everything once in a period. */
static void AWrongDigestIsAnsweredOnceInAPeriod(void)
{
    SKY_Packet_t pkt;
    uint64_t     now_us = START_US;

    Start();
    pkt = NewsFrom(SKY_LINK_NORTH, 5, 7, 1u << SKY_LINK_SOUTH);
    CHECK_EQ(Begin(now_us, &pkt, SKY_LINK_NORTH), SKY_HELLO_TAKEN);
    (void)Drain(now_us);
    for (uint32_t period = 0; period < 3u; ++period)
    {
        for (uint32_t i = 0; i < 20u; ++i)
        {
            pkt = From(SKY_LINK_EAST, i, 0, 0, 0);
            CHECK_EQ(Begin(now_us, &pkt, SKY_LINK_EAST), SKY_HELLO_ANSWER);
            CHECK_EQ(Drain(now_us), i == 0u ? 1 : 0);
            now_us += SECOND_US / 10u;
            SKY_Hello_Poll(&hello, now_us); /* not yet the next period */
        }
        pkt = From(SKY_LINK_WEST, 1, 0, 0, 0); /* each neighbour for itself */
        CHECK_EQ(Begin(now_us, &pkt, SKY_LINK_WEST), SKY_HELLO_ANSWER);
        CHECK_EQ(Drain(now_us), 1);
        now_us += PERIOD_US;
        for (uint32_t link = 0; link < SKY_ISL_COUNT; ++link)
        {
            SKY_Hello_Heard(&hello, now_us, (SKY_LinkId_t)link);
        }
        SKY_Hello_Poll(&hello, now_us);
        CHECK_EQ(Drain(now_us), 4);
    }

    /* While something is still going out it is not begun again. */
    pkt = NewsFrom(SKY_LINK_NORTH, 1, 8, 0);
    CHECK_EQ(Begin(now_us, &pkt, SKY_LINK_NORTH), SKY_HELLO_TAKEN);
    pkt = From(SKY_LINK_EAST, 1, 0, 0, 0);
    CHECK_EQ(Begin(now_us, &pkt, SKY_LINK_EAST), SKY_HELLO_ANSWER);
    CHECK_EQ(map.unsent_count[SKY_LINK_EAST], 1);
    CHECK_EQ(Drain(now_us), 3);
    CHECK_EQ(Begin(now_us, &pkt, SKY_LINK_EAST), SKY_HELLO_ANSWER);
    CHECK_EQ(map.unsent_count[SKY_LINK_EAST], 5);
}

/* Greetings repair a map. Without them there is none. */
static void NoMapWithoutGreetings(void)
{
    StartWith(0, true);
    CHECK(router.map == NULL);
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_EAST, true, true);
    CHECK_EQ(router.usable, ALL_UP & ~(1u << SKY_LINK_EAST));
    CHECK_EQ(Drain(START_US), 0);
    StartWith(PERIOD_US, true);
    CHECK(router.map == &map);
}

/* A whole map goes in bursts with pauses between, so that no queue on the way overflows. */
static void MuchNewsIsPaced(void)
{
    SKY_Packet_t pkt;
    uint64_t     now_us = START_US;
    uint32_t     told   = 0;

    Start();
    for (uint32_t plane = 1; plane <= 5u; ++plane)
    {
        for (uint32_t half = 0; half < 2u; ++half)
        {
            pkt = NewsFrom(SKY_LINK_NORTH, 19, 1u + half, 1u + half);
            for (uint32_t i = 0; i < 19u; ++i)
            {
                payload[SKY_HELLO_BYTES + i * SKY_LINK_STATE_BYTES + SKY_LINK_STATE_OFF_PLANE + 1u] = (uint8_t)plane;
            }
            CHECK_EQ(Begin(now_us, &pkt, SKY_LINK_NORTH), SKY_HELLO_TAKEN);
        }
    }
    /* 95 states are four packets; then they change all over again, and the rest waits for its time. */
    CHECK_EQ(Drain(now_us), 3u * SKY_HELLO_BURST + 1u); /* one back north: of ourselves, we know better */
    SKY_Map_Tell(&map, SKY_LINK_EAST);
    CHECK_EQ(Drain(now_us), 0);
    CHECK_EQ(SKY_Hello_NextDue(&hello), now_us + SKY_HELLO_PAUSE_US);
    now_us += SKY_HELLO_PAUSE_US;
    while (SKY_Hello_Next(&hello, now_us, &out))
    {
        CHECK_EQ(out.link, SKY_LINK_EAST);
        told += out.payload[SKY_HELLO_OFF_COUNT + 1u];
    }
    CHECK_EQ(told, 95);
    CHECK(SKY_Hello_NextDue(&hello) > now_us + SKY_HELLO_PAUSE_US);
}

/* A constellation that is larger than the map: hellos as ever, but nothing to tell. */
static void WithoutAMap(void)
{
    SKY_Packet_t pkt;

    StartWith(PERIOD_US, false);
    CHECK_EQ(Drain(START_US), 4);
    pkt = From(SKY_LINK_SOUTH, 99, 2, 1, 1);
    CHECK_EQ(Begin(START_US, &pkt, SKY_LINK_SOUTH), SKY_HELLO_ANSWER);
    CHECK_EQ(out.pkt.length, SKY_HELLO_BYTES);
    CHECK_EQ(Drain(START_US), 0);
    SKY_Hello_SetLink(&hello, START_US, SKY_LINK_EAST, true, true);
    CHECK_EQ(Drain(START_US), 0);
    CHECK(SKY_Hello_NextDue(&hello) > START_US);
    CHECK_EQ(router.usable, ALL_UP & ~(1u << SKY_LINK_EAST));
}

int main(void)
{
    RUN(Greetings);
    RUN(AnAnswerIsMeasured);
    RUN(AGreetingIsAnswered);
    RUN(NonsenseIsRefused);
    RUN(SilenceTakesALinkDown);
    RUN(CutsAndTables);
    RUN(LinksThatAreNotThere);
    RUN(ALinkThatFlapsIsHeldDown);
    RUN(NewsGoesOn);
    RUN(WhoKnowsSomethingElseIsTold);
    RUN(AWrongDigestIsAnsweredOnceInAPeriod);
    RUN(NoMapWithoutGreetings);
    RUN(MuchNewsIsPaced);
    RUN(WithoutAMap);
    return CHECK_RESULT();
}
