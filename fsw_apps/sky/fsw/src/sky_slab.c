/**
 * @file
 * Slots and their cells: see sky_slab.h.
 */
#include "sky_slab.h"

#include <string.h>

#include "sky_assert.h"

#define NONE  SKY_SLAB_NONE
#define WHOLE 1u /* the class whose cell is a whole slot */

/* Cells of a slot, by class. Between neighbours a quarter is lost at most, a half to the largest. */
static const uint32_t cell_counts[SKY_SLAB_CLASSES] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 20, 23, 27, SKY_SLAB_PARTS_MAX};

/* ---- memory ------------------------------------------------------------------------------------------------------- */

static uint64_t table_bytes(uint32_t slot_count)
{
    SKY_ASSERT(slot_count <= SKY_SLAB_SLOT_MAX);
    const uint64_t bytes = (uint64_t)slot_count * sizeof(SKY_SlabSlot_t);

    return (bytes + SKY_SLAB_ALIGNMENT - 1u) / SKY_SLAB_ALIGNMENT * SKY_SLAB_ALIGNMENT;
}

uint64_t SKY_Slab_MemoryBytes(uint32_t slot_bytes, uint32_t slot_count)
{
    const uint64_t data = (uint64_t)slot_bytes * slot_count;

    if (slot_bytes % SKY_SLAB_ALIGNMENT != 0 || slot_bytes > SKY_SLAB_SLOT_BYTES || slot_count > SKY_SLAB_SLOT_MAX || data == 0 ||
        data / SKY_SLAB_UNIT >= NONE)
    {
        return 0;
    }
    return table_bytes(slot_count) + data;
}

static void forget_lists(SKY_Slab_t *slab)
{
    for (uint32_t row = 0; row < SKY_SLAB_ROWS; ++row)
    {
        for (uint32_t i = 0; i < SKY_SLAB_CLASSES; ++i)
        {
            slab->room[row][i] = NONE;
        }
    }
}

void SKY_Slab_Clear(SKY_Slab_t *slab)
{
    SKY_ASSERT(slab->slot_count >= 1);
    SKY_ASSERT(slab->cells[WHOLE] == 1);
    slab->used       = 0;
    slab->free_slot  = NONE;
    slab->fresh_slot = 0;
    slab->fresh_unit = 0;
    forget_lists(slab);
}

void SKY_Slab_Init(SKY_Slab_t *slab, uint32_t slot_bytes, uint32_t slot_count, uint32_t entry_bytes, void *memory)
{
    const uint32_t entry_units = (entry_bytes + SKY_SLAB_UNIT - 1u) / SKY_SLAB_UNIT;
    SKY_ASSERT(SKY_Slab_MemoryBytes(slot_bytes, slot_count) > 0);
    SKY_ASSERT((uintptr_t)memory % SKY_SLAB_ALIGNMENT == 0);

    (void)memset(slab, 0, sizeof(*slab));
    slab->slots      = memory;
    slab->data       = (uint8_t *)memory + table_bytes(slot_count);
    slab->slot_count = slot_count;
    slab->slot_units = slot_bytes / SKY_SLAB_UNIT;
    SKY_ASSERT(entry_units >= 1);
    SKY_ASSERT(entry_units <= slab->slot_units);
    const uint32_t entries = slab->slot_units / entry_units;

    slab->units[SKY_SLAB_ENTRIES] = entry_units;
    slab->cells[SKY_SLAB_ENTRIES] = entries < SKY_SLAB_CELLS_MAX ? entries : SKY_SLAB_CELLS_MAX;
    for (uint32_t i = WHOLE; i < SKY_SLAB_CLASSES; ++i)
    {
        slab->units[i] = slab->slot_units / cell_counts[i];
        slab->cells[i] = slab->units[i] > 0 ? cell_counts[i] : 0;
    }
    SKY_Slab_Clear(slab);
}

/* ---- cells -------------------------------------------------------------------------------------------------------- */

static bool has_slot(const SKY_Slab_t *slab)
{
    SKY_ASSERT(slab->fresh_slot <= slab->slot_count);
    SKY_ASSERT(slab->used <= slab->fresh_slot);
    return slab->used < slab->slot_count;
}

uint32_t SKY_Slab_ClassFor(const SKY_Slab_t *slab, uint32_t bytes)
{
    uint32_t found = WHOLE;
    SKY_ASSERT(bytes >= 1);
    SKY_ASSERT(bytes <= slab->slot_units * SKY_SLAB_UNIT);

    while (found + 1u < SKY_SLAB_CLASSES && slab->units[found + 1u] * SKY_SLAB_UNIT >= bytes)
    {
        ++found;
    }
    SKY_ASSERT(slab->cells[found] > 0);
    return found;
}

uint32_t SKY_Slab_SlotOf(const SKY_Slab_t *slab, uint32_t cell)
{
    const uint32_t slot = cell / slab->slot_units;

    SKY_ASSERT(slot < slab->fresh_slot);
    SKY_ASSERT(slab->slots[slot].taken != 0);
    return slot;
}

uint32_t SKY_Slab_NumberOf(const SKY_Slab_t *slab, uint32_t cell)
{
    const SKY_SlabSlot_t *slot   = &slab->slots[SKY_Slab_SlotOf(slab, cell)];
    const uint32_t        number = cell % slab->slot_units / slab->units[slot->class_id];

    SKY_ASSERT(number < slab->cells[slot->class_id]);
    SKY_ASSERT(cell % slab->slot_units == number * slab->units[slot->class_id]);
    return number;
}

bool SKY_Slab_IsEntry(const SKY_Slab_t *slab, uint32_t cell)
{
    const uint32_t index  = cell / slab->slot_units;
    const uint32_t at     = cell % slab->slot_units;
    const uint32_t number = at / slab->units[SKY_SLAB_ENTRIES];

    SKY_ASSERT(slab->fresh_slot <= slab->slot_count);
    return index < slab->fresh_slot && slab->slots[index].class_id == SKY_SLAB_ENTRIES &&
           at == number * slab->units[SKY_SLAB_ENTRIES] && number < slab->cells[SKY_SLAB_ENTRIES] &&
           (slab->slots[index].taken >> number & 1u) != 0;
}

uint32_t SKY_Slab_ClassOf(const SKY_Slab_t *slab, uint32_t slot)
{
    SKY_ASSERT(slot < slab->fresh_slot);
    SKY_ASSERT(slab->slots[slot].class_id < SKY_SLAB_CLASSES);
    return slab->slots[slot].class_id;
}

static uint64_t all_of(const SKY_Slab_t *slab, const SKY_SlabSlot_t *slot)
{
    SKY_ASSERT(slab->cells[slot->class_id] <= SKY_SLAB_CELLS_MAX);
    SKY_ASSERT(slab->cells[slot->class_id] >= 1);
    return UINT64_MAX >> (SKY_SLAB_CELLS_MAX - slab->cells[slot->class_id]);
}

/* Put a slot that has a free cell into the list of its row and class. */
static void list_add(SKY_Slab_t *slab, uint32_t index)
{
    SKY_SlabSlot_t *slot = &slab->slots[index];
    uint32_t       *head = &slab->room[slot->row][slot->class_id];
    SKY_ASSERT(slot->taken != all_of(slab, slot));
    SKY_ASSERT(*head == NONE || slab->slots[*head].prev == NONE);

    slot->prev = NONE;
    slot->next = *head;
    if (*head != NONE)
    {
        slab->slots[*head].prev = index;
    }
    *head = index;
}

static void list_remove(SKY_Slab_t *slab, uint32_t index)
{
    const SKY_SlabSlot_t *slot = &slab->slots[index];
    uint32_t             *head = &slab->room[slot->row][slot->class_id];
    SKY_ASSERT(slot->prev == NONE ? *head == index : slab->slots[slot->prev].next == index);
    SKY_ASSERT(slot->next == NONE || slab->slots[slot->next].prev == index);

    if (slot->prev == NONE)
    {
        *head = slot->next;
    }
    else
    {
        slab->slots[slot->prev].next = slot->next;
    }
    if (slot->next != NONE)
    {
        slab->slots[slot->next].prev = slot->prev;
    }
}

bool SKY_Slab_HasCell(const SKY_Slab_t *slab, uint32_t row, uint32_t class_id)
{
    SKY_ASSERT(row < SKY_SLAB_ROWS);
    SKY_ASSERT(class_id < SKY_SLAB_CLASSES);
    return slab->room[row][class_id] != NONE;
}

/* Return a free slot, as one of the row and class without a cell that is taken. */
static uint32_t take_slot(SKY_Slab_t *slab, uint32_t row, uint32_t class_id)
{
    SKY_ASSERT(slab->cells[class_id] >= 1);
    SKY_ASSERT(has_slot(slab));
    const uint32_t  index = slab->free_slot != NONE ? slab->free_slot : slab->fresh_slot++;
    SKY_SlabSlot_t *slot  = &slab->slots[index];

    SKY_ASSERT(index < slab->slot_count);
    if (index == slab->free_slot)
    {
        slab->free_slot = slot->next;
    }
    slab->fresh_unit = slab->fresh_slot * slab->slot_units;
    slot->taken      = 0;
    slot->class_id   = (uint8_t)class_id;
    slot->row        = (uint8_t)row;
    ++slab->used;
    SKY_ASSERT(slab->used <= slab->fresh_slot);
    list_add(slab, index);
    return index;
}

/* Return the number of the lowest bit, by halves. */
static uint32_t lowest_bit(uint64_t bits)
{
    uint64_t rest   = bits;
    uint32_t number = 0;
    SKY_ASSERT(bits != 0);

    for (uint32_t half = SKY_SLAB_CELLS_MAX / 2u; half > 0; half /= 2u)
    {
        const uint64_t low = rest & ((UINT64_C(1) << half) - 1u);

        number += low == 0 ? half : 0u;
        rest = low == 0 ? rest >> half : low;
    }
    SKY_ASSERT((bits >> number & 1u) != 0);
    return number;
}

uint32_t SKY_Slab_Take(SKY_Slab_t *slab, uint32_t row, uint32_t class_id, bool *took_slot)
{
    *took_slot            = !SKY_Slab_HasCell(slab, row, class_id);
    const uint32_t  index = *took_slot ? take_slot(slab, row, class_id) : slab->room[row][class_id];
    SKY_SlabSlot_t *slot  = &slab->slots[index];
    const uint32_t  cell  = lowest_bit(~slot->taken);

    SKY_ASSERT(cell < slab->cells[class_id]);
    SKY_ASSERT(slot->class_id == class_id);
    SKY_ASSERT(slot->row == row);
    slot->taken |= UINT64_C(1) << cell;
    if (slot->taken == all_of(slab, slot))
    {
        list_remove(slab, index);
    }
    return index * slab->slot_units + cell * slab->units[class_id];
}

bool SKY_Slab_Give(SKY_Slab_t *slab, uint32_t cell)
{
    const uint32_t  index  = SKY_Slab_SlotOf(slab, cell);
    const uint32_t  number = SKY_Slab_NumberOf(slab, cell);
    SKY_SlabSlot_t *slot   = &slab->slots[index];
    const bool      full   = slot->taken == all_of(slab, slot);

    SKY_ASSERT((slot->taken >> number & 1u) != 0);
    SKY_ASSERT(slab->used > 0);
    slot->taken &= ~(UINT64_C(1) << number);
    if (full)
    {
        list_add(slab, index);
    }
    if (slot->taken != 0)
    {
        return false;
    }
    list_remove(slab, index);
    slot->next      = slab->free_slot;
    slab->free_slot = index;
    --slab->used;
    return true;
}

uint32_t SKY_Slab_Next(const SKY_Slab_t *slab, uint32_t slot, uint32_t *from)
{
    SKY_ASSERT(*from <= SKY_SLAB_CELLS_MAX);
    SKY_ASSERT(slot < slab->fresh_slot);
    const uint64_t left = *from < SKY_SLAB_CELLS_MAX ? slab->slots[slot].taken >> *from : 0;

    if (left == 0)
    {
        return NONE;
    }
    const uint32_t number = *from + lowest_bit(left);

    SKY_ASSERT(number < slab->cells[slab->slots[slot].class_id]);
    *from = number + 1u;
    return slot * slab->slot_units + number * slab->units[slab->slots[slot].class_id];
}

void SKY_Slab_MapRows(SKY_Slab_t *slab, const uint32_t to[SKY_SLAB_ROWS])
{
    forget_lists(slab);
    for (uint32_t i = 0; i < slab->fresh_slot; ++i)
    {
        SKY_SlabSlot_t *slot = &slab->slots[i];

        if (slot->taken != 0)
        {
            SKY_ASSERT(slot->row < SKY_SLAB_ROWS);
            SKY_ASSERT(to[slot->row] < SKY_SLAB_ROWS);
            slot->row = (uint8_t)to[slot->row];
            if (slot->taken != all_of(slab, slot))
            {
                list_add(slab, i);
            }
        }
    }
}
