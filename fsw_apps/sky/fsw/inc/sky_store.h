/**
 * @file
 * Chunk store: slots of one size in memory that the caller hands in (sky_slab.h), given up in the order of last use.
 *
 * A chunk lies in a cell behind its own entry: a large one has a slot for itself, small ones share a slot with others of about their
 * size. Entries for blocks lie in cells of slots, too. So all memory is for whatever is put, large or small, and no table runs out
 * before the memory does. Blocks are keyed by (tenant, 32-byte key), chunks by (block, chunk id). A block is unusable as soon as
 * one of its chunks is gone (paper, section 3.9), so use is recorded per block and eviction takes whole blocks: the least
 * recently used one loses all its chunks on this satellite.
 *
 * Under a key there is one block at a time, of one version and one content, so chunks of two versions or contents never mix. A PUT
 * of a larger version makes the block go, an earlier one changes nothing. Without a block, no version is remembered.
 *
 * Tenants end in a wall. A table (SKY_Quotas_t) gives tenants a reserved and a largest share of the slots, that is, of the memory.
 * A slot belongs to one tenant at a time, so tenants share no slot, and what each has is counted exactly. Each tenant has a
 * list by last use of its own. All tenants that the table does not name are one together, the others. Without a table they have all.
 *  - What a tenant has not used of its reserve is kept free, so a reserve is there at once.
 *  - A PUT for which there is no room evicts the least recently used other block of its own tenant. It never evicts another
 *    tenant's, even if that has more than its reserve: so a tenant without a reserve may find no room (STORE_FULL).
 *  - One exception: a new table may leave a tenant less than its reserve. Then its PUTs evict from the tenant that is most above its
 *    own reserve, until the reserve is filled.
 *  - A block stays among the others if its tenant was one of them when it was put, even if a new table names that tenant.
 *  - A PUT needs two slots at most. If the least recently used block has none for itself, the blocks that share a slot with its
 *    first chunk go with it, so that the slot is free: SKY_STORE_EVICTS blocks a PUT at most. A tenant that a new table leaves less
 *    than it holds shrinks so with each of its PUTs, which are refused until they fit.
 *
 * Nothing is allocated after init, and nothing but the index is touched before it is used: an idle store of 64 MiB costs some
 * hundred kB of resident memory. Every loop is bounded by a table; a function says what it costs if that is more than a look-up.
 */
#ifndef SKY_STORE_H
#define SKY_STORE_H

#include "sky_packet.h"
#include "sky_slab.h"
#include "sky_stripe.h"

#define SKY_STORE_NONE      SKY_SLAB_NONE
#define SKY_STORE_SLOT_MAX  SKY_SLAB_SLOT_MAX /**< largest slot_count */
#define SKY_STORE_SLOTS_MIN 2u                /**< a block takes two: its entry, and a chunk */
#define SKY_STORE_TENANTS   SKY_SLAB_ROWS     /**< rows of the store's table of tenants */
#define SKY_STORE_OTHERS    0u                /**< the row of all tenants without a quota of their own */
#define SKY_STORE_PERCENT   100u
#define SKY_STORE_SPARES    2u                        /**< chunks of spare memory */
#define SKY_STORE_EVICTS    (2u * SKY_SLAB_PARTS_MAX) /**< blocks that a PUT evicts at most: all that share the two slots it needs */

typedef struct
{
    uint32_t slot_bytes; /**< largest chunk that a slot has room for: 1 .. SKY_LIMIT_CHUNK_BYTES */
    uint32_t slot_count; /**< SKY_STORE_SLOTS_MIN .. SKY_STORE_SLOT_MAX */
} SKY_StoreCfg_t;

/** A tenant's share of a store, in percent of its slots. */
typedef struct
{
    uint32_t tenant;
    uint32_t reserved_percent; /**< rounded down to whole slots */
    uint32_t most_percent;     /**< rounded up; reserved_percent .. 100. 0: it may store nothing */
} SKY_Quota_t;

/** Shares of all tenants. The reserves come to 100 at most. */
typedef struct
{
    uint32_t    count; /**< 0: there is no table, and @c others does not matter */
    SKY_Quota_t others;
    SKY_Quota_t tenants[SKY_LIMIT_TENANTS]; /**< the first @c count, each with a number of its own */
} SKY_Quotas_t;

/** Facts of a block in the store, apart from its chunks. */
typedef struct
{
    uint32_t     tenant;
    uint8_t      key[SKY_KEY_BYTES];
    SKY_Stripe_t stripe;
    uint32_t     epoch;        /**< newest epoch of its PUTs */
    uint32_t     held;         /**< complete chunks held here */
    uint8_t      track;        /**< schedule for whose window its newest PUT was placed; 0: the constellation's only one */
    uint32_t     content;      /**< content instance */
    uint64_t     version;      /**< version under the key; 0: the key names the content */
    uint64_t     put_until_us; /**< time until which parts of its PUTs are kept: until then the block may be incomplete */
    uint64_t     suspect_us;   /**< time given to SKY_Store_Suspect; 0: none, or a chunk was put or went since */
} SKY_BlockInfo_t;

/** Bounds of a purge: which block under a key goes. An older version than the one that is named goes whatever else it is. */
typedef struct
{
    uint64_t version; /**< newest version that goes; 0: any does */
    uint32_t content; /**< content instance of that version that goes; 0: any does */
    uint32_t epoch;   /**< latest row for which it may be kept; SKY_SCHEDULE_STAYS: it goes whatever it is kept for */
} SKY_StoreBounds_t;

/** Position of a walk by last use. */
typedef struct
{
    uint64_t used; /**< number of the last use of the block it is at; 0: not begun */
    uint32_t at;   /**< that block, if it is still there and was not used since */
} SKY_StoreWalk_t;

/** One chunk held. @c data stays valid until the next call that may put, purge, drop or expire. */
typedef struct
{
    const uint8_t *data;
    uint32_t       len;
    uint32_t       crc32c;
    uint16_t       crc16_from_zero;
    SKY_Addr_t     home; /**< satellite for which it is kept; all 0: it is this satellite's own */
} SKY_ChunkView_t;

typedef struct
{
    uint32_t blocks;  /**< blocks with at least one chunk, complete or in part */
    uint32_t chunks;  /**< chunks, complete or in part */
    uint32_t partial; /**< chunks in part */
    uint32_t hinted;  /**< complete chunks that are kept for another satellite */
    uint32_t leaving; /**< complete chunks that another satellite has got, and that are forgotten soon */
    uint64_t bytes;   /**< bytes of complete chunks */
    uint64_t evicted_blocks, evicted_chunks, expired_partial;
    uint64_t evicted_hinted; /**< evicted chunks that were kept for another satellite, which has missed them */
} SKY_StoreCounters_t;

/** Ends of a list of blocks by last use. */
typedef struct
{
    uint32_t newest, oldest;
} SKY_StoreList_t;

/** A tenant of the store, or all others together. */
typedef struct
{
    uint32_t        tenant;               /**< not for the others */
    uint32_t        reserved, most, used; /**< slots that it may have, and has */
    uint32_t        blocks;               /**< blocks that it has */
    SKY_StoreList_t by_use;               /**< the same */
    uint64_t        evicted_chunks;       /**< complete chunks of its own that made room */
    uint64_t        refused;              /**< PUTs that found no room */
} SKY_StoreTenant_t;

typedef struct SKY_StoreBlock SKY_StoreBlock_t; /* private, sky_store_priv.h */
typedef struct SKY_StoreChunk SKY_StoreChunk_t;

typedef struct
{
    SKY_StoreCfg_t      cfg;
    SKY_StoreCounters_t counters;
    SKY_Slab_t          slab;
    uint8_t            *spare; /**< SKY_STORE_SPARES * slot_bytes, which no chunk gets: the owner's, who rebuilds chunks there */
    uint32_t           *blocks_by_hash; /**< first block of each row of the index, or SKY_STORE_NONE */
    uint32_t           *chunks_by_hash;
    uint32_t            index_mask;                 /**< rows of the index less one: a power of two less one */
    SKY_StoreList_t     by_use;                     /**< all blocks */
    uint64_t            uses;                       /**< number of uses so far */
    uint32_t            expire_slot;                /**< slot at which SKY_Store_Expire goes on */
    SKY_StoreTenant_t   tenants[SKY_STORE_TENANTS]; /**< the others first, then those of the table in its order */
    uint32_t            tenant_count;               /**< rows that count, from 1 */
    uint32_t            promised; /**< slots of each tenant that it uses or that are reserved, whichever is more: the sum */
    SKY_BlockInfo_t
             evicted[SKY_STORE_EVICTS]; /**< blocks evicted by the last SKY_Store_Put, with the complete chunks that went as
                                                        @c held: none if it was one of parts only */
    uint32_t evicted_count;
    bool     completed; /**< the last SKY_Store_Put has completed a chunk */
    uint64_t secret[2];
} SKY_Store_t;

/** Return the bytes of memory that a store of @p cfg needs, at any alignment; 0 if @p cfg is out of range. */
size_t SKY_Store_MemoryBytes(const SKY_StoreCfg_t *cfg);
/**
 * Begin an empty store.
 * @param memory  stays with the store; its contents do not matter
 * @param seed    randomises the index, so that nobody can aim keys at one place of it
 * @return false if cfg is out of range, or the memory too little
 */
bool SKY_Store_Init(SKY_Store_t *store, const SKY_StoreCfg_t *cfg, void *memory, size_t memory_bytes, uint64_t seed);
/** Do quotas make sense: shares in order, reserves for which there is room, no tenant twice? */
bool SKY_Quotas_AreSound(const SKY_Quotas_t *quotas);
/**
 * Give the tenants other quotas from now on. Nothing is evicted now (see above). Tenants' counters of events begin anew. Walks over
 * all slots and blocks. The store begins without quotas.
 * @return false if they are not sound: those before stay
 */
bool SKY_Store_SetQuotas(SKY_Store_t *store, const SKY_Quotas_t *quotas);

/**
 * Take in the payload of a PUT (a whole chunk or a part of it). A complete chunk is checked against its CRC-32C; one that is
 * already there is kept as it is. Parts are remembered per chunk and forgotten after @p expires_us; all parts of a chunk but the
 * last have one length, and begin at multiples of it. To make room the least recently used other block of its tenant is evicted,
 * whatever it holds, and those that share its slot if that is needed; a packet that is wrong evicts nothing. Nor does one with the flag FREE, which is no use of its block either.
 *
 * The cost is that of copying the payload; a new block adds a look at the table of tenants, an eviction a look-up per chunk of the
 * evicted blocks.
 *
 * @return OK (complete or part taken, or already there), or why nothing was taken:
 *         TOO_LARGE    chunk longer than a slot
 *         BAD_CHUNK    id, lengths or offset contradict each other, or parts overlap
 *         BAD_CRC      CRC-32C wrong; if the last part came, all parts of the chunk are forgotten
 *         OLD_VERSION  a newer version of the block is here, complete or in part
 *         BAD_KEY      the block was declared with other lengths or another content, or another chunk is held under this id:
 *                      PURGE it first, or PUT a newer version. A block of which no chunk is complete is declared anew instead
 *         STORE_FULL   the block itself fills what its tenant may have, or others hold all that is not reserved; or there is no room
 *                      and the packet has the flag FREE
 */
SKY_Status_t SKY_Store_Put(SKY_Store_t *store, uint64_t expires_us, const SKY_Packet_t *pkt);

/**
 * Find a block, for one look-up or a row of them: the number that the next functions take.
 * @return valid until the next call that may put, purge, drop or expire. SKY_STORE_NONE: not here, and nothing is found in it
 */
uint32_t SKY_Store_Find(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key);
/** Find a block that has this version and this content; 0 stands for any. @return as SKY_Store_Find */
uint32_t SKY_Store_FindInstance(const SKY_Store_t *store, uint32_t tenant, const uint8_t *key, uint64_t version,
                                uint32_t content);
/** Mark a block as used. @param block  as SKY_Store_Find returns it */
void SKY_Store_Use(SKY_Store_t *store, uint32_t block);
/** Find a complete chunk and mark its block as used. @return OK or NOT_FOUND */
SKY_Status_t SKY_Store_Get(SKY_Store_t *store, uint32_t block, uint32_t chunk_id, SKY_ChunkView_t *view);
/** Find a complete chunk without recording its use. @return OK or NOT_FOUND */
SKY_Status_t SKY_Store_Peek(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id, SKY_ChunkView_t *view);
/** Is a complete chunk held? Its use is not recorded. */
bool SKY_Store_Has(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id);
/** Get version and content of a block that was found, even if only parts of it are here. */
void SKY_Store_Instance(const SKY_Store_t *store, uint32_t block, uint64_t *version, uint32_t *content);
/** What is known of a block; its use is not recorded. @return OK or NOT_FOUND (also when only parts are here) */
SKY_Status_t SKY_Store_Block(const SKY_Store_t *store, uint32_t block, SKY_BlockInfo_t *info);
/**
 * Lowest complete chunk id of the block that is >= @p from, or SKY_STORE_NONE. Walks over the chunks of the block, but not while
 * the lowest of all is known: from the first question for it (@p from 0) until it goes.
 */
uint32_t SKY_Store_NextChunk(SKY_Store_t *store, uint32_t block, uint32_t from);
/** Walk over the complete chunks of a block, any order: @p cursor starts at 0. @return false at the end */
bool SKY_Store_EachChunk(const SKY_Store_t *store, uint32_t block, uint32_t *cursor, uint32_t *chunk_id);
/** Return the satellite for which a complete chunk is kept; all 0: for none, or no such chunk is held. */
SKY_Addr_t SKY_Store_HomeOf(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id);
/** Does a block of this version, content and epoch lie within the bounds of a purge? */
bool SKY_StoreBounds_Hold(const SKY_StoreBounds_t *bounds, uint64_t version, uint32_t content, uint32_t epoch);
/**
 * Forget a block if it lies within the bounds. Walks over its chunks.
 * @param bounds  NULL: whatever block is under the key
 * @return complete chunks that were removed
 */
uint32_t SKY_Store_Purge(SKY_Store_t *store, uint32_t tenant, const uint8_t *key, const SKY_StoreBounds_t *bounds);
/** Forget one complete chunk of a block that was found (after it has moved elsewhere). @return false if it was not held */
bool SKY_Store_Drop(SKY_Store_t *store, uint32_t block, uint32_t chunk_id);
/** Has the satellite got a complete chunk that was kept for it, so that it is forgotten here soon? */
bool SKY_Store_Leaves(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id);
/** Note that the satellite has got a chunk which was kept for it. It is forgotten after @p until_us, unless it is put again before. */
void SKY_Store_Leave(SKY_Store_t *store, uint32_t block, uint32_t chunk_id, uint64_t until_us);
/** Note the time at which a block was found broken elsewhere; 0: it was found whole. @p block was found and holds a complete chunk. */
void SKY_Store_Suspect(SKY_Store_t *store, uint32_t block, uint64_t since_us);
/** Raise the epoch of a block; an earlier epoch changes nothing. @p block was found. */
void SKY_Store_RaiseEpoch(SKY_Store_t *store, uint32_t block, uint32_t epoch);
/** Forget parts whose time is over, and chunks that leave, among those of @p most slots a call. @return number of chunks that were given up */
uint32_t SKY_Store_Expire(SKY_Store_t *store, uint64_t now_us, uint32_t most);
/**
 * Walk over all blocks that hold a complete chunk, any order: @p cursor starts at 0. Looks at all slots and all blocks in
 * the worst case. @return false at the end; else *cursor - 1 is the result of SKY_Store_Find. Blocks put meanwhile may be missed.
 */
bool SKY_Store_NextBlock(const SKY_Store_t *store, uint32_t *cursor, SKY_BlockInfo_t *info);
/**
 * Walk over the blocks that hold a complete chunk, the last used first: @p walk starts as all zeros. Blocks may come, go and be used
 * meanwhile; blocks that are put or used after the walk has begun may be passed over. It costs a step of a list. If the last block
 * of the walk has gone or was used since, the walk looks for its place from the newest block on: a step for each block that was used
 * since, and for each that it has passed and that is still there.
 * @return false at the end
 */
bool SKY_Store_NextUsed(const SKY_Store_t *store, SKY_StoreWalk_t *walk, SKY_BlockInfo_t *info);
/** Forget everything; counters of events stay. */
void SKY_Store_Clear(SKY_Store_t *store);

#endif
