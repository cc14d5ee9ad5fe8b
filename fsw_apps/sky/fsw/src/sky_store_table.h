/**
 * @file
 * Private to the chunk store: its two tables (sky_store_table.c), on which sky_store.c works.
 *
 * A slot is free, partial or complete. A block exists as long as it has a slot; its slots are a doubly linked list. Free entries
 * are found in two ways: by a list of those given back, and by a high-water mark below which all used ones lie. So memory is
 * first touched when there is something to put into it.
 */
#ifndef SKY_STORE_TABLE_H
#define SKY_STORE_TABLE_H

#include "sky_parts.h"
#include "sky_store.h"

#define NONE       SKY_STORE_NONE
#define NAME_WORDS (1u + SKY_KEY_BYTES / 8u)

struct SKY_StoreBlock
{
    uint64_t name[NAME_WORDS]; /* tenant and key */
    uint32_t hash;             /* hash of the name */
    uint32_t chunk_total, block_len, chunk_len, epoch;
    uint32_t held;         /* number of complete chunks */
    uint32_t lowest;       /* lowest id of them, if there are any; NONE: not known */
    uint32_t first;        /* first slot; NONE: the block is free */
    uint32_t newer, older; /* neighbours by last use; older also links the free blocks */
    uint64_t used;         /* number of its last use; no two blocks have the same */
    uint64_t put_until_us, suspect_us;
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

/** Name for which the index of blocks is searched. */
void SKY_StoreTable_Name(uint64_t *name, uint32_t tenant, const uint8_t *key);
/** Find a block by name. @return the block and the hash of its name, or NONE */
uint32_t SKY_StoreTable_FindBlock(const SKY_Store_t *store, const uint64_t *name, uint32_t hash);
/** Find the slot of a chunk, complete or not. @return NONE if there is none */
uint32_t SKY_StoreTable_FindSlot(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id);
uint8_t *SKY_StoreTable_Data(const SKY_Store_t *store, uint32_t slot);

/** Note that the block was used just now. */
void SKY_StoreTable_Touch(SKY_Store_t *store, uint32_t index);
/** Make an entry for the block of a PUT, which is not here. There is always one, because others may be evicted. */
uint32_t SKY_StoreTable_NewBlock(SKY_Store_t *store, const uint64_t *name, uint32_t hash);
/** Make a partial slot without parts for the chunk of a PUT. The block is the newest. @return NONE if all slots are the block's
 * own */
uint32_t SKY_StoreTable_NewSlot(SKY_Store_t *store, uint32_t block_index, const SKY_Packet_t *pkt);
void     SKY_StoreTable_Complete(SKY_Store_t *store, uint32_t index, uint16_t crc16_from_zero);
/** Free one slot, and its block if that was its last. */
void SKY_StoreTable_DropSlot(SKY_Store_t *store, uint32_t index);
/** Free a block and its slots. @return the complete chunks that went with it */
uint32_t SKY_StoreTable_DropBlock(SKY_Store_t *store, uint32_t index);

#endif
