/**
 * @file
 * Sessions that a satellite asks other satellites for, and the keys under which it sends: see sky_security.h.
 */
#include <string.h>

#include "sky_assert.h"
#include "sky_security_priv.h"

/* ---- the table ------------------------------------------------------------------------------------------------------- */

static SKY_SecuritySession_t *Find(const SKY_Security_t *security, SKY_Addr_t satellite)
{
    SKY_ASSERT(satellite.plane != 0u);
    SKY_ASSERT(security->sessions != NULL);
    for (uint32_t i = 0; i < security->cfg.session_max; ++i)
    {
        if (SKY_Addr_Equal(security->sessions[i].satellite, satellite))
        {
            return &security->sessions[i];
        }
    }
    return NULL;
}

void SKY_SecuritySession_End(const SKY_Security_t *security, SKY_SecuritySession_t *entry)
{
    SKY_Session_End(&entry->session, security->cfg.crypto);
    entry->session.next_us = 0;
    entry->satellite       = (SKY_Addr_t){0, 0};
    entry->request_id      = 0;
    SKY_ASSERT(entry->session.state == SKY_SESSION_NONE);
    SKY_ASSERT(entry->session.sequence == 0u); /* the next session has other keys */
}

void SKY_Security_EndSessions(SKY_Security_t *security)
{
    SKY_ASSERT(security->sessions != NULL);
    SKY_ASSERT(security->cfg.session_max <= SKY_SECURITY_SESSIONS_MAX);
    for (uint32_t i = 0; i < security->cfg.session_max; ++i)
    {
        SKY_SecuritySession_End(security, &security->sessions[i]);
    }
}

/* Return the entry of a satellite; a new one takes a free place, or that of the longest unused one. */
static SKY_SecuritySession_t *Use(SKY_Security_t *security, uint64_t now_us, SKY_Addr_t satellite)
{
    SKY_SecuritySession_t *entry = Find(security, satellite);

    if (entry == NULL)
    {
        entry = &security->sessions[0];
        for (uint32_t i = 1; i < security->cfg.session_max && entry->satellite.plane != 0u; ++i)
        {
            SKY_SecuritySession_t *one = &security->sessions[i];

            entry = one->satellite.plane == 0u || one->used_us < entry->used_us ? one : entry;
        }
        SKY_SecuritySession_End(security, entry);
        entry->satellite = satellite;
    }
    entry->used_us = now_us;
    SKY_ASSERT(SKY_Addr_Equal(entry->satellite, satellite));
    SKY_ASSERT(Find(security, satellite) == entry);
    return entry;
}

bool SKY_Security_IsFresh(const SKY_Security_t *security, SKY_Addr_t satellite)
{
    const SKY_SecuritySession_t *entry = Find(security, satellite);

    SKY_ASSERT(entry == NULL || entry->session.state <= SKY_SESSION_DOUBTED);
    SKY_ASSERT(entry == NULL || SKY_Session_IsUsable(&entry->session) || entry->session.sequence == 0u);
    return entry != NULL && entry->session.state == SKY_SESSION_ESTABLISHED && entry->session.sequence == 0u;
}

/* ---- what goes ------------------------------------------------------------------------------------------------------- */

int SKY_Security_Prepare(SKY_Security_t *security, uint64_t now_us, SKY_Packet_t *pkt, SKY_Association_t *association,
                         SKY_TagKey_t *key)
{
    *key = (SKY_TagKey_t){security->cfg.crypto, 0, NULL, NULL};
    if (pkt->is_request && security->is_keyed)
    {
        SKY_SecuritySession_t *entry = Use(security, now_us, pkt->dst);

        pkt->sequence = SKY_Session_NextSequence(&entry->session);
        pkt->security = entry->session.suite;
        pkt->spi      = entry->session.spi;
        key->place    = entry->session.place_there;
    }
    else if (!pkt->is_request && association != NULL)
    {
        pkt->sequence = SKY_Association_NextSequence(association);
        pkt->security = association->suite;
        pkt->spi      = association->spi;
        key->place    = association->place_back;
    }
    else
    {
        return 0;
    }
    if (pkt->sequence == 0u) /* there is no session yet, or its numbers are used up */
    {
        pkt->security = SKY_SUITE_NONE;
        ++security->counters.unsent;
        return -1;
    }
    SKY_ASSERT(pkt->security != SKY_SUITE_NONE);
    SKY_ASSERT(pkt->spi != SKY_SPI_NONE);
    SKY_ASSERT(key->place < security->cfg.crypto->key_count);
    return 1;
}

/* Draw bytes that nobody can guess who does not know the secret of this boot. */
static void Draw(SKY_Security_t *security, uint8_t *bytes, size_t count)
{
    const SKY_Crypto_t    *crypto = security->cfg.crypto;
    const SKY_CryptoPart_t part   = {&security->words, sizeof(security->words)};
    SKY_ASSERT(count <= SKY_CRYPTO_HASH_BYTES);

    ++security->words;
    SKY_ASSERT(security->words != 0u); /* none comes again */
    crypto->Hash(crypto->context, security->word_secret, sizeof(security->word_secret), &part, 1, bytes, count);
}

/* Choose the key to ask a satellite with: the newest, and the older valid one in turn, which is all that a satellite knows to which the
 * mission has not got yet. */
static bool ChooseKey(SKY_Security_t *security, const SKY_SecuritySession_t *entry, uint8_t *generation,
                      uint8_t pair[SKY_CRYPTO_KEY_BYTES])
{
    const uint8_t  both[2] = {security->generation, SKY_Security_OtherGeneration(security)};
    const uint32_t tries   = entry->session.state == SKY_SESSION_NONE ? 0u : entry->session.tries;

    SKY_ASSERT(entry->satellite.plane != 0u);
    for (uint32_t i = 0; i < 2u; ++i)
    {
        *generation = both[(tries + i) % 2u];
        if (SKY_Security_PeerKey(security, entry->satellite.plane, entry->satellite.slot, *generation, pair))
        {
            return true;
        }
    }
    return false;
}

bool SKY_Security_NextAsk(SKY_Security_t *security, uint64_t now_us, SKY_SecurityAsk_t *ask)
{
    const SKY_SecurityCfg_t *cfg = &security->cfg;
    SKY_Credential_t         credential;
    uint8_t                  random[SKY_WORD_BYTES + sizeof(uint64_t)];
    uint8_t                  generation;

    for (uint32_t i = 0; i < cfg->session_max && security->is_keyed; ++i)
    {
        SKY_SecuritySession_t *entry = &security->sessions[i];

        if (entry->satellite.plane == 0u || !SKY_Session_IsDue(&entry->session, now_us))
        {
            continue;
        }
        if (now_us - entry->used_us > SKY_SECURITY_IDLE_US || !ChooseKey(security, entry, &generation, ask->pair))
        {
            SKY_SecuritySession_End(security, entry); /* nobody waits for it, or there is no key */
            continue;
        }
        SKY_Credential_OfSatellite(security->self, generation, &credential);
        Draw(security, random, sizeof(random));
        if (entry->session.state == SKY_SESSION_NONE ||
            entry->session.tries == 0u) /* else it is the same question again, and any answer to it will do */
        {
            (void)memcpy(&entry->request_id, random + SKY_WORD_BYTES, sizeof(entry->request_id));
        }
        (void)memset(&ask->pkt, 0, sizeof(ask->pkt));
        ask->pkt.is_request = true;
        ask->pkt.apid       = SKY_APID_ISL;
        ask->pkt.seq_flags  = SKY_SEQ_WHOLE;
        ask->pkt.op         = SKY_OP_ASSOCIATE;
        ask->pkt.hop_limit  = SKY_LIMIT_HOP_LIMIT;
        ask->pkt.security   = SKY_SUITE_HANDSHAKE;
        ask->pkt.src        = security->self;
        ask->pkt.dst        = entry->satellite;
        ask->pkt.request_id = entry->request_id;
        ask->pkt.payload    = ask->payload;
        ask->pkt.length = (uint32_t)SKY_Session_Ask(&entry->session, &credential, random, now_us, cfg->retry_us, ask->payload);
        ask->key        = (SKY_TagKey_t){cfg->crypto, 0, ask->pair, NULL};
        SKY_ASSERT(ask->pkt.length == SKY_HANDSHAKE_REQUEST_BYTES);
        SKY_ASSERT(!SKY_Session_IsDue(&entry->session, now_us)); /* whoever asks for all comes to an end */
        return true;
    }
    return false;
}

uint64_t SKY_Security_NextDue(const SKY_Security_t *security)
{
    uint64_t due_us = UINT64_MAX;

    SKY_ASSERT(security->sessions != NULL);
    for (uint32_t i = 0; i < security->cfg.session_max && security->is_keyed; ++i)
    {
        const SKY_SecuritySession_t *entry = &security->sessions[i];

        if (entry->satellite.plane != 0u && entry->session.state != SKY_SESSION_ESTABLISHED && entry->session.next_us < due_us)
        {
            due_us = entry->session.next_us;
        }
    }
    return due_us;
}

/* ---- what comes ------------------------------------------------------------------------------------------------------ */

/* Take in the answer to a handshake under a generation of keys. Return false if it is none. */
static bool TakeUnder(SKY_Security_t *security, const SKY_Packet_t *pkt, SKY_SecuritySession_t *entry, uint8_t generation)
{
    const SKY_Crypto_t *crypto = security->cfg.crypto;
    uint8_t             pair[SKY_CRYPTO_KEY_BYTES];
    const SKY_TagKey_t  key = {crypto, 0, pair, entry->session.word};

    SKY_ASSERT(entry->session.state != SKY_SESSION_ESTABLISHED);
    if (!SKY_Security_PeerKey(security, entry->satellite.plane, entry->satellite.slot, generation, pair))
    {
        return false;
    }
    const bool is_right = SKY_Tag_IsRight(pkt, &key);

    if (is_right)
    {
        (void)SKY_Session_Take(&entry->session, crypto, pair, pkt->spi, pkt->payload, pkt->length);
        entry->generation = generation;
        entry->key_mark   = SKY_Security_KeyMark(security, pair);
    }
    crypto->Wipe(crypto->context, pair, sizeof(pair));
    return is_right;
}

/* Take in the answer to a handshake, which may be one that was asked under the other generation of keys. */
static void TakeAnswer(SKY_Security_t *security, const SKY_Packet_t *pkt, SKY_SecuritySession_t *entry)
{
    SKY_ASSERT(pkt->op == SKY_OP_ASSOCIATE);
    SKY_ASSERT(SKY_Addr_Equal(pkt->src, entry->satellite));
    if (pkt->security == SKY_SUITE_HANDSHAKE && pkt->request_id == entry->request_id &&
        entry->session.state != SKY_SESSION_ESTABLISHED && !TakeUnder(security, pkt, entry, security->generation) &&
        !TakeUnder(security, pkt, entry, SKY_Security_OtherGeneration(security)))
    {
        ++security->counters.unauthenticated;
        ++security->counters.handshakes;
    }
}

bool SKY_Security_IsSignOfLife(const SKY_Security_t *security, const SKY_Packet_t *pkt)
{
    SKY_SecuritySession_t *entry = Find(security, pkt->src);

    SKY_ASSERT(!pkt->is_request);
    SKY_ASSERT(entry != NULL);
    return SKY_Session_IsNewest(&entry->session, pkt->sequence);
}

bool SKY_Security_AdmitResponse(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt)
{
    SKY_SecuritySession_t *entry = pkt->src.plane != 0u ? Find(security, pkt->src) : NULL;
    SKY_TagKey_t           key   = {security->cfg.crypto, 0, NULL, NULL};

    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(!pkt->is_request);
    if (entry != NULL && pkt->op == SKY_OP_ASSOCIATE)
    {
        TakeAnswer(security, pkt, entry);
        return false;
    }
    if (entry == NULL || !SKY_Session_IsUsable(&entry->session) || pkt->spi != entry->session.spi)
    {
        ++security->counters.unauthenticated;
        ++security->counters.no_association;
        return false;
    }
    if (pkt->security == SKY_SUITE_NONE && pkt->status == SKY_STATUS_UNAUTHENTICATED && pkt->sequence != 0u &&
        pkt->sequence <= entry->session.sequence && entry->session.sequence - pkt->sequence < SKY_REPLAY_WINDOW)
    {
        (void)SKY_Session_Doubt(&entry->session, now_us);
        return false;
    }
    key.place = entry->session.place_back;
    SKY_ASSERT(key.place < security->cfg.crypto->key_count);
    SKY_ASSERT(entry->session.suite != SKY_SUITE_NONE);
    if (pkt->security != entry->session.suite || !SKY_Tag_IsRight(pkt, &key))
    {
        ++security->counters.unauthenticated;
        ++security->counters.wrong_tag;
        return false;
    }
    (void)SKY_Session_Confirm(&entry->session, pkt->sequence); /* who said that this satellite is not known was another one */
    return true;
}
