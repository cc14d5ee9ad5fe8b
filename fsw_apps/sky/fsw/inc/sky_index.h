/**
 * @file
 * An index: from a 32-bit hash to entries of somebody else's table. Open addressing with linear probing over a power of two of
 * cells, of which at least half stay empty; removal shifts back instead of leaving tombstones, so that look-ups stay as short
 * after a year of puts and evictions as on the first day.
 */
#ifndef SKY_INDEX_H
#define SKY_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define SKY_INDEX_NONE UINT32_MAX /**< no entry */

typedef struct
{
    uint32_t hash;  /**< compared before the entry is looked at; says where the cell belongs when another is removed */
    uint32_t entry; /**< SKY_INDEX_NONE: the cell is empty */
} SKY_IndexCell_t;

typedef struct
{
    SKY_IndexCell_t *cells;
    uint32_t         mask;
} SKY_Index_t;

/** Bytes of memory for an index of at most @p entries (1 .. 2^22). */
size_t SKY_Index_MemoryBytes(uint32_t entries);
void   SKY_Index_Init(SKY_Index_t *index, void *memory, uint32_t entries);
void   SKY_Index_Clear(SKY_Index_t *index);
/** The caller keeps to the number of entries given to init. */
void SKY_Index_Insert(SKY_Index_t *index, uint32_t hash, uint32_t entry);
/** @p entry was inserted under @p hash. */
void SKY_Index_Remove(SKY_Index_t *index, uint32_t hash, uint32_t entry);
/**
 * The next entry that was inserted under @p hash, or SKY_INDEX_NONE; @p step is 0 at first and belongs to this function.
 * Different keys may share a hash: the caller compares.
 */
uint32_t SKY_Index_Find(const SKY_Index_t *index, uint32_t hash, uint32_t *step);

/**
 * SipHash-1-3 (Aumasson and Bernstein, 2012) over whole words, folded to 32 bits. A keyed hash, because whoever sends packets
 * chooses the keys: without @p secret nobody can aim them at one place of an index.
 */
uint32_t SKY_Hash(const uint64_t secret[2], const uint64_t *words, uint32_t count);

#endif
