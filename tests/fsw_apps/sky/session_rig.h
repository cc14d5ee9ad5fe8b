/**
 * @file
 * A satellite that asks others, as many as have room and more, without a node around them.
 */
#ifndef SESSION_RIG_H
#define SESSION_RIG_H

#include "security_rig.h"

#define NOW      UINT64_C(60000000)
#define IDLE_US  UINT64_C(10000000) /* a session that nobody waited for so long is given up */
#define PEERS    5u
#define WORST_US UINT64_MAX

static party_t satellite, peers[PEERS];

static inline void open(uint32_t count)
{
    open_satellite(&satellite, 1, 1);
    for (uint32_t i = 0; i < count; ++i)
    {
        open_satellite(&peers[i], 1, (uint16_t)(2u + i));
    }
}

static inline void close_all(uint32_t count)
{
    close_party(&satellite);
    for (uint32_t i = 0; i < count; ++i)
    {
        close_party(&peers[i]);
    }
}

static inline const SKY_SecuritySession_t *entry_of(const party_t *peer)
{
    for (uint32_t i = 0; i < SESSIONS; ++i)
    {
        if (SKY_Addr_Equal(satellite.security.sessions[i].satellite, peer->addr))
        {
            return &satellite.security.sessions[i];
        }
    }
    return NULL;
}

/* Let the satellite prepare a packet to another. Return what SKY_Security_Prepare says; 1: it is on the wire. */
static inline int send_to(const party_t *peer, uint64_t now_us, wire_t *wire)
{
    SKY_Packet_t pkt = a_request(&satellite, peer, SKY_OP_GET);
    SKY_TagKey_t key;
    const int    way = SKY_Security_Prepare(&satellite.security, now_us, &pkt, NULL, &key);

    CHECK_EQ(pkt.security == SKY_SUITE_NONE, way <= 0);
    if (way > 0)
    {
        CHECK(carry(&pkt, &key, wire));
    }
    return way;
}

/* Let another satellite answer a request. Return false if it does not take it. */
static inline bool answer_request(party_t *peer, uint64_t now_us, const SKY_Packet_t *request, wire_t *back)
{
    SKY_Association_t *association;
    SKY_Packet_t       reply;
    SKY_TagKey_t       key;

    if (SKY_Security_Admit(&peer->security, now_us, request, ENDPOINT, &association) != SKY_ADMIT_OK)
    {
        return false;
    }
    SKY_Packet_Reply(request, peer->addr, SKY_STATUS_NOT_FOUND, &reply);
    CHECK_EQ(SKY_Security_Prepare(&peer->security, now_us, &reply, association, &key), 1);
    CHECK_EQ(reply.spi, request->spi);
    CHECK(carry(&reply, &key, back));
    return true;
}

/* Begin a session with another satellite. */
static inline void begin(party_t *peer, uint64_t now_us)
{
    want_session(&satellite.security, now_us, peer->addr);
    CHECK(exchange(&satellite, peer, now_us));
    CHECK(SKY_Security_IsFresh(&satellite.security, peer->addr));
}

/* Take a response in, and check whether it counts as unauthenticated. */
static inline bool take(uint64_t now_us, const wire_t *wire, bool is_wrong)
{
    const uint64_t before = satellite.security.counters.unauthenticated;
    const bool     taken  = SKY_Security_AdmitResponse(&satellite.security, now_us, &wire->pkt);

    const SKY_SecurityCounters_t *counters = &satellite.security.counters;

    CHECK_EQ(counters->unauthenticated, before + (is_wrong ? 1u : 0u));
    CHECK_EQ(counters->unauthenticated, counters->no_association + counters->wrong_tag + counters->handshakes);
    return taken;
}

#endif
