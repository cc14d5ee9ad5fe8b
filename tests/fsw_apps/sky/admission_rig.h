/**
 * @file
 * A satellite and hosts that ask it for something, and checks that what becomes of each request is counted.
 */
#ifndef ADMISSION_RIG_H
#define ADMISSION_RIG_H

#include "security_rig.h"

#define NOW UINT64_C(5000000)

static party_t satellite, host, other;

static inline const uint64_t *counter_of(const SKY_SecurityCounters_t *counters, SKY_Admission_t result)
{
    static const uint64_t zero = 0;

    return result == SKY_ADMIT_UNAUTHENTICATED ? &counters->unauthenticated
           : result == SKY_ADMIT_REFUSED       ? &counters->refused
           : result == SKY_ADMIT_DROP          ? &counters->replayed
                                               : &zero;
}

/* Let a packet in that is on the wire, and check that what happens is counted. */
static inline SKY_Admission_t arrive(const wire_t *wire)
{
    const SKY_SecurityCounters_t before = satellite.security.counters;
    const SKY_Admission_t        result = admit(&satellite, NOW, wire);
    const SKY_SecurityCounters_t after  = satellite.security.counters;

    CHECK_EQ(*counter_of(&after, result), *counter_of(&before, result) + (result == SKY_ADMIT_OK ? 0u : 1u));
    CHECK_EQ(after.unauthenticated + after.refused + after.replayed,
             before.unauthenticated + before.refused + before.replayed + (result == SKY_ADMIT_OK ? 0u : 1u));
    CHECK_EQ(after.unauthenticated, after.no_association + after.wrong_tag + after.handshakes);
    CHECK_EQ(after.refused, after.wrong_role + after.wrong_tenant);
    return result;
}

/* Let a host ask for something under its session. */
static inline SKY_Admission_t ask_as(party_t *who, SKY_Packet_t pkt)
{
    wire_t wire;

    send(who, &pkt, &wire);
    return arrive(&wire);
}

static inline SKY_Admission_t ask_for(SKY_Packet_t pkt)
{
    return ask_as(&host, pkt);
}

static inline void open(SKY_Role_t role)
{
    open_satellite(&satellite, 1, 2);
    open_host(&host, role, 0, master_0);
    CHECK(associate(&host, &satellite, NOW, 1));
}

static inline void close_all(void)
{
    close_party(&satellite);
    close_party(&host);
}

/* Let another satellite associate, by its own means. */
static inline void open_peer(void)
{
    open_satellite(&satellite, 1, 2);
    (void)memset(&host, 0, sizeof(host));
    crypto_rig_open(&host.rig);
    host.addr        = (SKY_Addr_t){1, 3};
    host.generations = 3;
    SKY_Credential_OfSatellite(host.addr, 0, &host.credential);
    CHECK(rig_peer_key(&host, 1, 2, 0, host.pair));
    SKY_Session_Init(&host.session, SKY_SUITE_BLAKE2B_HEADER, UINT32_MAX, HOST_PLACE, HOST_PLACE + 1u);
    CHECK(associate(&host, &satellite, NOW, 1));
}

#endif
