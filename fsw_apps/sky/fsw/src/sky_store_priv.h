/**
 * @file
 * Private to the chunk store: entries of its two tables.
 */
#ifndef SKY_STORE_PRIV_H
#define SKY_STORE_PRIV_H

#include "sky_parts.h"
#include "sky_store.h"

#define NONE       SKY_STORE_NONE
#define NAME_WORDS (1u + SKY_KEY_BYTES / 8u)

/** Lists that a block is in. */
#define LIST_ALL   0u /**< all blocks by last use; of a free block, the free blocks */
#define LIST_OWN   1u /**< those of its tenant by last use */
#define LIST_COUNT 2u

struct SKY_StoreBlock
{
    uint64_t     name[NAME_WORDS]; /* tenant and key */
    uint32_t     hash;             /* hash of the name */
    SKY_Stripe_t stripe;
    uint32_t     epoch;
    uint32_t     held;                                 /* number of complete chunks */
    uint32_t     lowest;                               /* lowest id of them, if there are any; NONE: not known */
    uint32_t     first;                                /* first slot; NONE: the block is free */
    uint16_t     tenant;                               /* row of its tenant in the store's table */
    uint8_t      track;                                /* of its newest PUT */
    uint32_t     newer[LIST_COUNT], older[LIST_COUNT]; /* neighbours in each list; the free blocks are linked by older */
    uint32_t     content;
    uint64_t     used; /* number of its last use; no two blocks have the same */
    uint64_t     put_until_us, suspect_us;
    uint64_t     version;
};

struct SKY_StoreSlot
{
    SKY_Parts_t parts;      /* parts of a partial chunk */
    uint64_t    expires_us; /* time at which a partial chunk is forgotten */
    uint32_t    block;      /* block; NONE: the slot is free */
    uint32_t    chunk_id;
    uint32_t    hash;
    uint32_t    prev, next; /* neighbours in the block; next also links the free slots */
    uint32_t    len;
    uint32_t    crc32c;
    uint16_t    crc16_from_zero;
    bool        complete;
};

#endif
