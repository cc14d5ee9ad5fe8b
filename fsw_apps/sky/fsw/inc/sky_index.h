/**
 * @file
 * Index from a 32-bit hash to entries of a table of the caller. It uses open addressing with linear probing over a power of two of
 * cells, of which at least half stay empty. Removal shifts back instead of leaving tombstones, so that look-ups stay as short
 * after a year of puts and evictions as on the first day.
 */
#ifndef SKY_INDEX_H
#define SKY_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define SKY_INDEX_NONE UINT32_MAX /**< no entry */

typedef struct
{
    uint32_t hash;  /**< hash of the entry: compared first, and the cell's place when another cell is removed */
    uint32_t entry; /**< SKY_INDEX_NONE: the cell is empty */
} SKY_IndexCell_t;

typedef struct
{
    SKY_IndexCell_t *cells;
    uint32_t         mask;
} SKY_Index_t;

/** Return the bytes of memory for an index of at most @p entries (1 .. 2^22). */
size_t SKY_Index_MemoryBytes(uint32_t entries);
void   SKY_Index_Init(SKY_Index_t *index, void *memory, uint32_t entries);
void   SKY_Index_Clear(SKY_Index_t *index);
/** Insert an entry. The caller keeps to the number of entries given to init. */
void SKY_Index_Insert(SKY_Index_t *index, uint32_t hash, uint32_t entry);
/** Remove @p entry, which was inserted under @p hash. */
void SKY_Index_Remove(SKY_Index_t *index, uint32_t hash, uint32_t entry);
/**
 * Return the next entry that was inserted under @p hash, or SKY_INDEX_NONE; @p step is 0 at first and belongs to this function.
 * Different keys may share a hash, so the caller compares keys.
 */
uint32_t SKY_Index_Find(const SKY_Index_t *index, uint32_t hash, uint32_t *step);

/**
 * Return SipHash-1-3 (Aumasson and Bernstein, 2012) over whole words, folded to 32 bits. The hash is keyed because senders of
 * packets choose the keys: without @p secret nobody can aim them at one place of an index.
 */
uint32_t SKY_Hash(const uint64_t secret[2], const uint64_t *words, uint32_t count);

#endif
