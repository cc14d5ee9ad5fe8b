/**
 * @file
 * Credentials, and the keys that follow from others.
 *
 * Every derivation is SKY_Crypto_Kdf over a label of its own; numbers are big-endian, parts follow each other without a separator, as
 * all but the label have a fixed length:
 *
 *     key                      from              info
 *     master of a satellite    mission's root    "skymemory 2 master" | plane 2 | slot 2 | generation 1
 *     of two satellites        mission's root    "skymemory 2 peers" | lower address 4 | higher address 4 | generation 1
 *     pair of host, satellite  satellite's master  "skymemory 2 pair" | credential 48
 *     session, 64 bytes        pair key          "skymemory 2 session" | word 16 | salt 16 | SPI 4 | suite 1
 *
 * The first two are made by the mission on the ground; a satellite never holds the root. tests/vectors/keys.json has examples.
 *
 * A credential says who a host is and which tenants it may name. It is no secret: the pair key that follows from it shows that it was
 * issued. 48 bytes:
 *
 *     role 1        0 host, 1 mission, 2 satellite
 *     generation 1  of the master key that the pair key follows from, or of the key of two satellites
 *     tenants 1     number of tenants, at most 8; 255: any
 *     spare 1       0
 *     name 12       chosen by who issues it; of a satellite: plane 2, slot 2, zeros
 *     tenants 8 x 4 those beyond the number are 0
 */
#ifndef SKY_KEYS_H
#define SKY_KEYS_H

#include "sky_crypto.h"
#include "sky_packet.h"

#define SKY_CREDENTIAL_BYTES       48u
#define SKY_CREDENTIAL_NAME_BYTES  12u
#define SKY_CREDENTIAL_TENANTS_MAX 8u
#define SKY_CREDENTIAL_ANY_TENANT  255u /**< as number of tenants */
#define SKY_WORD_BYTES             16u  /**< random word of a host in a handshake */
#define SKY_SALT_BYTES             16u  /**< random salt of a satellite's boot */

/** Roles of a credential. */
typedef enum
{
    SKY_ROLE_HOST      = 0, /**< data of its tenants */
    SKY_ROLE_MISSION   = 1, /**< all, commands too */
    SKY_ROLE_SATELLITE = 2  /**< data of any tenant, and what satellites tell each other */
} SKY_Role_t;

/** A credential as it is sent. One that SKY_Credential_Decode or SKY_Credential_OfSatellite has filled is sound. */
typedef struct
{
    uint8_t bytes[SKY_CREDENTIAL_BYTES];
} SKY_Credential_t;

/** Session keys of an association. */
typedef struct
{
    uint8_t there[SKY_CRYPTO_KEY_BYTES]; /**< from the initiator to the responder */
    uint8_t back[SKY_CRYPTO_KEY_BYTES];
} SKY_SessionKeys_t;

/**
 * Take a credential from @p bytes (SKY_CREDENTIAL_BYTES).
 * @return false if it is none: an unknown role, too many tenants, anything but zeros where zeros belong, a satellite that names tenants
 *         or has plane or slot 0
 */
bool SKY_Credential_Decode(const uint8_t *bytes, SKY_Credential_t *credential);
/** Write the credential of a satellite. @param satellite  plane and slot from 1 */
void SKY_Credential_OfSatellite(SKY_Addr_t satellite, uint8_t generation, SKY_Credential_t *credential);
/** Return true if a sound credential lists the tenant, or lists any. */
bool SKY_Credential_Allows(const SKY_Credential_t *credential, uint32_t tenant);
/** Return plane and slot of a satellite's sound credential. */
SKY_Addr_t SKY_Credential_Satellite(const SKY_Credential_t *credential);

static inline SKY_Role_t SKY_Credential_Role(const SKY_Credential_t *credential)
{
    return (SKY_Role_t)credential->bytes[0];
}

static inline uint8_t SKY_Credential_Generation(const SKY_Credential_t *credential)
{
    return credential->bytes[1];
}

/** Derive the pair key of a host and the satellite whose master key this is. */
void SKY_Keys_Pair(const SKY_Crypto_t *crypto, const uint8_t master[SKY_CRYPTO_KEY_BYTES], const SKY_Credential_t *credential,
                   uint8_t pair[SKY_CRYPTO_KEY_BYTES]);
/** Derive the two keys of an association. @param suite  the granted one */
void SKY_Keys_Session(const SKY_Crypto_t *crypto, const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const uint8_t word[SKY_WORD_BYTES],
                      const uint8_t salt[SKY_SALT_BYTES], uint32_t spi, uint8_t suite, SKY_SessionKeys_t *keys);

#endif
