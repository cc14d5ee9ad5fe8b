/**
 * @file
 * A satellite's table of associations over a real library, with a few hosts and satellites.
 */
#ifndef ASSOCIATIONS_RIG_H
#define ASSOCIATIONS_RIG_H

#include "crypto_rig.h"
#include "fixture.h"
#include "sky_associations.h"

#define ESTABLISHED 4u
#define HALF_OPEN   3u
#define ENTRIES     (ESTABLISHED + HALF_OPEN)
#define ENDPOINT    UINT64_C(0x7F00000100001234)

static crypto_rig_t       rig;
static SKY_Associations_t table;
static SKY_Association_t  entries[ENTRIES];

static const uint8_t salt[SKY_SALT_BYTES]         = "salt of the boot";
static const uint8_t master[SKY_CRYPTO_KEY_BYTES] = {1, 1};
static const uint8_t newer[SKY_CRYPTO_KEY_BYTES]  = {2, 2};

static const SKY_HandshakeOrigin_t somewhere = {ENDPOINT, false};

/* The mission's table of keys between satellites: plane 1 only, generations 0 and 1. */
static inline bool peer_key(void *context, uint16_t plane, uint16_t slot, uint8_t generation, uint8_t key[SKY_CRYPTO_KEY_BYTES])
{
    CHECK(context == &rig);
    (void)memset(key, slot, SKY_CRYPTO_KEY_BYTES);
    return plane == 1u && generation <= 1u;
}

static inline SKY_AssociationsConfig_t a_config(void)
{
    return (SKY_AssociationsConfig_t){&rig.crypto, UINT32_MAX, ESTABLISHED, HALF_OPEN, 10, peer_key, &rig};
}

static inline void open(void)
{
    const SKY_AssociationsConfig_t config = a_config();

    crypto_rig_open(&rig);
    CHECK_EQ(SKY_Associations_MemoryBytes(&config), sizeof(entries));
    CHECK(SKY_Associations_Init(&table, &config, entries, sizeof(entries), salt));
    CHECK(SKY_Associations_SetMaster(&table, 0, master));
}

/* A request of a host (plane 0) or satellite with a word that a number chooses. */
static inline SKY_HandshakeRequest_t a_request(uint16_t plane, uint8_t generation, uint8_t number)
{
    SKY_HandshakeRequest_t request                          = {.word = {number}, .wanted = SKY_SUITE_BLAKE2B_HEADER};
    uint8_t                host_bytes[SKY_CREDENTIAL_BYTES] = {SKY_ROLE_HOST, generation, SKY_CREDENTIAL_ANY_TENANT};

    if (plane == 0)
    {
        CHECK(SKY_Credential_Decode(host_bytes, &request.credential));
    }
    else
    {
        SKY_Credential_OfSatellite((SKY_Addr_t){plane, 5}, generation, &request.credential);
    }
    return request;
}

static inline SKY_Association_t *begin_at(const SKY_HandshakeRequest_t *request, const SKY_HandshakeOrigin_t *origin,
                                          uint64_t now_us)
{
    uint8_t                 pair[SKY_CRYPTO_KEY_BYTES];
    SKY_HandshakeResponse_t response = {{0}, 0};

    CHECK(SKY_Associations_PairKey(&table, &request->credential, pair));
    SKY_Association_t *association = SKY_Associations_Begin(&table, request, pair, origin, now_us, &response);

    if (association != NULL)
    {
        CHECK(memcmp(response.salt, table.salt, sizeof(table.salt)) == 0);
        CHECK_EQ(response.granted, association->suite);
    }
    return association;
}

static inline SKY_Association_t *begin_with(const SKY_HandshakeRequest_t *request, uint64_t now_us)
{
    return begin_at(request, &somewhere, now_us);
}

/* Let host `number` associate; return the SPI. */
static inline uint32_t begin(uint8_t number, uint64_t now_us)
{
    const SKY_HandshakeRequest_t request     = a_request(0, 0, number);
    const SKY_Association_t     *association = begin_with(&request, now_us);

    CHECK(association != NULL);
    return association == NULL ? SKY_SPI_NONE : association->spi;
}

static inline void use(uint32_t spi, uint64_t now_us)
{
    SKY_Association_t *association = SKY_Associations_Find(&table, spi);

    CHECK(association != NULL);
    if (association != NULL)
    {
        SKY_Associations_Used(&table, association, ENDPOINT + now_us, now_us);
        CHECK_EQ(association->state, SKY_ASSOCIATION_ESTABLISHED);
        CHECK(association->used_us == now_us && association->endpoint == ENDPOINT + now_us);
    }
}

static inline bool is_there(uint32_t spi)
{
    return SKY_Associations_Find(&table, spi) != NULL;
}

#endif
