/**
 * @file
 * Satellites and hosts that talk to each other under tags, each over a library of its own, without a node around them. What one sends
 * is encoded, carried as bytes, and decoded by the other.
 */
#ifndef SECURITY_RIG_H
#define SECURITY_RIG_H

#include "crypto_rig.h"
#include "fixture.h"
#include "security_steps.h"

#define ESTABLISHED  4u
#define HALF_OPEN    3u
#define SESSIONS     3u
#define RETRY_US     20000u
#define ENDPOINT     UINT64_C(0x7F00000100001234)
#define REQUEST_ID   UINT64_C(0x0102030405060708)
#define WIRE_BYTES   2048u
#define MEMORY_WORDS 4096u
#define REKEY_PEERS  8u  /* satellites with keys that come over the air */
#define HOST_PLACE   40u /* of a host's session, beyond those of a satellite */

static const uint8_t master_0[SKY_CRYPTO_KEY_BYTES] = {1, 1};
static const uint8_t master_1[SKY_CRYPTO_KEY_BYTES] = {2, 2};
static const uint8_t master_2[SKY_CRYPTO_KEY_BYTES] = {3, 3};

static unsigned boots; /* of satellites, so far */

/* A satellite or a host. */
typedef struct
{
    crypto_rig_t     rig; /* the first member, so that the library's context leads to its party */
    SKY_Addr_t       addr;
    uint32_t         generations; /* satellite: mask of those of which it has keys with others */
    SKY_Addr_t       renewed;     /* satellite: the one with which it has other keys, of the same generations, now */
    SKY_Security_t   security;
    uint64_t         memory[MEMORY_WORDS];
    uint8_t          rekey_peers[SKY_REKEY_BANKS * REKEY_PEERS * SKY_CRYPTO_KEY_BYTES];
    SKY_Session_t    session; /* of a host */
    SKY_Credential_t credential;
    uint8_t          pair[SKY_CRYPTO_KEY_BYTES];
} party_t;

/* A packet on its way. */
typedef struct
{
    uint8_t      bytes[WIRE_BYTES];
    size_t       len;
    SKY_Packet_t pkt; /* decoded */
} wire_t;

/* The mission's table of keys between satellites. Satellites of plane 9 have none. */
static inline bool rig_peer_key(void *context, uint16_t plane, uint16_t slot, uint8_t generation,
                                uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const party_t *self    = context;
    const uint32_t one     = (uint32_t)self->addr.plane << 16 | self->addr.slot;
    const uint32_t two     = (uint32_t)plane << 16 | slot;
    const uint32_t both[2] = {one < two ? one : two, one < two ? two : one};

    (void)memset(key, generation, SKY_CRYPTO_KEY_BYTES);
    (void)memcpy(key, both, sizeof(both));
    key[sizeof(both)] ^= SKY_Addr_Equal(self->renewed, (SKY_Addr_t){plane, slot}) ? 1u : 0u;
    return plane != 9u && (self->generations & (1u << generation)) != 0u;
}

static inline SKY_SecurityCfg_t a_config(party_t *self)
{
    return (SKY_SecurityCfg_t){.crypto          = &self->rig.crypto,
                               .suites          = UINT32_MAX,
                               .peer_suite      = SKY_SUITE_BLAKE2B_HEADER,
                               .established_max = ESTABLISHED,
                               .half_open_max   = HALF_OPEN,
                               .session_max     = SESSIONS,
                               .retry_us        = RETRY_US,
                               .peer_key        = rig_peer_key,
                               .peer_context    = self,
                               .rekey_peers     = self->rekey_peers,
                               .rekey_peers_max = REKEY_PEERS};
}

/* Begin a satellite without a master key. */
static inline void open_unkeyed(party_t *satellite, uint16_t plane, uint16_t slot)
{
    uint8_t entropy[SKY_SECURITY_ENTROPY_BYTES];

    (void)memset(satellite, 0, sizeof(*satellite));
    crypto_rig_open(&satellite->rig);
    satellite->addr             = (SKY_Addr_t){plane, slot};
    satellite->generations      = 3;
    const SKY_SecurityCfg_t cfg = a_config(satellite);

    /* Each boot draws bytes of its own, and salt and secrets differ. */
    boots += 1u;
    for (size_t i = 0; i < sizeof(entropy); ++i)
    {
        entropy[i] = (uint8_t)((boots >> (i % 2u * 8u)) ^ i);
    }
    CHECK(SKY_Security_Init(&satellite->security, &cfg, satellite->addr, satellite->memory, sizeof(satellite->memory), entropy));
}

static inline void open_satellite(party_t *satellite, uint16_t plane, uint16_t slot)
{
    open_unkeyed(satellite, plane, slot);
    CHECK(SKY_Security_SetMaster(&satellite->security, 0, master_0));
}

/* Make a host with a credential for tenants 7 and 8, or that of a mission for any. */
static inline void open_host(party_t *host, SKY_Role_t role, uint8_t generation, const uint8_t *master)
{
    uint8_t bytes[SKY_CREDENTIAL_BYTES] = {(uint8_t)role, generation, 2, 0, 'h'};

    (void)memset(host, 0, sizeof(*host));
    crypto_rig_open(&host->rig);
    host->addr = (SKY_Addr_t){0, 77};
    if (role == SKY_ROLE_MISSION)
    {
        bytes[2] = SKY_CREDENTIAL_ANY_TENANT;
    }
    else
    {
        bytes[19] = 7;
        bytes[23] = 8;
    }
    CHECK(SKY_Credential_Decode(bytes, &host->credential));
    SKY_Keys_Pair(&host->rig.crypto, master, &host->credential, host->pair);
    SKY_Session_Init(&host->session, SKY_SUITE_BLAKE2B_PACKET, UINT32_MAX, HOST_PLACE, HOST_PLACE + 1u);
}

static inline void close_party(party_t *party)
{
    crypto_rig_close(&party->rig);
}

/* Carry a packet, with a tag if there is a key. Return false if it cannot be encoded. */
static inline bool carry(const SKY_Packet_t *pkt, const SKY_TagKey_t *key, wire_t *wire)
{
    uint8_t      tail[SKY_TAIL_MAX];
    const size_t head_len = SKY_Tag_EncodeAround(pkt, key, NULL, wire->bytes, tail);
    const size_t tail_len = SKY_Packet_TailBytes(pkt);

    if (head_len == 0u)
    {
        return false;
    }
    if (pkt->length > 0u)
    {
        (void)memcpy(wire->bytes + head_len, pkt->payload, pkt->length);
    }
    (void)memcpy(wire->bytes + head_len + pkt->length, tail, tail_len);
    wire->len = head_len + pkt->length + tail_len;
    CHECK_EQ(SKY_Packet_Decode(wire->bytes, wire->len, &wire->pkt), SKY_STATUS_OK);
    return true;
}

static inline SKY_Packet_t a_request(const party_t *from, const party_t *to, uint8_t op)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = op <= SKY_OP_MIGRATE ? SKY_APID_KVC : SKY_APID_ISL;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = op;
    pkt.hop_limit  = SKY_LIMIT_HOP_LIMIT;
    pkt.src        = from->addr;
    pkt.dst        = to->addr;
    pkt.request_id = REQUEST_ID;
    pkt.tenant     = 7;
    pkt.key[0]     = 1;
    return pkt;
}

/* ---- handshakes ---- */

/* Answer a handshake as a node does. Return false if it is refused. */
static inline bool answer(party_t *satellite, uint64_t now_us, const SKY_Packet_t *request, wire_t *back)
{
    const SKY_HandshakeOrigin_t origin = {ENDPOINT, false};
    SKY_SecurityHandshake_t     handshake;
    SKY_Packet_t                reply;
    const uint32_t              spi = SKY_Security_IsHandshake(&satellite->security, request, &handshake)
                                          ? SKY_Security_Handshake(&satellite->security, now_us, &origin, &handshake)
                                          : SKY_SPI_NONE;

    if (spi != SKY_SPI_NONE)
    {
        SKY_Packet_Reply(request, satellite->addr, SKY_STATUS_OK, &reply);
        reply.security = SKY_SUITE_HANDSHAKE;
        reply.spi      = spi;
        reply.length   = sizeof(handshake.payload);
        reply.payload  = handshake.payload;
        CHECK(carry(&reply, &handshake.key, back));
    }
    SKY_Security_Wipe(&satellite->security, &handshake, sizeof(handshake));
    for (size_t i = 0; i < sizeof(handshake.pair); ++i)
    {
        CHECK_EQ(handshake.pair[i], 0);
    }
    return spi != SKY_SPI_NONE;
}

/* Write the handshake of a host, with the word that a number chooses. */
static inline void ask(party_t *host, const party_t *satellite, uint64_t now_us, uint8_t number, wire_t *wire)
{
    const uint8_t      random[SKY_WORD_BYTES] = {number};
    const SKY_TagKey_t key                    = {&host->rig.crypto, 0, host->pair, NULL};
    uint8_t            payload[SKY_HANDSHAKE_REQUEST_BYTES];
    SKY_Packet_t       pkt = a_request(host, satellite, SKY_OP_ASSOCIATE);

    pkt.length   = (uint32_t)SKY_Session_Ask(&host->session, &host->credential, random, now_us, RETRY_US, payload);
    pkt.payload  = payload;
    pkt.security = SKY_SUITE_HANDSHAKE;
    CHECK_EQ(pkt.length, sizeof(payload));
    CHECK(carry(&pkt, &key, wire));
}

/* Let a host associate. Return false if the satellite refuses. */
static inline bool associate(party_t *host, party_t *satellite, uint64_t now_us, uint8_t number)
{
    const SKY_TagKey_t key = {&host->rig.crypto, 0, host->pair, host->session.word};
    wire_t             there;
    wire_t             back;

    SKY_Session_End(&host->session, &host->rig.crypto);
    host->session.next_us = 0;
    ask(host, satellite, now_us, number, &there);
    if (!answer(satellite, now_us, &there.pkt, &back))
    {
        return false;
    }
    CHECK(SKY_Tag_IsRight(&back.pkt, &key));
    CHECK_EQ(back.pkt.op, SKY_OP_ASSOCIATE);
    CHECK(SKY_Session_Take(&host->session, &host->rig.crypto, host->pair, back.pkt.spi, back.pkt.payload, back.pkt.length));
    return true;
}

/* Let a satellite send the handshake that is due, and another one answer it. Return false if none is due. */
static inline bool exchange(party_t *asker, party_t *other, uint64_t now_us)
{
    SKY_SecurityAsk_t out;
    wire_t            there;
    wire_t            back;

    if (!SKY_Security_NextAsk(&asker->security, now_us, &out))
    {
        return false;
    }
    CHECK(SKY_Addr_Equal(out.pkt.dst, other->addr));
    CHECK(carry(&out.pkt, &out.key, &there));
    CHECK(answer(other, now_us, &there.pkt, &back));
    CHECK(!SKY_Security_AdmitResponse(&asker->security, now_us, &back.pkt)); /* nothing for a service */
    return true;
}

/* ---- packets under an association ---- */

/* Tag a host's packet with its session. */
static inline void send(party_t *host, SKY_Packet_t *pkt, wire_t *wire)
{
    const SKY_TagKey_t key = {&host->rig.crypto, host->session.place_there, NULL, NULL};

    pkt->sequence = SKY_Session_NextSequence(&host->session);
    pkt->security = host->session.suite;
    pkt->spi      = host->session.spi;
    CHECK(carry(pkt, &key, wire));
}

static inline SKY_Admission_t admit(party_t *satellite, uint64_t now_us, const wire_t *wire)
{
    SKY_Association_t    *association;
    const SKY_Admission_t result = SKY_Security_Admit(&satellite->security, now_us, &wire->pkt, ENDPOINT + now_us, &association);

    CHECK_EQ(association != NULL, result == SKY_ADMIT_OK || result == SKY_ADMIT_REFUSED);
    return result;
}

#endif
