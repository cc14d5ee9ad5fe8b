/**
 * @file
 * Credentials and derived keys against tests/vectors/keys.json, whose path is the program's argument.
 */
#include <stdlib.h>

#include "crypto_rig.h"
#include "sky_handshake.h"

#define FILE_BYTES 65536u

static crypto_rig_t rig;

static char        vectors[FILE_BYTES];
static const char *at; /* where reading goes on */

/* Find the next value of a name, in the order of the file. */
static const char *next(const char *name)
{
    char quoted[64];

    (void)snprintf(quoted, sizeof(quoted), "\"%s\": ", name);
    at = at == NULL ? NULL : strstr(at, quoted);
    CHECK(at != NULL);
    at = at == NULL ? "" : at + strlen(quoted);
    return at;
}

static long next_number(const char *name)
{
    return strtol(next(name), NULL, 10);
}

/* Read bytes, and return their number. */
static size_t next_bytes(const char *name, uint8_t *bytes, size_t most)
{
    const char *digits = next(name) + 1;
    size_t      count  = 0;
    unsigned    value;

    while (count < most && sscanf(digits + 2u * count, "%2x", &value) == 1)
    {
        bytes[count++] = (uint8_t)value;
    }
    return count;
}

/* Go to a list, and return the number of its entries, which all have a name. */
static unsigned go_to(const char *list, const char *name)
{
    unsigned count = 0;
    char     quoted[64];

    at = vectors;
    (void)next(list);
    (void)snprintf(quoted, sizeof(quoted), "\"%s\": ", name);
    for (const char *one = at; (one = strstr(one, quoted)) != NULL && one < strstr(at, "\n ]"); ++one)
    {
        ++count;
    }
    return count;
}

static void read_vectors(const char *path)
{
    FILE *file = fopen(path, "rb");

    CHECK(file != NULL);
    if (file != NULL)
    {
        CHECK(fread(vectors, 1, sizeof(vectors) - 1u, file) > 0);
        CHECK(feof(file) != 0);
        (void)fclose(file);
    }
}

static void test_derived_bytes_are_those_of_the_vectors(void)
{
    const unsigned count = go_to("kdf", "info");

    CHECK(count >= 4u);
    crypto_rig_open(&rig);
    for (unsigned i = 0; i < count; ++i)
    {
        uint8_t key[SKY_CRYPTO_KEY_BYTES], info[256], right[64], out[64];

        CHECK_EQ(next_bytes("key", key, sizeof(key)), sizeof(key));
        const SKY_CryptoPart_t part  = {info, next_bytes("info", info, sizeof(info))};
        const size_t           bytes = next_bytes("out", right, sizeof(right));

        SKY_Crypto_Kdf(&rig.crypto, key, &part, 1, out, bytes);
        CHECK(bytes >= 1u && memcmp(out, right, bytes) == 0);
    }
    crypto_rig_close(&rig);
}

static void test_pair_keys_are_those_of_the_vectors(void)
{
    const unsigned count = go_to("pairs", "master");

    CHECK(count >= 5u);
    crypto_rig_open(&rig);
    for (unsigned i = 0; i < count; ++i)
    {
        uint8_t          master[SKY_CRYPTO_KEY_BYTES], bytes[SKY_CREDENTIAL_BYTES], right[SKY_CRYPTO_KEY_BYTES];
        uint8_t          pair[SKY_CRYPTO_KEY_BYTES];
        SKY_Credential_t credential;

        CHECK_EQ(next_bytes("master", master, sizeof(master)), sizeof(master));
        const long role       = next_number("role");
        const long generation = next_number("generation");

        CHECK_EQ(next_bytes("credential", bytes, sizeof(bytes)), sizeof(bytes));
        CHECK_EQ(next_bytes("key", right, sizeof(right)), sizeof(right));
        CHECK(SKY_Credential_Decode(bytes, &credential));
        CHECK_EQ(SKY_Credential_Role(&credential), role);
        CHECK_EQ(SKY_Credential_Generation(&credential), generation);
        SKY_Keys_Pair(&rig.crypto, master, &credential, pair);
        CHECK(memcmp(pair, right, sizeof(right)) == 0);
    }
    crypto_rig_close(&rig);
}

static void test_session_keys_are_those_of_the_vectors(void)
{
    const unsigned count = go_to("sessions", "pair");

    CHECK(count >= 3u);
    crypto_rig_open(&rig);
    for (unsigned i = 0; i < count; ++i)
    {
        uint8_t           pair[SKY_CRYPTO_KEY_BYTES], word[SKY_WORD_BYTES], salt[SKY_SALT_BYTES], there[32], back[32];
        SKY_SessionKeys_t keys;

        CHECK_EQ(next_bytes("pair", pair, sizeof(pair)), sizeof(pair));
        CHECK_EQ(next_bytes("word", word, sizeof(word)), sizeof(word));
        CHECK_EQ(next_bytes("salt", salt, sizeof(salt)), sizeof(salt));
        const uint32_t spi   = (uint32_t)strtoul(next("spi"), NULL, 10);
        const uint8_t  suite = (uint8_t)next_number("suite");

        CHECK_EQ(next_bytes("there", there, sizeof(there)), sizeof(there));
        CHECK_EQ(next_bytes("back", back, sizeof(back)), sizeof(back));
        SKY_Keys_Session(&rig.crypto, pair, word, salt, spi, suite, &keys);
        CHECK(memcmp(keys.there, there, sizeof(there)) == 0);
        CHECK(memcmp(keys.back, back, sizeof(back)) == 0);
    }
    crypto_rig_close(&rig);
}

static void test_satellites_have_the_credentials_of_the_vectors(void)
{
    const unsigned count = go_to("satellites", "plane");

    CHECK(count >= 3u);
    for (unsigned i = 0; i < count; ++i)
    {
        const uint16_t   plane      = (uint16_t)next_number("plane");
        const uint16_t   slot       = (uint16_t)next_number("slot");
        const uint8_t    generation = (uint8_t)next_number("generation");
        uint8_t          right[SKY_CREDENTIAL_BYTES];
        SKY_Credential_t credential, decoded;

        CHECK_EQ(next_bytes("credential", right, sizeof(right)), sizeof(right));
        SKY_Credential_OfSatellite((SKY_Addr_t){plane, slot}, generation, &credential);
        CHECK(memcmp(credential.bytes, right, sizeof(right)) == 0);
        CHECK(SKY_Credential_Decode(right, &decoded));
        CHECK_EQ(SKY_Credential_Role(&decoded), SKY_ROLE_SATELLITE);
        CHECK_EQ(SKY_Credential_Generation(&decoded), generation);
        CHECK(SKY_Addr_Equal(SKY_Credential_Satellite(&decoded), (SKY_Addr_t){plane, slot}));
        CHECK(SKY_Credential_Allows(&decoded, 77));
    }
}

/* A host's credential with tenants 1 .. count. */
static void host(uint8_t bytes[SKY_CREDENTIAL_BYTES], uint8_t count)
{
    (void)memset(bytes, 0, SKY_CREDENTIAL_BYTES);
    bytes[2] = count;
    (void)memcpy(bytes + 4, "berlin", 6);
    for (uint8_t i = 0; i < count && i < SKY_CREDENTIAL_TENANTS_MAX; ++i)
    {
        bytes[19u + 4u * i] = (uint8_t)(i + 1u);
    }
}

static void test_a_credential_allows_the_tenants_that_it_lists(void)
{
    uint8_t          bytes[SKY_CREDENTIAL_BYTES];
    SKY_Credential_t credential;

    for (uint8_t count = 0; count <= SKY_CREDENTIAL_TENANTS_MAX; ++count)
    {
        host(bytes, count);
        CHECK(SKY_Credential_Decode(bytes, &credential));
        CHECK(!SKY_Credential_Allows(&credential, 0)); /* zeros behind the list are no tenants */
        CHECK(!SKY_Credential_Allows(&credential, count + 1u));
        for (uint32_t tenant = 1; tenant <= count; ++tenant)
        {
            CHECK(SKY_Credential_Allows(&credential, tenant));
            CHECK(!SKY_Credential_Allows(&credential, tenant << 24));
        }
    }
    host(bytes, 0);
    bytes[2] = 1; /* tenant 0, which is a tenant like others */
    CHECK(SKY_Credential_Decode(bytes, &credential));
    CHECK(SKY_Credential_Allows(&credential, 0));
    bytes[2] = SKY_CREDENTIAL_ANY_TENANT;
    CHECK(SKY_Credential_Decode(bytes, &credential));
    CHECK(SKY_Credential_Allows(&credential, 0));
    CHECK(SKY_Credential_Allows(&credential, UINT32_MAX));
}

static void test_what_is_no_credential_is_refused(void)
{
    static const struct
    {
        unsigned at;
        uint8_t  value;
    } wrong[] = {
        {0, 3},    /* role */
        {0, 255},  /* role */
        {2, 9},    /* more tenants than there is room for */
        {2, 254},  /* more tenants than there is room for */
        {2, 1},    /* fewer than are there */
        {2, 255},  /* any, and a list */
        {3, 1},    /* spare */
        {24, 1},   /* behind the list */
        {47, 128}, /* behind the list */
    };
    uint8_t          bytes[SKY_CREDENTIAL_BYTES];
    SKY_Credential_t credential;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
    {
        host(bytes, 2);
        CHECK(SKY_Credential_Decode(bytes, &credential));
        bytes[wrong[i].at] = wrong[i].value;
        CHECK(!SKY_Credential_Decode(bytes, &credential));
    }
}

static void test_what_is_no_satellite_is_refused(void)
{
    SKY_Credential_t satellite, decoded;

    SKY_Credential_OfSatellite((SKY_Addr_t){256, 3}, 1, &satellite);
    CHECK(SKY_Credential_Decode(satellite.bytes, &decoded));
    for (unsigned byte = 8; byte < 16; ++byte) /* behind plane and slot */
    {
        satellite.bytes[byte] = 1;
        CHECK(!SKY_Credential_Decode(satellite.bytes, &decoded));
        satellite.bytes[byte] = 0;
    }
    satellite.bytes[2] = 0; /* a list of tenants */
    CHECK(!SKY_Credential_Decode(satellite.bytes, &decoded));
    satellite.bytes[2] = SKY_CREDENTIAL_ANY_TENANT;
    satellite.bytes[4] = 0; /* plane 0 is the ground */
    CHECK(!SKY_Credential_Decode(satellite.bytes, &decoded));
    satellite.bytes[4] = 1;
    satellite.bytes[7] = 0;
    CHECK(!SKY_Credential_Decode(satellite.bytes, &decoded));
    satellite.bytes[6] = 1;
    CHECK(SKY_Credential_Decode(satellite.bytes, &decoded));
    CHECK(SKY_Addr_Equal(SKY_Credential_Satellite(&decoded), (SKY_Addr_t){256, 256}));
}

static void test_session_keys_depend_on_all_that_goes_in(void)
{
    uint8_t           in[3][32] = {{0}};
    SKY_SessionKeys_t keys, other;

    crypto_rig_open(&rig);
    SKY_Keys_Session(&rig.crypto, in[0], in[1], in[2], 1, 1, &keys);
    CHECK(memcmp(keys.there, keys.back, sizeof(keys.back)) != 0);
    SKY_Keys_Session(&rig.crypto, in[0], in[1], in[2], 2, 1, &other);
    CHECK(memcmp(&keys, &other, sizeof(keys)) != 0);
    SKY_Keys_Session(&rig.crypto, in[0], in[1], in[2], 1, 2, &other);
    CHECK(memcmp(&keys, &other, sizeof(keys)) != 0);
    for (unsigned i = 0; i < 3; ++i)
    {
        in[i][15] = 1;
        SKY_Keys_Session(&rig.crypto, in[0], in[1], in[2], 1, 1, &other);
        CHECK(memcmp(&keys, &other, sizeof(keys)) != 0);
        in[i][15] = 0;
    }
    SKY_Keys_Session(&rig.crypto, in[0], in[1], in[2], 1, 1, &other);
    CHECK(memcmp(&keys, &other, sizeof(keys)) == 0);
    crypto_rig_close(&rig);
}

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 2);
    read_vectors(argc == 2 ? argv[1] : "");
    RUN(test_derived_bytes_are_those_of_the_vectors);
    RUN(test_pair_keys_are_those_of_the_vectors);
    RUN(test_session_keys_are_those_of_the_vectors);
    RUN(test_satellites_have_the_credentials_of_the_vectors);
    RUN(test_a_credential_allows_the_tenants_that_it_lists);
    RUN(test_what_is_no_credential_is_refused);
    RUN(test_what_is_no_satellite_is_refused);
    RUN(test_session_keys_depend_on_all_that_goes_in);
    return CHECK_RESULT();
}
