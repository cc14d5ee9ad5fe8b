/**
 * @file
 * Security of a satellite's links: see sky_security.h. What goes out, with the sessions that this satellite asks for, is in
 * sky_security_session.c; what strangers may take in sky_security_limits.c; which key with a satellite is valid in sky_security_keys.c; what
 * follows from new tables in sky_security_change.c, and from commands about keys in sky_security_rekey.c.
 */
#include "sky_security.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_bytes.h"
#include "sky_security_priv.h"

/* ---- memory and keys ------------------------------------------------------------------------------------------------- */

static SKY_AssociationsConfig_t TableOf(const SKY_SecurityCfg_t *cfg)
{
    SKY_AssociationsConfig_t table;

    SKY_ASSERT(cfg->crypto != NULL);
    (void)memset(&table, 0, sizeof(table));
    table.crypto          = cfg->crypto;
    table.suites          = cfg->suites;
    table.established_max = cfg->established_max;
    table.half_open_max   = cfg->half_open_max;
    table.first_place     = SKY_ASSOCIATION_PLACES * cfg->session_max;
    return table;
}

size_t SKY_Security_MemoryBytes(const SKY_SecurityCfg_t *cfg)
{
    const SKY_AssociationsConfig_t table = TableOf(cfg);
    SKY_ASSERT(cfg->crypto != NULL);
    SKY_ASSERT(sizeof(SKY_SecuritySession_t) % sizeof(uint64_t) == 0u); /* associations stand behind the sessions */

    /* Without a time between two handshakes one would be due for ever. */
    if (cfg->session_max == 0u || cfg->session_max > SKY_SECURITY_SESSIONS_MAX || cfg->retry_us == 0u)
    {
        return 0;
    }
    const size_t bytes = SKY_Associations_MemoryBytes(&table);

    return bytes == 0u ? 0u : bytes + cfg->session_max * sizeof(SKY_SecuritySession_t);
}

uint8_t SKY_Security_SuiteToAskFor(const SKY_SecurityCfg_t *cfg)
{
    SKY_ASSERT(cfg->peer_suite >= SKY_SUITE_GMAC_HEADER);
    SKY_ASSERT(cfg->peer_suite <= SKY_SUITE_BLAKE2B_PACKET);
    if ((cfg->crypto->suites & SKY_SUITE_BIT(cfg->peer_suite)) != 0u)
    {
        return cfg->peer_suite;
    }
    return cfg->peer_suite == SKY_SUITE_GMAC_HEADER ? SKY_SUITE_BLAKE2B_HEADER : SKY_SUITE_BLAKE2B_PACKET;
}

bool SKY_Security_Init(SKY_Security_t *security, const SKY_SecurityCfg_t *cfg, SKY_Addr_t self, void *memory, size_t memory_bytes,
                       const uint8_t *entropy)
{
    const size_t             needed   = SKY_Security_MemoryBytes(cfg);
    const size_t             sessions = cfg->session_max * sizeof(SKY_SecuritySession_t);
    SKY_AssociationsConfig_t table    = TableOf(cfg);

    SKY_ASSERT(SKY_SECURITY_ENTROPY_BYTES == SKY_CRYPTO_KEY_BYTES + SKY_SALT_BYTES + SKY_CRYPTO_KEY_BYTES);
    SKY_ASSERT((uintptr_t)memory % sizeof(uint64_t) == 0u);
    if (needed == 0u || memory_bytes < needed || !SKY_Crypto_SelfTest(cfg->crypto))
    {
        return false;
    }
    (void)memset(security, 0, sizeof(*security));
    (void)memset(memory, 0, sessions);
    security->cfg      = *cfg;
    security->self     = self;
    security->sessions = memory;
    table.peer_key     = SKY_Security_PeerKey;
    table.peer_context = security;
    SKY_RekeyPeers_Init(&security->rekey, cfg->rekey_peers, cfg->rekey_peers_max);
    for (uint32_t i = 0; i < cfg->session_max; ++i)
    {
        SKY_Session_Init(&security->sessions[i].session, SKY_Security_SuiteToAskFor(cfg), cfg->suites, SKY_ASSOCIATION_PLACES * i,
                         SKY_ASSOCIATION_PLACES * i + 1u);
    }
    SKY_ASSERT(needed > sessions);
    SKY_Cookies_Init(&security->cookies, entropy);
    (void)memcpy(security->word_secret, entropy + SKY_CRYPTO_KEY_BYTES + SKY_SALT_BYTES, SKY_CRYPTO_KEY_BYTES);
    SKY_SecurityLimits_Init(security);
    return SKY_Associations_Init(&security->associations, &table, (uint8_t *)memory + sessions, memory_bytes - sessions,
                                 entropy + SKY_CRYPTO_KEY_BYTES);
}

void SKY_Security_ResetCounters(SKY_Security_t *security)
{
    SKY_ASSERT(security->sessions != NULL);
    (void)memset(&security->counters, 0, sizeof(security->counters));
    (void)memset(&security->associations.stats, 0, sizeof(security->associations.stats));
    security->rekey.done    = 0;
    security->rekey.refused = 0;
    security->rekey.wrong   = 0;
    security->rekey.kept    = 0;
}

void SKY_Security_Wipe(const SKY_Security_t *security, void *secret, size_t bytes)
{
    SKY_ASSERT(security->cfg.crypto != NULL);
    SKY_ASSERT(secret != NULL);
    security->cfg.crypto->Wipe(security->cfg.crypto->context, secret, bytes);
}

/* ---- cookies --------------------------------------------------------------------------------------------------------- */

bool SKY_Security_HasCookie(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    const bool has_it = SKY_Cookies_IsValid(&security->cookies, security->cfg.crypto, endpoint, now_us, pkt->cookie);
    SKY_ASSERT(pkt->is_request);
    SKY_ASSERT(endpoint != 0u);

    security->counters.no_cookie += has_it ? 0u : 1u;
    return has_it;
}

uint64_t SKY_Security_CookieOf(const SKY_Security_t *security, uint64_t now_us, uint64_t endpoint)
{
    SKY_ASSERT(security->cfg.crypto != NULL);
    SKY_ASSERT(security->sessions != NULL);
    return endpoint == 0u ? SKY_COOKIE_NONE : SKY_Cookies_Make(&security->cookies, security->cfg.crypto, endpoint, now_us);
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

static bool NamesATenant(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->is_request);
    return pkt->apid == SKY_APID_KVC && (pkt->op == SKY_OP_PUT || pkt->op == SKY_OP_GET || pkt->op == SKY_OP_HAS ||
                                         pkt->op == SKY_OP_PURGE || pkt->op == SKY_OP_MIGRATE);
}

/* Only satellites greet each other and gossip. */
static bool IsAmongSatellites(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->is_request);
    return pkt->op == SKY_OP_HELLO || (pkt->flags & SKY_FLAG_GOSSIP) != 0u;
}

static bool IsOfAllBlocks(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->is_request);
    return pkt->op == SKY_OP_MIGRATE && SKY_Bytes_AreZeros(pkt->key, SKY_KEY_BYTES);
}

/* Commands are those of a mission, and are acted upon in the order in which they were sent. */
static bool IsCommand(const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->is_request);
    return pkt->op == SKY_OP_RELAY || pkt->op == SKY_OP_REKEY || IsOfAllBlocks(pkt);
}

/* Return true if the role of a credential may send a request. */
static bool MayAsk(const SKY_Credential_t *credential, const SKY_Packet_t *pkt)
{
    const SKY_Role_t role = SKY_Credential_Role(credential);
    SKY_ASSERT(pkt->is_request);
    SKY_ASSERT(role <= SKY_ROLE_SATELLITE);

    if (role == SKY_ROLE_SATELLITE)
    {
        return SKY_Addr_Equal(pkt->src, SKY_Credential_Satellite(credential)) && !IsCommand(pkt);
    }
    if (pkt->src.plane != 0u || IsAmongSatellites(pkt))
    {
        return false;
    }
    return role == SKY_ROLE_MISSION || !IsCommand(pkt);
}

/* Return true if the owner of a credential may name the tenant of a request. */
static bool MayName(const SKY_Credential_t *credential, const SKY_Packet_t *pkt)
{
    SKY_ASSERT(pkt->is_request);
    return SKY_Credential_Role(credential) != SKY_ROLE_HOST || !NamesATenant(pkt) ||
           SKY_Credential_Allows(credential, pkt->tenant);
}

static SKY_Admission_t Deny(SKY_Security_t *security, uint64_t *reason)
{
    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(security->sessions != NULL);
    ++security->counters.unauthenticated;
    ++*reason;
    return SKY_ADMIT_UNAUTHENTICATED;
}

static SKY_Admission_t Refuse(SKY_Security_t *security, uint64_t *reason)
{
    SKY_ASSERT(security->is_keyed);
    ++security->counters.refused;
    ++*reason;
    return SKY_ADMIT_REFUSED;
}

SKY_Admission_t SKY_Security_Admit(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint,
                                   SKY_Association_t **association)
{
    SKY_Association_t *found = SKY_Associations_Find(&security->associations, pkt->spi);
    SKY_TagKey_t       key   = {security->cfg.crypto, 0, NULL, NULL};

    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(pkt->is_request);
    *association = NULL;
    if (found == NULL)
    {
        return Deny(security, &security->counters.no_association);
    }
    key.place = found->place_there;
    SKY_ASSERT(found->suite != SKY_SUITE_NONE);
    if (pkt->security != found->suite || !SKY_Tag_IsRight(pkt, &key))
    {
        return Deny(security, &security->counters.wrong_tag);
    }
    SKY_ASSERT(pkt->tag != NULL);
    const bool is_command = IsCommand(pkt);

    if (!SKY_Replay_IsNew(&found->replay, pkt->sequence) || (is_command && !SKY_Rising_IsNew(&found->commands, pkt->sequence)))
    {
        ++security->counters.replayed;
        return SKY_ADMIT_DROP;
    }
    SKY_Replay_Note(&found->replay, pkt->sequence);
    if (is_command)
    {
        SKY_Rising_Note(&found->commands, pkt->sequence);
    }
    SKY_Associations_Used(&security->associations, found, endpoint, now_us);
    *association = found;
    SKY_ASSERT(found->state == SKY_ASSOCIATION_ESTABLISHED);
    SKY_ASSERT(!SKY_Replay_IsNew(&found->replay, pkt->sequence)); /* it counts even if it is refused */
    if (!MayAsk(&found->credential, pkt))
    {
        return Refuse(security, &security->counters.wrong_role);
    }
    return MayName(&found->credential, pkt) ? SKY_ADMIT_OK : Refuse(security, &security->counters.wrong_tenant);
}

/* Return true if a credential is that of the satellite itself, which nobody else may be, whatever the table of keys says. */
static bool IsOwn(const SKY_Security_t *security, const SKY_Credential_t *credential)
{
    SKY_ASSERT(security->is_keyed);
    return SKY_Credential_Role(credential) == SKY_ROLE_SATELLITE &&
           SKY_Addr_Equal(SKY_Credential_Satellite(credential), security->self);
}

bool SKY_Security_IsHandshake(SKY_Security_t *security, const SKY_Packet_t *pkt, SKY_SecurityHandshake_t *handshake)
{
    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(pkt->security == SKY_SUITE_HANDSHAKE);
    SKY_ASSERT(pkt->is_request);
    handshake->key = (SKY_TagKey_t){security->cfg.crypto, 0, handshake->pair, NULL};
    if (!SKY_Handshake_DecodeRequest(pkt->payload, pkt->length, &handshake->request) ||
        IsOwn(security, &handshake->request.credential) ||
        !SKY_Associations_PairKey(&security->associations, &handshake->request.credential, handshake->pair) ||
        !SKY_Tag_IsRight(pkt, &handshake->key))
    {
        (void)Deny(security, &security->counters.handshakes);
        return false;
    }
    handshake->key_mark = SKY_Security_KeyMark(security, handshake->pair);
    return true;
}

uint32_t SKY_Security_Handshake(SKY_Security_t *security, uint64_t now_us, const SKY_HandshakeOrigin_t *origin,
                                SKY_SecurityHandshake_t *handshake)
{
    SKY_HandshakeResponse_t response;
    SKY_Association_t      *association;

    SKY_ASSERT(security->is_keyed);
    SKY_ASSERT(handshake->key.pair == handshake->pair);
    association =
        SKY_Associations_Begin(&security->associations, &handshake->request, handshake->pair, origin, now_us, &response);
    if (association == NULL)
    {
        (void)Deny(security, &security->counters.handshakes);
        return SKY_SPI_NONE;
    }
    association->key_mark = handshake->key_mark;
    SKY_Handshake_EncodeResponse(&response, handshake->payload);
    handshake->key.word = handshake->request.word;
    SKY_ASSERT(association->spi != SKY_SPI_NONE);
    SKY_ASSERT(association->suite == response.granted);
    return association->spi;
}
