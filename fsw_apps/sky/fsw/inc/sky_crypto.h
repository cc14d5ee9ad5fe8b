/**
 * @file
 * Cryptography behind one small table of functions, so that a mission may put its own library or hardware there.
 *
 * A library fills SKY_Crypto_t (fsw_apps/sky/crypto does so over Monocypher and OpenSSL). The core builds HMAC, HKDF and its self-test
 * over it (sky_crypto.c) and knows no cipher. A library allocates nothing after its own start, and takes the same time whatever the
 * keys and the data are. Session keys are loaded into numbered places, so that a library can keep what it has made of a key.
 * Different threads may use one library at once, if each place is used by one thread at a time.
 */
#ifndef SKY_CRYPTO_H
#define SKY_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sky_icd.h" /* the suites: SKY_SUITE_NONE .. SKY_SUITE_HANDSHAKE */

/** Bit of a suite in a mask of suites. */
#define SKY_SUITE_BIT(suite) (1u << (suite))
/** The suites that use GMAC, and those that use BLAKE2b, as masks. */
#define SKY_SUITES_GMAC    (SKY_SUITE_BIT(SKY_SUITE_GMAC_HEADER) | SKY_SUITE_BIT(SKY_SUITE_GMAC_PACKET))
#define SKY_SUITES_BLAKE2B (SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_HEADER) | SKY_SUITE_BIT(SKY_SUITE_BLAKE2B_PACKET))

#define SKY_CRYPTO_KEY_BYTES   32u /**< of every key: master, pair, session, wrapping */
#define SKY_CRYPTO_TAG_BYTES   16u
#define SKY_CRYPTO_NONCE_BYTES 12u /**< of Seal and Open */
#define SKY_CRYPTO_HASH_BYTES  64u /**< of key and output of Hash, at most */
#define SKY_CRYPTO_PARTS_MAX   12u /**< of Hash and Tag */

/** A piece of what is hashed: parts are taken one after the other, as if they were one. */
typedef struct
{
    const void *data;
    size_t      bytes;
} SKY_CryptoPart_t;

/** What a library can do. Every function gets @c context first. */
typedef struct
{
    void    *context;
    uint32_t suites;    /**< mask of the session suites (1 .. 4) that it can do: SKY_SUITE_BIT */
    uint32_t key_count; /**< places for session keys: 0 .. key_count - 1 */

    /**
     * Keyed BLAKE2b (RFC 7693).
     * @param key_bytes  0 (no key, @p key may be NULL) .. 64
     * @param part_count 0 .. SKY_CRYPTO_PARTS_MAX
     * @param out_bytes  1 .. 64, a parameter of the hash: a shorter output is another hash, not a prefix
     */
    void (*Hash)(void *context, const uint8_t *key, size_t key_bytes, const SKY_CryptoPart_t *parts, uint32_t part_count,
                 uint8_t *out, size_t out_bytes);
    /** Put a session key into a place, over what was there. @return false if the place or the suite does not exist */
    bool (*LoadKey)(void *context, uint32_t place, uint8_t suite, const uint8_t key[SKY_CRYPTO_KEY_BYTES]);
    /** Erase the key of a place. The place may be empty. */
    void (*EraseKey)(void *context, uint32_t place);
    /**
     * Compute the tag of a packet with the key of a place.
     *
     * GMAC: AES-256-GCM without plaintext; the parts are the associated data, the nonce is 4 zero bytes and @p sequence, big-endian.
     * BLAKE2b: keyed BLAKE2b-128 over @p sequence, big-endian, and the parts.
     *
     * @param sequence  for GMAC never the same twice under one key
     * @return false, and @p tag zeroed, if the place is empty or the library failed
     */
    bool (*Tag)(void *context, uint32_t place, uint64_t sequence, const SKY_CryptoPart_t *parts, uint32_t part_count,
                uint8_t tag[SKY_CRYPTO_TAG_BYTES]);
    /**
     * Encrypt with ChaCha20-Poly1305 (RFC 8439); for keys that are sent over the air.
     * @param nonce   never the same twice under one key
     * @param sealed  @p bytes of cipher text, then the tag of 16; must not overlap @p plain
     */
    void (*Seal)(void *context, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const uint8_t nonce[SKY_CRYPTO_NONCE_BYTES],
                 const SKY_CryptoPart_t *associated, const uint8_t *plain, size_t bytes, uint8_t *sealed);
    /** Decrypt @p bytes of plain text. @return false, and @p plain zeroed, if the tag behind the cipher text is wrong */
    bool (*Open)(void *context, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const uint8_t nonce[SKY_CRYPTO_NONCE_BYTES],
                 const SKY_CryptoPart_t *associated, const uint8_t *sealed, size_t bytes, uint8_t *plain);
    /** Compare in a time that does not depend on the content. */
    bool (*IsEqual)(void *context, const void *one, const void *other, size_t bytes);
    /** Overwrite with zeros, in a way that no compiler leaves out. */
    void (*Wipe)(void *context, void *secret, size_t bytes);
} SKY_Crypto_t;

#define SKY_CRYPTO_HMAC_KEY_BYTES 128u                        /**< of SKY_Crypto_Hmac, at most: a block of BLAKE2b */
#define SKY_CRYPTO_HMAC_PARTS_MAX (SKY_CRYPTO_PARTS_MAX - 2u) /**< of SKY_Crypto_Hmac */
#define SKY_CRYPTO_KDF_PARTS_MAX  (SKY_CRYPTO_PARTS_MAX - 3u) /**< of SKY_Crypto_Kdf */

/** Compute HMAC (RFC 2104) with BLAKE2b-512 over parts. @param key_bytes  0 .. SKY_CRYPTO_HMAC_KEY_BYTES */
void SKY_Crypto_Hmac(const SKY_Crypto_t *crypto, const uint8_t *key, size_t key_bytes, const SKY_CryptoPart_t *parts,
                     uint32_t part_count, uint8_t out[SKY_CRYPTO_HASH_BYTES]);

/**
 * Derive a key: HKDF (RFC 5869) with HMAC-BLAKE2b-512 and an empty salt.
 * @param info       parts that say what the key is for
 * @param out_bytes  1 .. 64, so that the first round of HKDF's second step is enough
 */
void SKY_Crypto_Kdf(const SKY_Crypto_t *crypto, const uint8_t key[SKY_CRYPTO_KEY_BYTES], const SKY_CryptoPart_t *info,
                    uint32_t part_count, uint8_t *out, size_t out_bytes);

/** Return true if a tag is the one that the key of a place makes. Takes the same time wherever they differ. */
bool SKY_Crypto_IsTag(const SKY_Crypto_t *crypto, uint32_t place, uint64_t sequence, const SKY_CryptoPart_t *parts,
                      uint32_t part_count, const uint8_t tag[SKY_CRYPTO_TAG_BYTES]);

/**
 * Compare a library with known answers: hash, key derivation, the wrapping of keys, comparison, and the tags of every suite in its mask.
 * A satellite does so at its start, and has no security if it fails. Place 0 is used, and is empty afterwards.
 * @return false if an answer differs, or if the library has suites but no place
 */
bool SKY_Crypto_SelfTest(const SKY_Crypto_t *crypto);

#endif
