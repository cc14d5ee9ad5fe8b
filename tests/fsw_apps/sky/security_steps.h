/**
 * @file
 * Steps of tests about a satellite's security, by what flight software calls.
 */
#ifndef SECURITY_STEPS_H
#define SECURITY_STEPS_H

#include <string.h>

#include "fixture.h"
#include "sky_security.h"

/* Let a packet wait for a session with a satellite, so that a handshake with it is due. */
static inline void want_session(SKY_Security_t *security, uint64_t now_us, SKY_Addr_t with)
{
    SKY_Packet_t pkt;
    SKY_TagKey_t key;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = SKY_APID_ISL;
    pkt.op         = SKY_OP_PING;
    pkt.src        = security->self;
    pkt.dst        = with;
    CHECK_EQ(SKY_Security_Prepare(security, now_us, &pkt, NULL, &key), -1);
}

/* Take over a table with one master key. */
static inline void keep_master(SKY_Security_t *security, uint8_t generation, const uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    SKY_MasterKey_t masters[SKY_MASTER_KEYS] = {{.is_set = true, .generation = generation}};

    (void)memcpy(masters[0].key, key, SKY_CRYPTO_KEY_BYTES);
    SKY_Security_TakeMasters(security, masters);
}

#endif
