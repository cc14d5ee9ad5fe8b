/**
 * @file
 * Keys that come over the air: operation `rekey` at the APID of isl, a command of the mission.
 *
 *     payload           command 1 | generation 1 | under 1 | spare 1 | nonce 12 | sealed
 *     load              take the master key of a generation, wrapped under the valid one of generation `under`; it waits
 *     activate          make the waiting key valid, beside the one of before
 *     forget            erase a key and end the associations under it
 *     load_peers        take keys between this satellite and others, of a generation; they are valid with the master key of the same
 *
 * Without a key with it, a command has a nonce of zeros and nothing sealed. A waiting key lets nobody associate. A command that comes again
 * changes nothing and is answered as before. A key is forgotten under another one only: who sends the command has shown that the other one
 * works.
 *
 * Keys are wrapped with ChaCha20-Poly1305 (RFC 8439). Both of these follow from the master key of generation `under` by SKY_Crypto_Kdf
 * over "skymemory 2 wrap" | command 1 | generation 1 | under 1 | spare 1 | plane 2 | slot 2 of the satellite:
 *
 *     cipher key 32, nonce key 32;    nonce = keyed BLAKE2b-96 (nonce key, the same 8 bytes | plain text)
 *
 * The 8 bytes are also the associated data. So a wrap is of one satellite, pair of generations and purpose, two different texts never meet
 * under one nonce, and the satellite checks that. `sealed` is the cipher text and the tag of 16. The plain text of load is the key; that of
 * load_peers is the index of the first satellite, 4 bytes, and 1 .. SKY_REKEY_PEERS_MOST keys, plane by plane; zeros are no key.
 */
#ifndef SKY_REKEY_H
#define SKY_REKEY_H

#include "sky_associations.h"

#define SKY_REKEY_PEERS_MOST 32u /**< keys of one load_peers */
#define SKY_REKEY_TEXT_MOST  (4u + SKY_REKEY_PEERS_MOST * SKY_CRYPTO_KEY_BYTES)
#define SKY_REKEY_BANKS      SKY_MASTER_KEYS /**< generations of keys between satellites that came over the air */

/** Commands of `rekey`. */
typedef enum
{
    SKY_REKEY_LOAD       = 1,
    SKY_REKEY_ACTIVATE   = 2,
    SKY_REKEY_FORGET     = 3,
    SKY_REKEY_LOAD_PEERS = 4
} SKY_RekeyCommand_t;

/** A command as it is sent. */
typedef struct
{
    uint8_t        command; /**< SKY_RekeyCommand_t */
    uint8_t        generation;
    uint8_t        under;  /**< generation of the key that wraps: lower than that of a master key, at most that of others */
    const uint8_t *nonce;  /**< in the payload; NULL: nothing is sealed */
    const uint8_t *sealed; /**< in the payload, SKY_CRYPTO_TAG_BYTES longer than @c text_bytes */
    size_t         text_bytes;
} SKY_Rekey_t;

/** Keys between satellites of one generation. */
typedef struct
{
    bool     is_used;
    uint8_t  generation;
    uint16_t slots; /**< of the constellation, when they came */
    uint8_t *keys;
} SKY_RekeyBank_t;

/** What a satellite keeps about new keys. */
typedef struct
{
    SKY_MasterKey_t waiting; /**< the key that was loaded last and is not active */
    SKY_RekeyBank_t banks[SKY_REKEY_BANKS];
    uint32_t        peers_max; /**< keys that a bank has room for */
    uint64_t        done;      /**< commands carried out, also if nothing was left to do */
    uint64_t refused; /**< commands that were not: the next two, and what is no command, has no room, or names no such key */
    uint64_t wrong;   /**< commands that brought a wrong key: a wrong wrap, or zeros */
    uint64_t kept;    /**< commands that would leave no key, or not that of the sender */
} SKY_RekeyState_t;

/** Read a command, without opening it. @return false if it is none */
bool SKY_Rekey_Decode(const uint8_t *payload, size_t bytes, SKY_Rekey_t *command);
/**
 * Open what is sealed.
 * @param self  this satellite, for which keys have to be wrapped
 * @param text  receives @c text_bytes; zeros if this fails. Wipe it afterwards
 * @return false if it was not wrapped so
 */
bool SKY_Rekey_Open(const SKY_Crypto_t *crypto, const SKY_MasterKey_t *under, SKY_Addr_t self, const SKY_Rekey_t *command,
                    uint8_t *text);

/**
 * Act on a command about a master key (not load_peers) that was authenticated as the mission's.
 * @param sender  generation of the key under which the command came
 * @return OK, also if the command came before; NOT_FOUND: there is no valid key `under`, or none of this generation waits; BAD_KEY: the wrap
 *         is wrong, or the key stays because it is the last one or the sender's; STORE_FULL: two other keys are valid
 */
SKY_Status_t SKY_Rekey_Act(SKY_RekeyState_t *state, SKY_Associations_t *table, SKY_Addr_t self, uint8_t sender,
                           const SKY_Rekey_t *command);

/* ---- keys between satellites: sky_rekey_peers.c ---------------------------------------------------------------------- */

/** Give memory for keys. @param memory  SKY_REKEY_BANKS x @p peers_max keys; stays with @p state. NULL: no such keys are taken */
void SKY_RekeyPeers_Init(SKY_RekeyState_t *state, uint8_t *memory, uint32_t peers_max);
/**
 * Take keys.
 * @param slots  of the constellation
 * @return OK; NOT_FOUND: there is no valid key `under`; BAD_KEY: the wrap is wrong; TOO_LARGE: there is no memory for such a satellite;
 *         STORE_FULL: keys of two other generations are in use
 */
SKY_Status_t SKY_RekeyPeers_Load(SKY_RekeyState_t *state, const SKY_Associations_t *table, SKY_Addr_t self, uint16_t slots,
                                 const SKY_Rekey_t *command);
/** Return true if keys of a generation came. */
bool SKY_RekeyPeers_Has(const SKY_RekeyState_t *state, uint8_t generation);
/** Find a key that came, whether it is valid or not. @return false if there is none */
bool SKY_RekeyPeers_Find(const SKY_RekeyState_t *state, SKY_Addr_t satellite, uint8_t generation,
                         uint8_t key[SKY_CRYPTO_KEY_BYTES]);
/** Erase all keys that came over the air and are not master keys in use. */
void SKY_Rekey_Clear(SKY_RekeyState_t *state, const SKY_Crypto_t *crypto);
/** Erase the keys of a generation. */
void SKY_RekeyPeers_Forget(SKY_RekeyState_t *state, const SKY_Crypto_t *crypto, uint8_t generation);

#endif
