/**
 * @file
 * Associations that a satellite has granted: the responder's side. The initiator's is sky_session.h.
 *
 * How a satellite takes a packet of suite handshake:
 *
 *     SKY_Handshake_DecodeRequest    is it one?
 *     SKY_Associations_PairKey       which key would its sender hold?
 *     SKY_Handshake_IsTag            does it?
 *     SKY_Associations_Begin         grant an SPI; the response gets a tag under the same pair key
 *
 * And any other packet with a tag:
 *
 *     SKY_Associations_Find          by its SPI; NULL: unauthenticated
 *     SKY_Crypto_IsTag               with place_there and the packet's sequence; wrong: unauthenticated
 *     SKY_Replay_IsNew, .._Note      of the association; for commands SKY_Rising_* too
 *     SKY_Associations_Used          it counts as established from now on
 *
 * A new association is half-open until a packet with a right tag uses it. Half-open ones have few places and push out only each other, so
 * recorded handshakes, sent again, push out nobody who is established. One whose sender has shown that its address can be reached, by a cookie,
 * makes no room for one whose sender has not: that is told to come again with a cookie. So invented addresses push out only each other. There
 * make room, in this order and the oldest first: those of addresses that were not shown, those of the new one's own address, those of addresses
 * that have several, others. So whoever floods from less addresses of his own than there are places pushes out his own.
 *
 * Among the established ones the longest unused one goes when there is no room. A credential has a quarter of the places, and at least 8: one
 * more ends its own longest unused one.
 *
 * The salt is drawn at boot, and an SPI is given out once under it. Session keys follow from both, so no key comes again. Somebody who sends 1,024
 * recorded handshakes a second, as many as strangers may, uses up the 2^24 SPIs of each of 16 entries in three days. Then another salt follows
 * from the one of before, and all SPIs can be given out again.
 */
#ifndef SKY_ASSOCIATIONS_H
#define SKY_ASSOCIATIONS_H

#include "sky_handshake.h"
#include "sky_replay.h"

#define SKY_ASSOCIATIONS_MAX   4096u /**< established and half-open ones together */
#define SKY_MASTER_KEYS        2u    /**< generations of a satellite's master key that are valid at once */
#define SKY_ASSOCIATION_PLACES 2u    /**< places for keys that each takes */

typedef enum
{
    SKY_ASSOCIATION_FREE = 0,
    SKY_ASSOCIATION_HALF_OPEN,
    SKY_ASSOCIATION_ESTABLISHED
} SKY_AssociationState_t;

typedef struct
{
    uint32_t         spi;
    uint8_t          state;        /**< SKY_AssociationState_t */
    uint8_t          suite;        /**< the granted one */
    bool             is_reachable; /**< half-open: the address of who asked for it was shown */
    bool             is_further;   /**< half-open: when it began, there was another one of its address, which was shown, too */
    SKY_Credential_t credential;
    uint8_t          word[SKY_WORD_BYTES];
    uint32_t         place_there; /**< key of what comes from the initiator */
    uint32_t         place_back;  /**< key of what is sent to it */
    SKY_Replay_t     replay;
    SKY_Rising_t     commands;
    uint64_t         sequence; /**< last one that was sent back under */
    uint64_t         used_us;  /**< when it began, or a packet with a right tag came last */
    uint64_t         endpoint; /**< where that came from */
    uint32_t         round;    /**< upper bits of the last SPI of this entry */
    uint64_t         key_mark; /**< of a satellite: mark of the pair key under which it was granted; the caller's */
} SKY_Association_t;

/** Where a handshake comes from. */
typedef struct
{
    uint64_t endpoint;     /**< address and port; a number in their place, if a right tag has shown more than an address does */
    bool     is_reachable; /**< it was shown that the address can be reached */
} SKY_HandshakeOrigin_t;

/** Find the key between this satellite and another. @return false if there is none of this generation */
typedef bool (*SKY_PeerKey_t)(void *context, uint16_t plane, uint16_t slot, uint8_t generation,
                              uint8_t key[SKY_CRYPTO_KEY_BYTES]);

typedef struct
{
    const SKY_Crypto_t *crypto;
    uint32_t            suites;          /**< mask of those to be granted; what @c crypto cannot do is left out */
    uint32_t            established_max; /**< from 1 */
    uint32_t            half_open_max;   /**< from 1 */
    uint32_t            first_place; /**< keys are at first_place .. first_place + 2 x (established_max + half_open_max) - 1 */
    SKY_PeerKey_t       peer_key;    /**< NULL: no satellite associates */
    void               *peer_context;
} SKY_AssociationsConfig_t;

typedef struct
{
    bool    is_set;
    uint8_t generation;
    uint8_t key[SKY_CRYPTO_KEY_BYTES];
} SKY_MasterKey_t;

/** Counters since the start. */
typedef struct
{
    uint32_t begun;    /**< associations granted */
    uint32_t repeated; /**< requests that got the SPI of before */
    uint32_t evicted;  /**< established ones that made room */
    uint32_t lapsed;   /**< half-open ones that made room */
    uint32_t refused;  /**< requests for which no suite or place was left */
} SKY_AssociationsStats_t;

typedef struct
{
    SKY_AssociationsConfig_t config;
    SKY_Association_t       *entries;
    uint32_t                 count; /**< of entries */
    uint32_t                 index_bits;
    uint32_t                 established, half_open;
    uint8_t                  salt[SKY_SALT_BYTES];
    SKY_MasterKey_t          masters[SKY_MASTER_KEYS];
    SKY_AssociationsStats_t  stats;
} SKY_Associations_t;

/** Return the bytes of memory of a table; 0 if a number of the configuration is out of range, or @c crypto has not places enough. */
size_t SKY_Associations_MemoryBytes(const SKY_AssociationsConfig_t *config);
/**
 * Make an empty table.
 * @param memory  aligned for uint64_t; SKY_Associations_MemoryBytes
 * @param salt    random, of this boot
 * @return false as SKY_Associations_MemoryBytes returns 0, or if the memory is too small
 */
bool SKY_Associations_Init(SKY_Associations_t *table, const SKY_AssociationsConfig_t *config, void *memory, size_t memory_bytes,
                           const uint8_t salt[SKY_SALT_BYTES]);

/** Make a master key valid, over that of the same generation. @return false if two others are valid */
bool SKY_Associations_SetMaster(SKY_Associations_t *table, uint8_t generation, const uint8_t key[SKY_CRYPTO_KEY_BYTES]);
/** Return true if a master key of this generation is valid. */
bool SKY_Associations_HasMaster(const SKY_Associations_t *table, uint8_t generation);
/** Find the valid master key of a generation. @return NULL if there is none */
const SKY_MasterKey_t *SKY_Associations_Master(const SKY_Associations_t *table, uint8_t generation);
/** Return true if a master key of another generation is valid, so that this one can go. */
bool SKY_Associations_HasOther(const SKY_Associations_t *table, uint8_t generation);
/** Erase a master key, and end all associations of hosts and missions of its generation. @return false if there was none */
bool SKY_Associations_ForgetMaster(SKY_Associations_t *table, uint8_t generation);

/**
 * Find the pair key that the owner of a credential holds: derived from the master key of its generation; for a satellite, looked up.
 * @return false if there is none. Then nobody can be answered under a tag.
 */
bool SKY_Associations_PairKey(const SKY_Associations_t *table, const SKY_Credential_t *credential,
                              uint8_t pair[SKY_CRYPTO_KEY_BYTES]);
/** Return true if there is a place for an association whose sender's address was not shown. */
bool SKY_Associations_HasRoom(const SKY_Associations_t *table);
/**
 * Grant an association for a request whose tag was right. The same credential and word again get the same association again. Nothing of it
 * changes, but that a half-open one belongs to the first address that was shown. A wanted suite that is not there is replaced by BLAKE2b of the
 * same scope.
 * @param pair      from SKY_Associations_PairKey
 * @param response  what to answer, if this is not NULL
 * @return NULL if there is no suite, no place for its keys, or no room (SKY_Associations_HasRoom)
 */
SKY_Association_t *SKY_Associations_Begin(SKY_Associations_t *table, const SKY_HandshakeRequest_t *request,
                                          const uint8_t pair[SKY_CRYPTO_KEY_BYTES], const SKY_HandshakeOrigin_t *origin,
                                          uint64_t now_us, SKY_HandshakeResponse_t *response);
/** Find an association, half-open ones too. @return NULL if the SPI is not in use */
SKY_Association_t *SKY_Associations_Find(const SKY_Associations_t *table, uint32_t spi);
/** Note that a packet with a right tag came. This may end another association, and leaves @p association where it is. */
void SKY_Associations_Used(SKY_Associations_t *table, SKY_Association_t *association, uint64_t endpoint, uint64_t now_us);
/** End an association and erase its keys. */
void SKY_Associations_End(SKY_Associations_t *table, SKY_Association_t *association);
/** Return the next sequence number to send back under; 0 if none is left. */
uint64_t SKY_Association_NextSequence(SKY_Association_t *association);

#endif
