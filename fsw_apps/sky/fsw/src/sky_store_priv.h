/**
 * @file
 * Private to the chunk store: entries of blocks and of chunks, each in a cell of the slab. A reference to one is the name of its cell.
 */
#ifndef SKY_STORE_PRIV_H
#define SKY_STORE_PRIV_H

#include "sky_parts.h"
#include "sky_store.h"

#define NONE       SKY_STORE_NONE
#define NAME_WORDS (1u + SKY_KEY_BYTES / 8u)

/** Lists that a block is in. */
#define LIST_ALL   0u /**< all blocks by last use */
#define LIST_OWN   1u /**< those of its tenant by last use */
#define LIST_COUNT 2u

struct SKY_StoreBlock
{
    uint64_t     name[NAME_WORDS]; /* tenant and key */
    uint64_t     used;             /* number of its last use; no two blocks have the same */
    uint64_t     put_until_us, suspect_us;
    uint64_t     version;
    uint32_t     hash;      /* hash of the name */
    uint32_t     next_hash; /* next block in its row of the index */
    SKY_Stripe_t stripe;
    uint32_t     epoch;
    uint32_t     held;                                 /* number of complete chunks */
    uint32_t     lowest;                               /* lowest id of them, if there are any; NONE: not known */
    uint32_t     first;                                /* first chunk */
    uint32_t     newer[LIST_COUNT], older[LIST_COUNT]; /* neighbours in each list */
    uint32_t     content;
    uint16_t     row;   /* row of its tenant in the store's table */
    uint8_t      track; /* of its newest PUT */
};

/* The bytes of a chunk are behind its entry, from CHUNK_HEAD on. */
struct SKY_StoreChunk
{
    SKY_Parts_t parts;      /* parts of a partial chunk */
    uint64_t    expires_us; /* time at which a partial chunk is forgotten, or one that leaves */
    uint32_t    hash;
    uint32_t    next_hash; /* next chunk in its row of the index */
    uint32_t    block;
    uint32_t    chunk_id;
    uint32_t    prev, next; /* neighbours in the block */
    uint32_t    len;
    uint32_t    crc32c;
    uint16_t    crc16_from_zero;
    SKY_Addr_t  home; /* satellite for which it is kept; all 0: it is this satellite's own */
    bool        complete;
    bool        leaves; /* its home has it; it is forgotten at expires_us */
};

#define CHUNK_HEAD ((uint32_t)((sizeof(SKY_StoreChunk_t) + SKY_SLAB_UNIT - 1u) / SKY_SLAB_UNIT * SKY_SLAB_UNIT))

static inline SKY_StoreBlock_t *block_at(const SKY_Store_t *store, uint32_t block)
{
    return (SKY_StoreBlock_t *)(void *)SKY_Slab_At(&store->slab, block);
}

static inline SKY_StoreChunk_t *chunk_at(const SKY_Store_t *store, uint32_t chunk)
{
    return (SKY_StoreChunk_t *)(void *)SKY_Slab_At(&store->slab, chunk);
}

/** Return where the bytes of a chunk are. */
static inline uint8_t *data_of(const SKY_Store_t *store, uint32_t chunk)
{
    return SKY_Slab_At(&store->slab, chunk) + CHUNK_HEAD;
}

#endif
