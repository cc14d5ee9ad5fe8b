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

#include "sky_store_priv.h"

/** Name for which the index of blocks is searched. */
void SKY_StoreTable_Name(uint64_t *name, uint32_t tenant, const uint8_t *key);
/** Find a block by name. @return the block and the hash of its name, or NONE */
uint32_t SKY_StoreTable_FindBlock(const SKY_Store_t *store, const uint64_t *name, uint32_t hash);
/** Find the slot of a chunk, complete or not. @return NONE if there is none */
uint32_t SKY_StoreTable_FindSlot(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id);
uint8_t *SKY_StoreTable_Data(const SKY_Store_t *store, uint32_t slot);
/** Describe a block. */
void SKY_StoreTable_Info(const SKY_StoreBlock_t *block, SKY_BlockInfo_t *info);

/** Note that the block was used just now. */
void SKY_StoreTable_Touch(SKY_Store_t *store, uint32_t index);
/**
 * Make room for one more slot of a tenant, and for a new block if @p block is NONE. At most one other block is evicted, and none
 * unless @p evicts. Then @p block, the one that gets the slot, is the newest. @return false if there is no room
 */
bool SKY_StoreTable_MakeRoom(SKY_Store_t *store, uint32_t tenant, uint32_t block, bool evicts);
/** Make an entry for the block of a PUT, which is not here. Room has been made. */
uint32_t SKY_StoreTable_NewBlock(SKY_Store_t *store, const uint64_t *name, uint32_t hash, uint32_t tenant);
/** Make a partial slot without parts for the chunk of a PUT. Room has been made. */
uint32_t SKY_StoreTable_NewSlot(SKY_Store_t *store, uint32_t block_index, const SKY_Packet_t *pkt);
void     SKY_StoreTable_Complete(SKY_Store_t *store, uint32_t index, uint16_t crc16_from_zero);
/** Free one slot, and its block if that was its last. */
void SKY_StoreTable_DropSlot(SKY_Store_t *store, uint32_t index);
/** Free a block and its slots. @return the complete chunks that went with it */
uint32_t SKY_StoreTable_DropBlock(SKY_Store_t *store, uint32_t index);

#endif
