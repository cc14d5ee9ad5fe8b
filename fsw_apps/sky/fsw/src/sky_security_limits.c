/**
 * @file
 * Rates of those who have shown nothing, or only that their address can be reached: see sky_security.h.
 *
 * A source is an address: all ports of one count together. Who has shown that its address can be reached has buckets of its own, so invented
 * addresses take nothing from it. No honest host comes near to any of these rates: it opens a satellite with one or two packets, and again
 * after a minute.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_endpoint.h"
#include "sky_index.h"
#include "sky_security_priv.h"

/*
 * Answers have few bytes more than what they answer. The rate of one address is for whoever is flooded with them. Openings (operation `associate`)
 * have as much again for themselves, as their answers give cookies: no flood of other packets keeps a host from getting one. A flood of openings
 * does not either. It only takes more tries, since each opening that comes may be the one for which there is room again.
 */
#define ANSWERS_PER_S     1024u
#define ANSWERS_BURST     1024u
#define ALL_ANSWERS_PER_S 16384u
#define ALL_ANSWERS_BURST 16384u

/* A handshake costs 20 us or so, and more without a fast library. */
#define HANDSHAKES_PER_S     256u
#define HANDSHAKES_BURST     1024u
#define ALL_HANDSHAKES_PER_S 1024u
#define ALL_HANDSHAKES_BURST 4096u

/* More than one satellite takes in from one socket. */
#define BYTES_PER_S (1u << 30)
#define BYTES_BURST (1u << 26)
#define SLOT_BYTES  6144u /* as most stores have them: those of other apps are not known here */
#define ENTRY_BYTES 208u  /* entries of a chunk and of its block */

#define GREETING (UINT64_C(1) << 63) /* no endpoint has this bit, so the cookie is another one */

static uint64_t AddressOf(uint64_t endpoint)
{
    SKY_ASSERT(endpoint != 0u);
    SKY_ASSERT((endpoint & GREETING) == 0u);
    return SKY_Endpoint_Address(endpoint);
}

static bool Count(SKY_Security_t *security, bool may)
{
    SKY_ASSERT(security->sessions != NULL);
    security->counters.limited += may ? 0u : 1u;
    return may;
}

void SKY_SecurityLimits_Init(SKY_Security_t *security)
{
    static const char      what[] = "rates";
    const SKY_Crypto_t    *crypto = security->cfg.crypto;
    const SKY_CryptoPart_t part   = {what, sizeof(what)};
    uint64_t               secret[SKY_RATE_SECRET_WORDS];

    SKY_ASSERT(security->sessions != NULL);
    SKY_ASSERT(sizeof(secret) <= SKY_CRYPTO_HASH_BYTES);
    crypto->Hash(crypto->context, security->word_secret, sizeof(security->word_secret), &part, 1, (uint8_t *)secret,
                 sizeof(secret));
    (void)memset(&security->rates, 0, sizeof(security->rates));
    SKY_Rates_Init(&security->rates.answers, secret);
    SKY_Rates_Init(&security->rates.openings, secret);
    SKY_Rates_Init(&security->rates.handshakes, secret);
    SKY_Rates_Init(&security->rates.bytes, secret);
}

uint64_t SKY_Security_GreetingCookieOf(const SKY_Security_t *security, uint64_t now_us, uint64_t endpoint)
{
    SKY_ASSERT(endpoint != 0u);
    SKY_ASSERT((endpoint & GREETING) == 0u);
    return SKY_Cookies_Make(&security->cookies, security->cfg.crypto, security->is_keyed ? endpoint | GREETING : endpoint,
                            now_us);
}

bool SKY_Security_IsReachable(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    const SKY_Crypto_t *crypto = security->cfg.crypto;
    SKY_ASSERT(endpoint != 0u);
    SKY_ASSERT((endpoint & GREETING) == 0u);

    return SKY_Cookies_IsValid(&security->cookies, crypto, endpoint, now_us, pkt->cookie) ||
           SKY_Cookies_IsValid(&security->cookies, crypto, endpoint | GREETING, now_us, pkt->cookie);
}

/*
 * Return the bytes of a store that the chunk of a PUT takes. A large chunk has a slot for itself. A smaller one has a cell, which is less than
 * twice as long (sky_slab.h).
 */
static uint32_t StoreBytesOf(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->op == SKY_OP_PUT);
    const uint32_t bytes = pkt->chunk_len < SLOT_BYTES / 2u - ENTRY_BYTES ? 2u * (pkt->chunk_len + ENTRY_BYTES) : SLOT_BYTES;

    SKY_ASSERT(bytes <= SLOT_BYTES);
    return bytes;
}

/* Return a digest of what names the memory that a PUT takes; never 0. Nobody can aim at that of another chunk. */
static uint32_t MemoryOf(const SKY_Security_t *security, const SKY_Packet_t *pkt)
{
    uint64_t words[2u + SKY_KEY_BYTES / sizeof(uint64_t)];
    SKY_ASSERT(pkt->op == SKY_OP_PUT);
    SKY_ASSERT(SKY_KEY_BYTES % sizeof(uint64_t) == 0u);

    words[0] = (uint64_t)pkt->tenant << 32 | pkt->chunk_id;
    words[1] = (uint64_t)pkt->chunk_len << 32 | (uint64_t)pkt->dst.plane << 16 | pkt->dst.slot;
    (void)memcpy(&words[2], pkt->key, SKY_KEY_BYTES);
    return SKY_Hash(security->rates.bytes.secret, words, sizeof(words) / sizeof(words[0])) | 1u;
}

static bool IsAmong(const SKY_SecurityChunks_t *chunks, uint32_t digest)
{
    bool is_among = false;

    SKY_ASSERT(digest != 0u);
    SKY_ASSERT(chunks->next < SKY_SECURITY_CHUNKS);
    for (uint32_t i = 0; i < SKY_SECURITY_CHUNKS; ++i)
    {
        is_among = is_among || chunks->digests[i] == digest;
    }
    return is_among;
}

/*
 * Nothing here knows whether the store has memory for a chunk already; it may be that of another satellite. So the first part to come is charged for
 * all of it, whichever that is. Others that follow at once are not. Who cycles through the few chunks that are remembered has only their memory.
 * A whole chunk may pay for its memory by its bytes, and no part follows it. Then nothing is remembered of it.
 */
bool SKY_Security_MayAsk(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    static const SKY_RateLimit_t limit  = {BYTES_PER_S, BYTES_BURST};
    const uint32_t               bucket = SKY_Rates_BucketOf(&security->rates.bytes, AddressOf(endpoint));
    const uint32_t               bytes  = pkt->length + SKY_REQUEST_BYTES;
    const uint32_t               needed = pkt->op == SKY_OP_PUT ? StoreBytesOf(pkt) : 0u;
    SKY_SecurityChunks_t        *chunks = &security->rates.chunks[bucket];
    SKY_ASSERT(!security->is_keyed);
    SKY_ASSERT(pkt->is_request);

    const bool     has_paid = bytes >= needed && pkt->length == pkt->chunk_len;
    const uint32_t memory   = needed > 0u && !has_paid ? MemoryOf(security, pkt) : 0u;
    const bool     is_new   = memory != 0u && !IsAmong(chunks, memory);
    const uint32_t amount   = is_new && bytes < needed ? needed : bytes;

    if (!SKY_Rate_Take(&security->rates.bytes.buckets[bucket], now_us, limit, amount))
    {
        return Count(security, false);
    }
    if (is_new)
    {
        chunks->digests[chunks->next] = memory;
        chunks->next                  = (chunks->next + 1u) % SKY_SECURITY_CHUNKS;
    }
    return true;
}

bool SKY_Security_MayGreet(SKY_Security_t *security, uint64_t now_us, const SKY_HandshakeOrigin_t *origin)
{
    static const SKY_RateLimit_t limit = {HANDSHAKES_PER_S, HANDSHAKES_BURST};
    static const SKY_RateLimit_t all   = {ALL_HANDSHAKES_PER_S, ALL_HANDSHAKES_BURST};
    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(origin->endpoint != 0u);

    if (origin->is_reachable)
    {
        return Count(security, SKY_Rates_Take(&security->rates.handshakes, now_us, limit, AddressOf(origin->endpoint), 1));
    }
    return Count(security, SKY_Rate_Take(&security->rates.all_handshakes, now_us, all, 1) &&
                               SKY_Associations_HasRoom(&security->associations));
}

bool SKY_Security_MayBeRejected(SKY_Security_t *security, uint64_t now_us, uint64_t endpoint)
{
    static const SKY_RateLimit_t limit = {ANSWERS_PER_S, ANSWERS_BURST};
    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(endpoint != 0u);

    return Count(security, SKY_Rates_Take(&security->rates.answers, now_us, limit, AddressOf(endpoint), 1));
}

bool SKY_Security_MayBeTold(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    static const SKY_RateLimit_t limit = {ANSWERS_PER_S, ANSWERS_BURST};
    static const SKY_RateLimit_t all   = {ALL_ANSWERS_PER_S, ALL_ANSWERS_BURST};
    SKY_SecurityRates_t         *rates = &security->rates;
    const bool                   opens = pkt->op == SKY_OP_ASSOCIATE && pkt->apid == SKY_APID_ISL;
    SKY_ASSERT(pkt->is_request);
    SKY_ASSERT(endpoint != 0u);

    return SKY_Security_IsReachable(security, now_us, pkt, endpoint) ||
           Count(security, SKY_Rates_Take(opens ? &rates->openings : &rates->answers, now_us, limit, AddressOf(endpoint), 1) &&
                               SKY_Rate_Take(opens ? &rates->all_openings : &rates->all_answers, now_us, all, 1));
}
