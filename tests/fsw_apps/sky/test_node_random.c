/**
 * @file
 * Two neighbours and hosts that ask them at random, over links that lose, repeat and reorder. Satellites start again, and their keys
 * change. No number is used twice under one key, only what was asked for is believed, and in the end all goes on.
 */
#define STEPS        20000u
#define MADE_MAX     (2u * STEPS)
#define MADE_PARTIES 3u /* the two, and the ground */

#include "fixture.h"
#include "made_tags.h"
#include "pair_rig.h"

#define HOSTS 3u

enum
{
    NEAR = 0, /* a host that asks the western satellite */
    FAR,      /* the same one, with the eastern satellite */
    MISSION   /* it listens to telemetry of the western one */
};

static party_t  hosts[HOSTS];
static uint32_t words, boots;
static uint32_t trusted, telemetry;
static uint64_t next_us[HOSTS]; /* when a host may ask for an association again */

static const int asked_of[HOSTS] = {WESTERN, EASTERN, WESTERN};

/* A host takes what comes down. */
static void take_down(const SKY_Packet_t *pkt)
{
    for (uint32_t i = 0; i < HOSTS; ++i)
    {
        party_t *party = &hosts[i];

        if (!SKY_Addr_Equal(pkt->dst, party->addr) || !SKY_Addr_Equal(pkt->src, addrs[asked_of[i]]))
        {
            continue;
        }
        if (pkt->security == SKY_SUITE_HANDSHAKE)
        {
            (void)party_take(party, pkt);
        }
        else if (pkt->security != SKY_SUITE_NONE)
        {
            const bool is_right = party->session.state == SKY_SESSION_ESTABLISHED && pkt->spi == party->session.spi;

            CHECK(!is_right || party_trusts(party, pkt));
            trusted += is_right ? 1u : 0u;
            telemetry += is_right && (pkt->flags & SKY_FLAG_TLM) != 0u ? 1u : 0u;
        }
    }
}

/* A packet leaves a satellite: it is its own, or it is passed on. */
static void watch_sent(int which, const uint8_t *bytes, uint32_t len)
{
    SKY_Packet_t pkt;

    CHECK_EQ(SKY_Packet_Decode(bytes, len, &pkt), SKY_STATUS_OK);
    if (SKY_Addr_Equal(pkt.src, addrs[which]) && pkt.security != SKY_SUITE_NONE && pkt.security != SKY_SUITE_HANDSHAKE)
    {
        CHECK(made_last.sequence == pkt.sequence);
        made_add();
    }
    if (pkt.dst.plane == 0u && SKY_Addr_Equal(pkt.gateway, addrs[which]))
    {
        take_down(&pkt);
    }
}

static void start_again(int which, uint64_t now_us)
{
    crypto_rig_close(&satellites[which].rig);
    crypto_rig_open(&satellites[which].rig);
    made_watch((size_t)which, &satellites[which].rig);
    ++boots;
    boot(which, now_us, (uint8_t)boots);
}

static void begin(void)
{
    open();
    words = boots = trusted = telemetry = 0;
    made_count                          = 0;
    (void)memset(next_us, 0, sizeof(next_us));
    made_watch(PAIR, &theirs);
    start_again(WESTERN, 1);
    start_again(EASTERN, 1);
    party_host(&hosts[NEAR], &theirs.crypto, NEAR, SKY_ROLE_HOST, HOST, GROUND);
    party_host(&hosts[FAR], &theirs.crypto, FAR, SKY_ROLE_HOST, HOST, GROUND);
    party_host(&hosts[MISSION], &theirs.crypto, MISSION, SKY_ROLE_MISSION, HOST + 1u, GROUND);
    on_sent = watch_sent;
}

/* A host sends something to the western satellite, which passes on what is for the other one. Some of it is lost, or comes twice. */
static void send_up(uint64_t now_us, uint64_t *seed, uint8_t *wire, uint32_t len)
{
    uint8_t        copy[PARTY_WIRE];
    const uint32_t times = fx_below(seed, 10) == 0u ? 2u : fx_below(seed, 10) == 0u ? 0u : 1u;

    for (uint32_t i = 0; i < times; ++i)
    {
        (void)memcpy(copy, wire, len);
        SKY_Node_Receive(&satellites[WESTERN].node, now_us, copy, len, GROUND);
    }
}

static void host_asks(uint64_t now_us, uint64_t *seed)
{
    static const uint8_t ops[] = {SKY_OP_PING, SKY_OP_STATS, SKY_OP_GET, SKY_OP_RELAY, SKY_OP_HELLO, SKY_OP_ASSOCIATE};
    const uint32_t       which = fx_below(seed, HOSTS);
    party_t             *party = &hosts[which];
    const uint8_t        op    = ops[fx_below(seed, sizeof(ops))];
    SKY_Packet_t         pkt   = host_request(asked_of[which], op);
    uint8_t              wire[PARTY_WIRE];

    pkt.apid   = op == SKY_OP_GET ? APID : SKY_APID_ISL;
    pkt.flags  = op == SKY_OP_RELAY ? SKY_FLAG_TLM : 0;
    pkt.cookie = hosts[NEAR].cookie;
    if (now_us >= next_us[which] && (party->session.state != SKY_SESSION_ESTABLISHED || fx_below(seed, 20) == 0u))
    {
        next_us[which] = now_us + RETRY_US;
        ++words; /* no word comes again */
        (void)memcpy(party->random + 2, &words, sizeof(words));
        SKY_Session_End(&party->session, party->crypto);
        party->session.next_us = 0;
        pkt                    = host_request(asked_of[which], SKY_OP_ASSOCIATE);
        pkt.cookie             = hosts[NEAR].cookie;
        send_up(now_us, seed, wire, party_handshake(party, &pkt, now_us, wire));
    }
    else if (party->session.state == SKY_SESSION_ESTABLISHED)
    {
        const uint32_t len = party_request(party, &pkt, wire);

        made_add();
        send_up(now_us, seed, wire, len);
    }
}

/* One of the packets on their way arrives, or is lost; some come again later. */
static void deliver(uint64_t now_us, uint64_t *seed)
{
    const uint32_t at  = fx_below(seed, flying_count);
    const flying_t one = flying[at];
    uint8_t        bytes[PARTY_WIRE];

    if (fx_below(seed, 20) != 0u || flying_count > FLYING / 2u)
    {
        --flying_count;
        flying[at] = flying[flying_count];
    }
    if (fx_below(seed, 20) != 0u)
    {
        (void)memcpy(bytes, one.bytes, one.len);
        SKY_Node_Receive(&satellites[one.to].node, now_us, bytes, one.len, endpoint_of(1 - one.to));
    }
}

static void step(uint64_t now_us, uint64_t *seed)
{
    const int which = (int)fx_below(seed, PAIR);

    switch (fx_below(seed, 12))
    {
        case 0:
            ask_neighbour(which, now_us);
            break;
        case 1:
            SKY_Node_Telemetry(&satellites[WESTERN].node, now_us, (const uint8_t *)"telemetry", 9);
            break;
        case 2:
            SKY_Node_Run(&satellites[which].node, now_us);
            break;
        case 3:
            if (fx_below(seed, 50) == 0u)
            {
                start_again(which, now_us);
            }
            break;
        case 4:
            if (fx_below(seed, 50) == 0u) /* the other one may ask under the keys of before for a while */
            {
                SKY_Security_t *security   = &satellites[which].security;
                const uint8_t   generation = (uint8_t)(1u - security->generation);

                CHECK(SKY_Security_SetMaster(security, generation, party_master));
            }
            break;
        default:
            host_asks(now_us, seed);
            break;
    }
    for (uint32_t i = fx_below(seed, 4); flying_count > 0u && (i > 0u || flying_count > FLYING / 2u); i -= i > 0u ? 1u : 0u)
    {
        deliver(now_us, seed);
    }
}

static void test_a_run_at_random(void)
{
    for (uint64_t number = 1; number <= 3u; ++number)
    {
        uint64_t seed   = number * 104729u;
        uint64_t now_us = 1;

        begin();
        for (uint32_t i = 0; i < STEPS; ++i)
        {
            now_us += fx_below(&seed, 40000);
            step(now_us, &seed);
        }
        CHECK(trusted > STEPS / 10u);
        CHECK(telemetry > STEPS / 100u);
        CHECK(made_count > STEPS / 2u);
        CHECK(boots > 10u && boots < 128u);
        CHECK(made_is_none_twice());
        (void)printf("  %zu tags, %u answers, %u of them telemetry, %u starts\n", made_count, trusted, telemetry, boots);
        made_count              = 0;
        const uint32_t answered = satellites[WESTERN].answered;

        pass(&now_us, 20);
        CHECK(is_up(WESTERN) && is_up(EASTERN));
        ask_neighbour(WESTERN, now_us);
        settle(now_us);
        CHECK_EQ(satellites[WESTERN].answered, answered + 1u);
        on_sent = NULL;
        end();
    }
}

int main(void)
{
    RUN(test_a_run_at_random);
    return CHECK_RESULT();
}
