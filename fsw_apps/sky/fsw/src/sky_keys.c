/**
 * @file
 * Credentials and keys that follow from others: see sky_keys.h.
 */
#include "sky_keys.h"

#include <string.h>

#include "sky_assert.h"
#include "sky_bytes.h"

#define AT_GENERATION   1u
#define AT_TENANT_COUNT 2u
#define AT_SPARE        3u
#define AT_NAME         4u
#define AT_TENANTS      (AT_NAME + SKY_CREDENTIAL_NAME_BYTES)
#define TENANT_BYTES    4u

#define LABEL(text)               \
    {                             \
        (text), sizeof(text) - 1u \
    }

/* Return the length of the list; 0 for any. No number leads beyond the list. */
static uint32_t listed_tenants(const uint8_t *bytes)
{
    const uint32_t count = bytes[AT_TENANT_COUNT];

    SKY_ASSERT(count <= SKY_CREDENTIAL_TENANTS_MAX || count == SKY_CREDENTIAL_ANY_TENANT);
    SKY_ASSERT(bytes[AT_SPARE] == 0);
    return count > SKY_CREDENTIAL_TENANTS_MAX ? 0 : count;
}

/* Return true if a satellite's credential has plane and slot, nothing behind them, and no list of tenants. */
static bool is_satellite_sound(const uint8_t *bytes)
{
    const uint8_t *name = bytes + AT_NAME;

    SKY_ASSERT(bytes[0] == SKY_ROLE_SATELLITE);
    SKY_ASSERT(AT_TENANTS == AT_NAME + SKY_CREDENTIAL_NAME_BYTES);
    return SKY_Bytes_Get16(name) != 0 && SKY_Bytes_Get16(name + 2) != 0 &&
           SKY_Bytes_AreZeros(name + 4, SKY_CREDENTIAL_NAME_BYTES - 4u) && bytes[AT_TENANT_COUNT] == SKY_CREDENTIAL_ANY_TENANT;
}

bool SKY_Credential_Decode(const uint8_t *bytes, SKY_Credential_t *credential)
{
    SKY_ASSERT(bytes != NULL);
    SKY_ASSERT(AT_TENANTS + SKY_CREDENTIAL_TENANTS_MAX * TENANT_BYTES == SKY_CREDENTIAL_BYTES);
    if (bytes[0] > SKY_ROLE_SATELLITE || bytes[AT_SPARE] != 0 ||
        (bytes[AT_TENANT_COUNT] > SKY_CREDENTIAL_TENANTS_MAX && bytes[AT_TENANT_COUNT] != SKY_CREDENTIAL_ANY_TENANT))
    {
        return false;
    }
    const size_t used = AT_TENANTS + listed_tenants(bytes) * TENANT_BYTES;

    if (!SKY_Bytes_AreZeros(bytes + used, SKY_CREDENTIAL_BYTES - used) ||
        (bytes[0] == SKY_ROLE_SATELLITE && !is_satellite_sound(bytes)))
    {
        return false;
    }
    (void)memcpy(credential->bytes, bytes, SKY_CREDENTIAL_BYTES);
    return true;
}

void SKY_Credential_OfSatellite(SKY_Addr_t satellite, uint8_t generation, SKY_Credential_t *credential)
{
    SKY_ASSERT(satellite.plane != 0);
    SKY_ASSERT(satellite.slot != 0);
    (void)memset(credential, 0, sizeof(*credential));
    credential->bytes[0]               = SKY_ROLE_SATELLITE;
    credential->bytes[AT_GENERATION]   = generation;
    credential->bytes[AT_TENANT_COUNT] = SKY_CREDENTIAL_ANY_TENANT;
    SKY_Bytes_Put16(credential->bytes + AT_NAME, satellite.plane);
    SKY_Bytes_Put16(credential->bytes + AT_NAME + 2u, satellite.slot);
    SKY_ASSERT(is_satellite_sound(credential->bytes));
}

bool SKY_Credential_Allows(const SKY_Credential_t *credential, uint32_t tenant)
{
    const uint32_t count = listed_tenants(credential->bytes);
    bool           found = credential->bytes[AT_TENANT_COUNT] == SKY_CREDENTIAL_ANY_TENANT;

    SKY_ASSERT(credential->bytes[0] <= SKY_ROLE_SATELLITE);
    SKY_ASSERT(credential->bytes[AT_SPARE] == 0);
    for (uint32_t i = 0; i < count; ++i)
    {
        found = found || SKY_Bytes_Get32(credential->bytes + AT_TENANTS + (size_t)i * TENANT_BYTES) == tenant;
    }
    return found;
}

SKY_Addr_t SKY_Credential_Satellite(const SKY_Credential_t *credential)
{
    const uint8_t *name = credential->bytes + AT_NAME;

    SKY_ASSERT(credential->bytes[0] == SKY_ROLE_SATELLITE);
    SKY_ASSERT(is_satellite_sound(credential->bytes));
    return (SKY_Addr_t){SKY_Bytes_Get16(name), SKY_Bytes_Get16(name + 2)};
}

void SKY_Keys_Pair(const SKY_Crypto_t *crypto, const uint8_t master[SKY_CRYPTO_KEY_BYTES], const SKY_Credential_t *credential,
                   uint8_t pair[SKY_CRYPTO_KEY_BYTES])
{
    const SKY_CryptoPart_t info[] = {LABEL("skymemory 2 pair"), {credential->bytes, SKY_CREDENTIAL_BYTES}};

    SKY_ASSERT(master != NULL);
    SKY_ASSERT(pair != NULL);
    SKY_ASSERT(credential->bytes[0] != SKY_ROLE_SATELLITE); /* keys between satellites follow from no master key */
    SKY_Crypto_Kdf(crypto, master, info, 2, pair, SKY_CRYPTO_KEY_BYTES);
}

void SKY_Keys_Session(const SKY_Crypto_t *crypto, const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const uint8_t word[SKY_WORD_BYTES],
                      const uint8_t salt[SKY_SALT_BYTES], uint32_t spi, uint8_t suite, SKY_SessionKeys_t *keys)
{
    uint8_t                at_end[5];
    uint8_t                both[2u * SKY_CRYPTO_KEY_BYTES];
    const SKY_CryptoPart_t info[] = {
        LABEL("skymemory 2 session"), {word, SKY_WORD_BYTES}, {salt, SKY_SALT_BYTES}, {at_end, sizeof(at_end)}};

    SKY_ASSERT(spi != 0);
    SKY_ASSERT(pair != NULL);
    SKY_ASSERT(suite >= SKY_SUITE_GMAC_HEADER);
    SKY_ASSERT(suite <= SKY_SUITE_BLAKE2B_PACKET);
    SKY_Bytes_Put32(at_end, spi);
    at_end[4] = suite;
    SKY_Crypto_Kdf(crypto, pair, info, 4, both, sizeof(both));
    (void)memcpy(keys->there, both, SKY_CRYPTO_KEY_BYTES);
    (void)memcpy(keys->back, both + SKY_CRYPTO_KEY_BYTES, SKY_CRYPTO_KEY_BYTES);
    crypto->Wipe(crypto->context, both, sizeof(both));
}
