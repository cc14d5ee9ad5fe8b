/**
 * @file
 * A node with security, and those who ask it: hosts and neighbours that are played by hand.
 */
#ifndef GUARD_RIG_H
#define GUARD_RIG_H

#include "node_rig.h"
#include "party_rig.h"
#include "security_steps.h"

#define SESSIONS    4u
#define ESTABLISHED 4u
#define HALF_OPEN   2u
#define RETRY_US    (SECOND_US / 4u)

static crypto_rig_t   ours, theirs;
static SKY_Security_t security;
static uint64_t       memory[4096];
static party_t        host, mission, east;
static SKY_Addr_t     own = {2, 2};

static const uint8_t    entropy[SKY_SECURITY_ENTROPY_BYTES] = "as good as random for a test";
static const SKY_Addr_t in_the_east                         = {2, 3};

static inline SKY_SecurityCfg_t security_cfg(void)
{
    return (SKY_SecurityCfg_t){
        .crypto          = &ours.crypto,
        .suites          = UINT32_MAX,
        .peer_suite      = SKY_SUITE_BLAKE2B_HEADER,
        .established_max = ESTABLISHED,
        .half_open_max   = HALF_OPEN,
        .session_max     = SESSIONS,
        .retry_us        = RETRY_US,
        .peer_key        = party_peer_key,
        .peer_context    = &own,
    };
}

/* The satellite with security, and all who ask it. @param hello_us  0: nobody greets */
static inline void secure(bool is_keyed, uint64_t hello_us)
{
    const SKY_SecurityCfg_t how = security_cfg();

    crypto_rig_open(&ours);
    crypto_rig_open(&theirs);
    CHECK(SKY_Security_Init(&security, &how, self, memory, sizeof(memory), entropy));
    if (is_keyed)
    {
        CHECK(SKY_Security_SetMaster(&security, 0, party_master));
    }
    party_host(&host, &theirs.crypto, 0, SKY_ROLE_HOST, HOST, GROUND);
    party_host(&mission, &theirs.crypto, 1, SKY_ROLE_MISSION, HOST + 1u, GROUND + 1u);
    party_satellite(&east, &theirs.crypto, 2, in_the_east, self, endpoint_of(SKY_LINK_EAST));
    set_up();
    cfg.hello_us = hello_us;
    CHECK_EQ(SKY_Node_Configure(&node, 0, &cfg), SKY_NODE_CONFIGURED);
    SKY_Node_Secure(&node, &security);
}

static inline void end(void)
{
    crypto_rig_close(&ours);
    crypto_rig_close(&theirs);
}

static inline void come_bytes(uint64_t now_us, uint8_t *wire, uint32_t len, uint64_t endpoint)
{
    sent_count = 0;
    sent_bytes = 0;
    SKY_Node_Receive(&node, now_us, wire, len, endpoint);
}

/* A request comes under the association of its sender. */
static inline void ask(uint64_t now_us, party_t *party, SKY_Packet_t *pkt)
{
    static uint8_t wire[PARTY_WIRE];

    come_bytes(now_us, wire, party_request(party, pkt, wire), party->endpoint);
}

/* A handshake comes. @return true if it was answered rightly */
static inline bool associate_with(uint64_t now_us, party_t *party, uint64_t cookie)
{
    static uint8_t wire[PARTY_WIRE];
    SKY_Packet_t   pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);

    pkt.cookie = cookie;
    come_bytes(now_us, wire, party_handshake(party, &pkt, now_us, wire), party->endpoint);
    if (sent_count != 1u)
    {
        return false;
    }
    pkt = answer();
    CHECK_EQ(pkt.request_id, 77);
    return party_take(party, &pkt);
}

static inline bool associate(uint64_t now_us, party_t *party)
{
    return associate_with(now_us, party, SKY_COOKIE_NONE);
}

/* Return the status of the answer, which came under the association of @p party. */
static inline SKY_Status_t answered(const party_t *party)
{
    SKY_Packet_t pkt;

    CHECK_EQ(sent_count, 1);
    pkt = answer();
    CHECK(party_trusts(party, &pkt));
    CHECK_EQ(sent_endpoint, party->endpoint);
    return pkt.status;
}

/* An associated party asks for the cookie that opens the way through the satellite. */
static inline void take_cookie(uint64_t now_us, party_t *party)
{
    SKY_Packet_t pkt = request_of(SKY_APID_ISL, SKY_OP_ASSOCIATE);

    ask(now_us, party, &pkt);
    CHECK_EQ(answered(party), SKY_STATUS_OK);
    party->cookie = answer().cookie;
    CHECK(party->cookie != SKY_COOKIE_NONE);
}

static inline uint64_t counter(uint64_t now_us, party_t *party, uint32_t number)
{
    SKY_Packet_t pkt   = request_of(SKY_APID_ISL, SKY_OP_STATS);
    uint64_t     value = 0;

    if (party == NULL)
    {
        pkt.src = in_the_east; /* neighbours of a satellite without keys are not asked for cookies */
        come(now_us, &pkt, endpoint_of(SKY_LINK_EAST));
    }
    else
    {
        ask(now_us, party, &pkt);
    }
    pkt = answer();
    CHECK(pkt.length >= SKY_STATS_ISL_COUNT * 8u);
    for (uint32_t i = 0; i < 8u && pkt.length >= (number + 1u) * 8u; ++i)
    {
        value = value << 8 | pkt.payload[number * 8u + i];
    }
    return value;
}

static inline uint32_t known_hosts(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < SKY_ROUTER_GROUNDS; ++i)
    {
        count += node.router.grounds[i].used ? 1u : 0u;
    }
    return count;
}

#endif
