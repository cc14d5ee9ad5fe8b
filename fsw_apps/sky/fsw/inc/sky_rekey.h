/**
 * @file
 * Master keys that come over the air: operation `rekey` at the APID of isl, a command of the mission.
 *
 *     payload, 64 bytes    command 1 | generation 1 | under 1 | spare 1 | nonce 12 | wrapped key 32 | tag 16
 *     load                 take the master key of a generation, wrapped under the valid one of generation `under`; it waits
 *     activate             make the waiting key valid, beside the one of before
 *     forget               erase a key and end the associations of hosts and missions under it
 *
 * What a command does not need is 0. A waiting key lets nobody associate. A command that comes again changes nothing and is answered as
 * before. A key is forgotten under another one only: who sends the command has shown that the other one works.
 *
 * A key is wrapped with ChaCha20-Poly1305 (RFC 8439). Both of these follow from the master key of generation `under` by SKY_Crypto_Kdf
 * over "skymemory 2 wrap" | command 1 | generation 1 | under 1 | spare 1 | plane 2 | slot 2 of the satellite:
 *
 *     cipher key 32, nonce key 32;    nonce = keyed BLAKE2b-96 (nonce key, the same 8 bytes | plain key)
 *
 * The 8 bytes are also the associated data. So a wrap is of one satellite, pair of generations and purpose, two different keys never meet
 * under one nonce, and the satellite checks that. Keys between satellites do not follow from master keys and stay as they are.
 */
#ifndef SKY_REKEY_H
#define SKY_REKEY_H

#include "sky_associations.h"

/** Commands of `rekey`. */
typedef enum
{
    SKY_REKEY_LOAD     = 1,
    SKY_REKEY_ACTIVATE = 2,
    SKY_REKEY_FORGET   = 3
} SKY_RekeyCommand_t;

/** A command as it is sent. */
typedef struct
{
    uint8_t command; /**< SKY_RekeyCommand_t */
    uint8_t generation;
    uint8_t under; /**< load: generation of the key that wraps it; lower than that of the key */
    uint8_t nonce[SKY_CRYPTO_NONCE_BYTES];
    uint8_t sealed[SKY_CRYPTO_KEY_BYTES + SKY_CRYPTO_TAG_BYTES];
} SKY_Rekey_t;

/** What a satellite keeps about new keys. */
typedef struct
{
    SKY_MasterKey_t waiting; /**< the key that was loaded last and is not active */
    uint64_t        refused; /**< commands with a wrong wrap, and those that would leave no key, or not that of the sender */
} SKY_RekeyState_t;

/** Read a command. @return false if its length is wrong, there is no such command, or anything but zeros stands where zeros belong */
bool SKY_Rekey_Decode(const uint8_t *payload, size_t bytes, SKY_Rekey_t *command);

/**
 * Act on a command that was authenticated as the mission's.
 * @param self    this satellite, for which keys have to be wrapped
 * @param sender  generation of the key under which the command came
 * @return OK, also if the command came before; BAD_OP: it is none; NOT_FOUND: there is no valid key `under`, or none of this generation
 *         waits; BAD_KEY: the wrap is wrong, or the key stays because it is the last one or the sender's; STORE_FULL: two other keys are
 *         valid
 */
SKY_Status_t SKY_Rekey_Act(SKY_RekeyState_t *state, SKY_Associations_t *table, SKY_Addr_t self, uint8_t sender,
                           const uint8_t *payload, size_t bytes);

#endif
