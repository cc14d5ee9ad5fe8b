/**
 * @file
 * Private to the chunk store: its blocks and chunks (sky_store_table.c), on which sky_store.c works.
 *
 * A chunk is partial or complete. A block exists as long as it has a chunk; its chunks are a doubly linked list. The index has a row
 * for each kB of the store, and chains what falls into one row: it has room for any number of entries.
 */
#ifndef SKY_STORE_TABLE_H
#define SKY_STORE_TABLE_H

#include "sky_store_priv.h"

/** Name for which the index of blocks is searched. */
void SKY_StoreTable_Name(uint64_t *name, uint32_t tenant, const uint8_t *key);
/** Find a block by name and the hash of that. @return NONE if it is not here */
uint32_t SKY_StoreTable_FindBlock(const SKY_Store_t *store, const uint64_t *name, uint32_t hash);
/** Find a chunk, complete or not. @return NONE if there is none */
uint32_t SKY_StoreTable_FindChunk(const SKY_Store_t *store, uint32_t block, uint32_t chunk_id);
/** Describe a block. */
void SKY_StoreTable_Info(const SKY_StoreBlock_t *block, SKY_BlockInfo_t *info);

/** Note that the block was used just now. */
void SKY_StoreTable_Touch(SKY_Store_t *store, uint32_t index);
/**
 * Make room for one more chunk of @p len bytes, and for a new block if @p block is NONE. Nothing is evicted unless @p evicts. Then
 * @p block, the one that gets the chunk, is the newest. @return false if there is no room
 */
bool SKY_StoreTable_MakeRoom(SKY_Store_t *store, uint32_t row, uint32_t block, uint32_t len, bool evicts);
/** Make an entry for the block of a PUT, which is not here. Room has been made. */
uint32_t SKY_StoreTable_NewBlock(SKY_Store_t *store, const uint64_t *name, uint32_t hash, uint32_t row);
/** Make a partial chunk without parts for that of a PUT. Room has been made. */
uint32_t SKY_StoreTable_NewChunk(SKY_Store_t *store, uint32_t block_index, const SKY_Packet_t *pkt);
void     SKY_StoreTable_Complete(SKY_Store_t *store, uint32_t index, uint16_t crc16_from_zero);
/** Note for whom a complete chunk is kept. One that is this satellite's own stays so. @param home  all 0: it is its own from now on */
void SKY_StoreTable_SetHome(SKY_Store_t *store, uint32_t index, SKY_Addr_t home);
/** Free one chunk, and its block if that was its last. */
void SKY_StoreTable_DropChunk(SKY_Store_t *store, uint32_t index);
/** Free a block and its chunks. @return the complete chunks that went with it */
uint32_t SKY_StoreTable_DropBlock(SKY_Store_t *store, uint32_t index);

#endif
