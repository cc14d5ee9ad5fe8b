/**
 * @file
 * How security begins: numbers, memory, random bytes, and the library.
 */
#include "security_rig.h"

#define NOW UINT64_C(5000000)

static party_t satellite;

static void test_numbers_and_memory_have_limits(void)
{
    static const uint8_t entropy[SKY_SECURITY_ENTROPY_BYTES];
    SKY_Security_t       security;

    open_unkeyed(&satellite, 1, 2);
    const SKY_SecurityCfg_t right  = a_config(&satellite);
    const size_t            needed = SKY_Security_MemoryBytes(&right);
    SKY_SecurityCfg_t       cfg    = right;

    CHECK_EQ(needed, SESSIONS * sizeof(SKY_SecuritySession_t) + (ESTABLISHED + HALF_OPEN) * sizeof(SKY_Association_t));
    CHECK(needed <= sizeof(satellite.memory));
    CHECK(SKY_Security_Init(&security, &right, satellite.addr, satellite.memory, needed, entropy));
    CHECK(!SKY_Security_Init(&security, &right, satellite.addr, satellite.memory, needed - 1u, entropy));
    cfg.session_max = 0;
    CHECK_EQ(SKY_Security_MemoryBytes(&cfg), 0);
    CHECK(!SKY_Security_Init(&security, &cfg, satellite.addr, satellite.memory, needed, entropy));
    satellite.rig.crypto.key_count = UINT32_MAX;
    cfg.session_max                = 4097;
    CHECK_EQ(SKY_Security_MemoryBytes(&cfg), 0);
    cfg.session_max = 4096;
    CHECK(SKY_Security_MemoryBytes(&cfg) > needed);
    satellite.rig.crypto.key_count = RIG_PLACES;
    cfg.session_max                = UINT32_MAX;
    CHECK_EQ(SKY_Security_MemoryBytes(&cfg), 0);
    cfg.session_max = (RIG_PLACES - SKY_ASSOCIATION_PLACES * (ESTABLISHED + HALF_OPEN)) / SKY_ASSOCIATION_PLACES;
    CHECK(SKY_Security_MemoryBytes(&cfg) > needed);
    cfg.session_max += 1u; /* the library has no places for it */
    CHECK_EQ(SKY_Security_MemoryBytes(&cfg), 0);
    cfg          = right;
    cfg.retry_us = 0; /* a handshake would be due for ever */
    CHECK_EQ(SKY_Security_MemoryBytes(&cfg), 0);
    cfg                 = right;
    cfg.established_max = 0;
    CHECK_EQ(SKY_Security_MemoryBytes(&cfg), 0);
    close_party(&satellite);
}

/* What lay in the memory before is of no account. */
static void test_memory_need_not_be_empty(void)
{
    static const uint8_t entropy[SKY_SECURITY_ENTROPY_BYTES] = {7};
    SKY_SecurityAsk_t    out;
    SKY_SecurityCfg_t    cfg;

    open_unkeyed(&satellite, 1, 2);
    cfg = a_config(&satellite);
    (void)memset(&satellite.security, 0xEE, sizeof(satellite.security));
    (void)memset(satellite.memory, 0xEE, sizeof(satellite.memory));
    CHECK(SKY_Security_Init(&satellite.security, &cfg, satellite.addr, satellite.memory, sizeof(satellite.memory), entropy));
    CHECK(!satellite.security.is_keyed);
    CHECK(SKY_Security_NextDue(&satellite.security) == UINT64_MAX);
    CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0));
    CHECK(!SKY_Security_NextAsk(&satellite.security, NOW, &out));
    CHECK_EQ(satellite.security.counters.unauthenticated + satellite.security.counters.unsent, 0);
    CHECK_EQ(crypto_rig_keys(&satellite.rig), 0);
    close_party(&satellite);
}

/* Cookies, salt and words come from random bytes of their own: who learns some of them learns nothing of the others. */
static void test_each_secret_has_bytes_of_its_own(void)
{
    SKY_SecurityAsk_t out;
    SKY_SecurityCfg_t cfg;
    uint8_t           entropy[SKY_SECURITY_ENTROPY_BYTES];
    uint64_t          cookie[2] = {0, 0};
    uint8_t           salt[2][SKY_SALT_BYTES];
    uint64_t          request_id[2] = {0, 0};
    unsigned          changed[3]    = {0, 0, 0};

    for (size_t at = 0; at < sizeof(entropy); ++at)
    {
        (void)memset(entropy, 0, sizeof(entropy));
        for (unsigned i = 0; i < 2u; ++i)
        {
            open_unkeyed(&satellite, 1, 2);
            cfg         = a_config(&satellite);
            entropy[at] = (uint8_t)i;
            CHECK(SKY_Security_Init(&satellite.security, &cfg, satellite.addr, satellite.memory, sizeof(satellite.memory),
                                    entropy));
            CHECK(SKY_Security_SetMaster(&satellite.security, 0, master_0));
            want_session(&satellite.security, NOW, (SKY_Addr_t){1, 3});
            CHECK(SKY_Security_NextAsk(&satellite.security, NOW, &out));
            cookie[i]     = SKY_Security_CookieOf(&satellite.security, NOW, ENDPOINT);
            request_id[i] = out.pkt.request_id;
            (void)memcpy(salt[i], satellite.security.associations.salt, SKY_SALT_BYTES);
            close_party(&satellite);
        }
        const bool is_salt = memcmp(salt[0], salt[1], SKY_SALT_BYTES) != 0;

        changed[0] += cookie[0] != cookie[1] ? 1u : 0u;
        changed[1] += is_salt ? 1u : 0u;
        changed[2] += request_id[0] != request_id[1] ? 1u : 0u;
        CHECK_EQ((cookie[0] != cookie[1]) + is_salt + (request_id[0] != request_id[1]), 1);
    }
    CHECK_EQ(changed[0], SKY_CRYPTO_KEY_BYTES);
    CHECK_EQ(changed[1], SKY_SALT_BYTES);
    CHECK_EQ(changed[2], SKY_CRYPTO_KEY_BYTES);
}

static void test_a_library_with_wrong_answers_is_not_taken(void)
{
    static const uint8_t entropy[SKY_SECURITY_ENTROPY_BYTES];
    SKY_Security_t       security;

    for (crypto_fault_t fault = FAULT_NONE; fault < FAULT_COUNT; ++fault)
    {
        open_unkeyed(&satellite, 1, 2);
        const SKY_SecurityCfg_t cfg = a_config(&satellite);

        satellite.rig.fault  = fault;
        satellite.rig.loaded = 0;
        CHECK_EQ(SKY_Security_Init(&security, &cfg, satellite.addr, satellite.memory, sizeof(satellite.memory), entropy),
                 fault == FAULT_NONE);
        close_party(&satellite);
    }
}

int main(void)
{
    RUN(test_numbers_and_memory_have_limits);
    RUN(test_memory_need_not_be_empty);
    RUN(test_each_secret_has_bytes_of_its_own);
    RUN(test_a_library_with_wrong_answers_is_not_taken);
    return CHECK_RESULT();
}
