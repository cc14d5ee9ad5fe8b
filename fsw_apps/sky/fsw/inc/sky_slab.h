/**
 * @file
 * Slots of one size, cut into cells where less is needed: the memory of a chunk store.
 *
 * A slot is free, or cut into cells of one class: a class says how many cells a slot has, and one cell is a whole slot. A slot belongs
 * to one row of tenants as long as a cell of it is taken, and is free again when none is. So what a row takes is counted in slots,
 * exactly, and nobody's free cells are shut in by somebody else's.
 *
 * A cell is named by where it begins, in units of 16 bytes: a name becomes an address by a shift and an addition. Memory is first
 * touched when there is something to put into it. Nothing is allocated; all loops are bounded by the number of slots, or of classes.
 */
#ifndef SKY_SLAB_H
#define SKY_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sky_icd.h"

#define SKY_SLAB_NONE       UINT32_MAX               /**< no cell, no slot */
#define SKY_SLAB_UNIT       16u                      /**< bytes in which cells are measured and named */
#define SKY_SLAB_ALIGNMENT  64u                      /**< slots begin and end at multiples of it */
#define SKY_SLAB_SLOT_MAX   (1u << 22)               /**< most slots */
#define SKY_SLAB_SLOT_BYTES (1u << 16)               /**< largest slot */
#define SKY_SLAB_ROWS       (SKY_LIMIT_TENANTS + 1u) /**< rows of tenants */
#define SKY_SLAB_ENTRIES    0u                       /**< class of cells of the size given to init */
#define SKY_SLAB_CLASSES    13u
#define SKY_SLAB_CELLS_MAX  64u /**< most cells of a slot */
#define SKY_SLAB_PARTS_MAX  32u /**< most cells of a slot of a class other than ENTRIES */

/** A slot. Never used, it is not touched either. */
typedef struct
{
    uint64_t taken; /**< bit i: cell i is taken; 0: the slot is free */
    uint32_t prev,
        next; /**< neighbours among the slots of its row and class that have a free cell; next also links the free slots */
    uint8_t class_id;
    uint8_t row;
} SKY_SlabSlot_t;

typedef struct
{
    uint8_t        *data; /**< 64-byte aligned */
    SKY_SlabSlot_t *slots;
    uint32_t        slot_count, slot_units;
    uint32_t        used;                    /**< slots with a cell that is taken */
    uint32_t        free_slot;               /**< list of slots given back */
    uint32_t        fresh_slot;              /**< slots from here on were never used */
    uint32_t        fresh_unit;              /**< where that begins: all cells that were ever taken lie before it */
    uint32_t        cells[SKY_SLAB_CLASSES]; /**< cells of a slot; 0: there is no such class, as another is as good */
    uint32_t        units[SKY_SLAB_CLASSES]; /**< units of a cell */
    uint32_t        room[SKY_SLAB_ROWS][SKY_SLAB_CLASSES]; /**< slots with a free cell */
} SKY_Slab_t;

/** Return the bytes of memory that the slots need, at an alignment of 64; 0 if there cannot be so many, or none of that size. */
uint64_t SKY_Slab_MemoryBytes(uint32_t slot_bytes, uint32_t slot_count);
/**
 * Begin with free slots only.
 * @param slot_bytes   a multiple of 64
 * @param entry_bytes  cells of the class ENTRIES have at least so many; at most slot_bytes
 * @param memory       aligned to 64 bytes, of the size that SKY_Slab_MemoryBytes says; its contents do not matter
 */
void SKY_Slab_Init(SKY_Slab_t *slab, uint32_t slot_bytes, uint32_t slot_count, uint32_t entry_bytes, void *memory);
/** Free all slots. */
void SKY_Slab_Clear(SKY_Slab_t *slab);
/** Return the class with the smallest cells for @p bytes, which a slot has room for. It is never ENTRIES. */
uint32_t SKY_Slab_ClassFor(const SKY_Slab_t *slab, uint32_t bytes);
/** Does a slot of the row have a free cell of the class? */
bool SKY_Slab_HasCell(const SKY_Slab_t *slab, uint32_t row, uint32_t class_id);
/** Take a cell: of a slot of the row that has one, else of a free slot. There is one of them. @param took_slot  it was a free slot */
uint32_t SKY_Slab_Take(SKY_Slab_t *slab, uint32_t row, uint32_t class_id, bool *took_slot);
/** Give a cell back. @return true if its slot is free now */
bool SKY_Slab_Give(SKY_Slab_t *slab, uint32_t cell);
/** Return the slot of a cell. */
uint32_t SKY_Slab_SlotOf(const SKY_Slab_t *slab, uint32_t cell);
/** Does a cell of the class ENTRIES begin here that is taken? @param cell  any number */
bool SKY_Slab_IsEntry(const SKY_Slab_t *slab, uint32_t cell);
/** Return the class of a slot, the last one if it is free. */
uint32_t SKY_Slab_ClassOf(const SKY_Slab_t *slab, uint32_t slot);
/** Return the first cell of a slot that is taken and has the number @p from or a larger one; *from is the number behind it then. NONE:
 * there is none. */
uint32_t SKY_Slab_Next(const SKY_Slab_t *slab, uint32_t slot, uint32_t *from);
/** Return the number of a cell in its slot, a cell that was taken once. */
uint32_t SKY_Slab_NumberOf(const SKY_Slab_t *slab, uint32_t cell);
/** Give the slots of each row to the row @p to[row]. Several rows may become one. Walks over all slots. */
void SKY_Slab_MapRows(SKY_Slab_t *slab, const uint32_t to[SKY_SLAB_ROWS]);

/** Return where a cell begins. */
static inline uint8_t *SKY_Slab_At(const SKY_Slab_t *slab, uint32_t cell)
{
    return slab->data + (size_t)cell * SKY_SLAB_UNIT;
}

#endif
