/**
 * @file
 * Private to the chunk store: its two tables (sky_store_table.c), on which sky_store.c works.
 *
 * A slot is free, partial or complete. A block exists as long as it has a slot; its slots are a doubly linked list. Free entries
 * are found in two ways: a list of those given back, and a high-water mark below which lie all that were ever used, so that
 * memory is first touched when there is something to put into it.
 */
#ifndef SKY_STORE_TABLE_H
#define SKY_STORE_TABLE_H

#include "sky_parts.h"
#include "sky_store.h"

#define NONE       SKY_STORE_NONE
#define NAME_WORDS (1u + SKY_KEY_BYTES / 8u)

struct SKY_StoreBlock
{
    uint64_t name[NAME_WORDS]; /* tenant, key */
    uint32_t hash;             /* of the name */
    uint32_t chunk_total, block_len, chunk_len, epoch;
    uint32_t held;         /* complete chunks */
    uint32_t lowest;       /* of their ids, if there are any; NONE: not known */
    uint32_t first;        /* slot; NONE: the block is free */
    uint32_t newer, older; /* by last use; older also links the free blocks */
    uint64_t used;         /* number of its last use; no two blocks have the same */
    uint64_t put_until_us, suspect_us;
};

struct SKY_StoreSlot
{
    SKY_Parts_t parts;      /* of a partial chunk */
    uint64_t    expires_us; /* of a partial chunk */
    uint32_t    block;      /* NONE: the slot is free */
    uint32_t    chunk_id;
    uint32_t    hash;
    uint32_t    prev, next; /* of the block; next also links the free slots */
    uint32_t    len;
    uint32_t    crc32c;
    uint16_t    crc16_from_zero;
    bool        complete;
};

/** What the index of blocks is asked for. */
void SKY_StoreTable_Name(uint64_t *name, uint32_t tenant, const uint8_t *key);
/** @return the block of that name and its hash, or NONE */
uint32_t SKY_StoreTable_FindBlock(const SKY_Store_t *store, const uint64_t *name, uint32_t hash);
/** @return the slot of a chunk, complete or not, or NONE */
uint32_t SKY_StoreTable_FindSlot(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id);
uint8_t *SKY_StoreTable_Data(const SKY_Store_t *store, uint32_t slot);

/** The block was used just now. */
void SKY_StoreTable_Touch(SKY_Store_t *store, uint32_t index);
/** An entry for the block of a PUT, which is not here; there is always one, because others may be evicted. */
uint32_t SKY_StoreTable_NewBlock(SKY_Store_t *store, const uint64_t *name, uint32_t hash);
/** A partial slot without parts for the chunk of a PUT, or NONE if all slots are the block's own. The block is the newest. */
uint32_t SKY_StoreTable_NewSlot(SKY_Store_t *store, uint32_t block_index, const SKY_Packet_t *pkt);
void     SKY_StoreTable_Complete(SKY_Store_t *store, uint32_t index, uint16_t crc16_from_zero);
/** Free one slot, and its block if that was its last. */
void SKY_StoreTable_DropSlot(SKY_Store_t *store, uint32_t index);
/** Free a block and its slots. @return complete chunks that went with it */
uint32_t SKY_StoreTable_DropBlock(SKY_Store_t *store, uint32_t index);

#endif
