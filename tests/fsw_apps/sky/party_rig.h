/**
 * @file
 * Those who ask a secured satellite, played by hand: a ground host or another satellite with a pair key, which associates and puts
 * tags on its packets.
 */
#ifndef PARTY_RIG_H
#define PARTY_RIG_H

#include "crypto_rig.h"
#include "sky.h"

#define PARTY_WIRE 4096u

static const uint8_t party_master[SKY_CRYPTO_KEY_BYTES] = {1, 1, 2, 3, 5, 8};

typedef struct
{
    SKY_Addr_t          addr;
    uint64_t            endpoint;
    const SKY_Crypto_t *crypto;
    SKY_Credential_t    credential;
    uint8_t             pair[SKY_CRYPTO_KEY_BYTES];
    uint8_t             random[SKY_WORD_BYTES];
    SKY_Session_t       session;
    uint64_t            cookie;
} party_t;

/* The key between two satellites, as the mission's table has it. Generations 0 and 1 only. */
static inline bool party_peer_key(void *context, uint16_t plane, uint16_t slot, uint8_t generation,
                                  uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    const SKY_Addr_t *self = context;

    (void)memset(key, 0, SKY_CRYPTO_KEY_BYTES);
    key[0] = (uint8_t)(plane + self->plane); /* the same from both sides */
    key[1] = (uint8_t)(slot + self->slot);
    key[2] = generation;
    return generation <= 1u;
}

/* @param number  from 0: which places of the library it takes */
static inline void party_open(party_t *party, const SKY_Crypto_t *crypto, uint32_t number, SKY_Addr_t addr, uint64_t endpoint)
{
    (void)memset(party, 0, sizeof(*party));
    party->addr      = addr;
    party->endpoint  = endpoint;
    party->crypto    = crypto;
    party->random[0] = (uint8_t)(number + 1u);
    SKY_Session_Init(&party->session, SKY_SUITE_BLAKE2B_PACKET, UINT32_MAX, 2u * number, 2u * number + 1u);
}

/* A ground host. @param role  host or mission */
static inline void party_host(party_t *party, const SKY_Crypto_t *crypto, uint32_t number, SKY_Role_t role, uint16_t host,
                              uint64_t endpoint)
{
    const uint8_t bytes[SKY_CREDENTIAL_BYTES] = {(uint8_t)role, 0, SKY_CREDENTIAL_ANY_TENANT};

    party_open(party, crypto, number, (SKY_Addr_t){0, host}, endpoint);
    CHECK(SKY_Credential_Decode(bytes, &party->credential));
    SKY_Keys_Pair(crypto, party_master, &party->credential, party->pair);
}

/* A satellite that talks to @p other. */
static inline void party_satellite(party_t *party, const SKY_Crypto_t *crypto, uint32_t number, SKY_Addr_t addr, SKY_Addr_t other,
                                   uint64_t endpoint)
{
    party_open(party, crypto, number, addr, endpoint);
    SKY_Credential_OfSatellite(addr, 0, &party->credential);
    CHECK(party_peer_key(&party->addr, other.plane, other.slot, 0, party->pair));
}

/* Write a datagram. @param key  NULL: without a tag */
static inline uint32_t party_encode(const SKY_Packet_t *pkt, const SKY_TagKey_t *key, uint8_t *wire)
{
    uint8_t        head[SKY_HEAD_MAX];
    uint8_t        tail[SKY_TAIL_MAX];
    const uint32_t tail_len = SKY_Packet_TailBytes(pkt);
    const uint32_t head_len = (uint32_t)SKY_Tag_EncodeAround(pkt, key, NULL, head, tail);

    CHECK(head_len > 0 && head_len + pkt->length + tail_len <= PARTY_WIRE);
    (void)memcpy(wire, head, head_len);
    if (pkt->length > 0)
    {
        (void)memcpy(wire + head_len, pkt->payload, pkt->length);
    }
    (void)memcpy(wire + head_len + pkt->length, tail, tail_len);
    return head_len + pkt->length + tail_len;
}

/* Make a request the party's, under its association. @return bytes of the datagram */
static inline uint32_t party_request(party_t *party, SKY_Packet_t *pkt, uint8_t *wire)
{
    const SKY_TagKey_t key = {party->crypto, party->session.place_there, NULL, NULL};

    pkt->src      = party->addr;
    pkt->security = party->session.suite;
    pkt->spi      = party->session.spi;
    pkt->sequence = SKY_Session_NextSequence(&party->session);
    CHECK(pkt->sequence != 0);
    return party_encode(pkt, &key, wire);
}

/* Make a request the handshake that is due. @return bytes of the datagram */
static inline uint32_t party_handshake(party_t *party, SKY_Packet_t *pkt, uint64_t now_us, uint8_t *wire)
{
    const SKY_TagKey_t key = {party->crypto, 0, party->pair, NULL};
    static uint8_t     payload[SKY_HANDSHAKE_REQUEST_BYTES];

    ++party->random[1];
    pkt->src      = party->addr;
    pkt->security = SKY_SUITE_HANDSHAKE;
    pkt->payload  = payload;
    pkt->length   = (uint32_t)SKY_Session_Ask(&party->session, &party->credential, party->random, now_us, 1, payload);
    CHECK_EQ(pkt->length, sizeof(payload));
    return party_encode(pkt, &key, wire);
}

/* Take the answer to a handshake. @return false if it is none */
static inline bool party_take(party_t *party, const SKY_Packet_t *pkt)
{
    const SKY_TagKey_t key = {party->crypto, 0, party->pair, party->session.word};

    if (pkt->security != SKY_SUITE_HANDSHAKE || pkt->status != SKY_STATUS_OK || !SKY_Tag_IsRight(pkt, &key))
    {
        return false;
    }
    party->cookie = pkt->cookie;
    return SKY_Session_Take(&party->session, party->crypto, party->pair, pkt->spi, pkt->payload, pkt->length);
}

/* Return true if an answer has the right tag of the party's association. */
static inline bool party_trusts(const party_t *party, const SKY_Packet_t *pkt)
{
    const SKY_TagKey_t key = {party->crypto, party->session.place_back, NULL, NULL};

    return pkt->spi == party->session.spi && pkt->security == party->session.suite && SKY_Tag_IsRight(pkt, &key);
}

#endif
