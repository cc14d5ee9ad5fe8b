/**
 * @file
 * sky_slab.c: slots, cells of slots, and whose they are. What a store makes of them: test_store_small.c.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "sky.h"

#define SLOT_BYTES  6208u
#define SLOTS       5u
#define ENTRY_BYTES 136u

static SKY_Slab_t slab;
static void      *memory;

static void open_with(uint32_t slot_bytes, uint32_t slots)
{
    const size_t bytes = (size_t)SKY_Slab_MemoryBytes(slot_bytes, slots);

    free(memory);
    memory = malloc(bytes + SKY_SLAB_ALIGNMENT);
    CHECK(memory != NULL);
    uint8_t *at = memory;

    at += SKY_SLAB_ALIGNMENT - (uintptr_t)at % SKY_SLAB_ALIGNMENT;
    SKY_Slab_Init(&slab, slot_bytes, slots, ENTRY_BYTES, at);
}

static void open_slab(uint32_t slots)
{
    open_with(SLOT_BYTES, slots);
}

static uint32_t take(uint32_t row, uint32_t class_id)
{
    bool took_slot = false;

    return SKY_Slab_Take(&slab, row, class_id, &took_slot);
}

static void test_memory(void)
{
    CHECK_EQ(SKY_Slab_MemoryBytes(SLOT_BYTES, 8) % SKY_SLAB_ALIGNMENT, 0);
    CHECK(SKY_Slab_MemoryBytes(SLOT_BYTES, 8) >= 8u * (SLOT_BYTES + sizeof(SKY_SlabSlot_t)));
    CHECK_EQ(SKY_Slab_MemoryBytes(SLOT_BYTES + 1u, 8), 0);
    CHECK_EQ(SKY_Slab_MemoryBytes(2u * SKY_SLAB_SLOT_BYTES, 8), 0);
    CHECK_EQ(SKY_Slab_MemoryBytes(SLOT_BYTES, 0), 0);
    CHECK_EQ(SKY_Slab_MemoryBytes(0, 8), 0);
    CHECK_EQ(SKY_Slab_MemoryBytes(64, SKY_SLAB_SLOT_MAX + 1u), 0);
    CHECK_EQ(SKY_Slab_MemoryBytes(SKY_SLAB_SLOT_BYTES, SKY_SLAB_SLOT_MAX), 0); /* more than cells have names */
}

static void test_classes(void)
{
    open_slab(SLOTS);
    CHECK_EQ(slab.units[SKY_SLAB_ENTRIES], 9);
    CHECK_EQ(slab.cells[SKY_SLAB_ENTRIES], 43);
    for (uint32_t bytes = 1; bytes <= SLOT_BYTES; ++bytes)
    {
        const uint32_t found = SKY_Slab_ClassFor(&slab, bytes);

        CHECK(found != SKY_SLAB_ENTRIES && slab.units[found] * SKY_SLAB_UNIT >= bytes);
        CHECK(found + 1u == SKY_SLAB_CLASSES || slab.units[found + 1u] * SKY_SLAB_UNIT < bytes);
        CHECK(slab.units[found] * slab.cells[found] <= slab.slot_units);
    }
    CHECK_EQ(slab.cells[SKY_Slab_ClassFor(&slab, SLOT_BYTES)], 1);
    CHECK_EQ(slab.cells[SKY_Slab_ClassFor(&slab, SLOT_BYTES / 2u)], 2);
    CHECK_EQ(slab.cells[SKY_Slab_ClassFor(&slab, 221)], 27);
    CHECK_EQ(slab.cells[SKY_Slab_ClassFor(&slab, 1)], SKY_SLAB_PARTS_MAX);

    /* A small slot has fewer classes, a large one no more entries than a word has bits. */
    open_with(192, 4);
    CHECK_EQ(slab.cells[SKY_SLAB_ENTRIES], 1);
    CHECK_EQ(slab.cells[SKY_SLAB_CLASSES - 1u], 0);
    CHECK_EQ(slab.cells[SKY_Slab_ClassFor(&slab, 1)], 12);
    CHECK_EQ(slab.cells[SKY_Slab_ClassFor(&slab, 97)], 1);
    open_with(SKY_SLAB_SLOT_BYTES, 1);
    CHECK_EQ(slab.cells[SKY_SLAB_ENTRIES], SKY_SLAB_CELLS_MAX);
}

static void test_whole_slots(void)
{
    const uint32_t whole = 1;
    bool           took_slot;
    uint32_t       cells[SLOTS];

    open_slab(SLOTS);
    for (uint32_t i = 0; i < SLOTS; ++i)
    {
        cells[i] = SKY_Slab_Take(&slab, 3, whole, &took_slot);
        CHECK(took_slot && !SKY_Slab_HasCell(&slab, 3, whole));
        CHECK_EQ(SKY_Slab_SlotOf(&slab, cells[i]), i);
        CHECK_EQ(slab.used, i + 1u);
        (void)memset(SKY_Slab_At(&slab, cells[i]), (int)i, SLOT_BYTES);
    }
    CHECK(SKY_Slab_Give(&slab, cells[1]) && SKY_Slab_Give(&slab, cells[3]));
    CHECK_EQ(take(0, whole), cells[3]); /* what came back last goes first */
    CHECK_EQ(take(0, whole), cells[1]);
    CHECK(SKY_Slab_At(&slab, cells[4])[SLOT_BYTES - 1u] == 4);
    SKY_Slab_Clear(&slab);
    CHECK_EQ(slab.used + slab.fresh_slot, 0);
    CHECK_EQ(take(0, whole), cells[0]);
}

static void test_cells(void)
{
    const uint32_t small = SKY_Slab_ClassFor(&slab, 221);
    const uint32_t count = 27;
    uint32_t       cells[3u * 27u];
    bool           took_slot;

    open_slab(SLOTS);
    for (uint32_t i = 0; i < 3u * count; ++i)
    {
        cells[i] = SKY_Slab_Take(&slab, 1, small, &took_slot);
        CHECK_EQ(took_slot, i % count == 0);
        CHECK_EQ(SKY_Slab_SlotOf(&slab, cells[i]), i / count);
        CHECK_EQ(SKY_Slab_NumberOf(&slab, cells[i]), i % count);
        CHECK_EQ(SKY_Slab_HasCell(&slab, 1, small), (i + 1u) % count != 0);
        CHECK_EQ(SKY_Slab_At(&slab, cells[i]) - slab.data, (i / count) * SLOT_BYTES + (i % count) * 224u);
    }
    CHECK(!SKY_Slab_HasCell(&slab, 0, small) && !SKY_Slab_HasCell(&slab, 1, SKY_SLAB_ENTRIES));
    CHECK_EQ(slab.used, 3);
    CHECK_EQ(SKY_Slab_ClassOf(&slab, 1), small);

    /* Slots with a free cell are a list: from its ends and its middle. */
    for (uint32_t i = 0; i < 3; ++i)
    {
        CHECK(!SKY_Slab_Give(&slab, cells[i * count + 7u]));
    }
    CHECK_EQ(take(1, small), cells[2u * count + 7u]);
    CHECK_EQ(take(1, small), cells[count + 7u]);
    CHECK(!SKY_Slab_Give(&slab, cells[count + 9u]));
    CHECK(!SKY_Slab_Give(&slab, cells[2u * count + 9u]));
    for (uint32_t i = 0; i < count; ++i) /* the one in the middle is free as a whole */
    {
        CHECK(i == 9u || SKY_Slab_Give(&slab, cells[count + i]) == (i == count - 1u));
    }
    for (uint32_t i = 0; i < count; ++i) /* the one at the end, and a row of another one */
    {
        CHECK(i == 7u || SKY_Slab_Give(&slab, cells[i]) == (i == count - 1u));
    }
    CHECK_EQ(slab.used, 1);
    CHECK_EQ(take(2, SKY_SLAB_ENTRIES), cells[0]);
    CHECK_EQ(take(1, small), cells[2u * count + 9u]);
    CHECK_EQ(take(1, small), cells[count]);
    CHECK_EQ(slab.used, 3);
}

static void test_walk(void)
{
    uint32_t from = 0;
    uint32_t cells[64];
    bool     took_slot;

    open_with(SKY_SLAB_SLOT_BYTES, 2);
    CHECK(!SKY_Slab_IsEntry(&slab, 0));
    for (uint32_t i = 0; i < 64; ++i)
    {
        cells[i] = SKY_Slab_Take(&slab, 0, SKY_SLAB_ENTRIES, &took_slot);
        CHECK(SKY_Slab_IsEntry(&slab, cells[i]));
    }
    CHECK(!SKY_Slab_IsEntry(&slab, cells[1] + 1u) && !SKY_Slab_IsEntry(&slab, cells[63] + 9u));
    for (uint32_t i = 0; i < 64; ++i)
    {
        CHECK(i == 0 || i == 31 || i == 32 || i == 63 || !SKY_Slab_Give(&slab, cells[i]));
    }
    CHECK(!SKY_Slab_IsEntry(&slab, cells[1]));
    CHECK_EQ(SKY_Slab_Next(&slab, 0, &from), cells[0]);
    CHECK_EQ(SKY_Slab_Next(&slab, 0, &from), cells[31]);
    CHECK_EQ(SKY_Slab_Next(&slab, 0, &from), cells[32]);
    CHECK_EQ(SKY_Slab_Next(&slab, 0, &from), cells[63]);
    CHECK_EQ(from, 64);
    CHECK_EQ(SKY_Slab_Next(&slab, 0, &from), SKY_SLAB_NONE);
    from = 33;
    CHECK(!SKY_Slab_Give(&slab, cells[63]));
    CHECK_EQ(SKY_Slab_Next(&slab, 0, &from), SKY_SLAB_NONE);
    cells[1] = take(0, 1); /* a chunk is no entry */
    CHECK(!SKY_Slab_IsEntry(&slab, cells[1]));
}

static void test_rows_become_one(void)
{
    uint32_t to[SKY_SLAB_ROWS] = {0, 0, 1};
    uint32_t first, second, third;

    open_slab(SLOTS);
    first  = take(1, 4);
    second = take(2, 4);
    third  = take(0, 4);
    (void)take(0, 1);
    CHECK(SKY_Slab_Give(&slab, take(0, 2)));
    SKY_Slab_MapRows(&slab, to);
    CHECK(SKY_Slab_HasCell(&slab, 1, 4) && SKY_Slab_HasCell(&slab, 0, 4) && !SKY_Slab_HasCell(&slab, 2, 4));
    CHECK_EQ(SKY_Slab_SlotOf(&slab, take(1, 4)), SKY_Slab_SlotOf(&slab, second));
    for (uint32_t i = 0; i < 6; ++i) /* three each are left */
    {
        const uint32_t slot = SKY_Slab_SlotOf(&slab, take(0, 4));

        CHECK(slot == SKY_Slab_SlotOf(&slab, first) || slot == SKY_Slab_SlotOf(&slab, third));
    }
    CHECK(!SKY_Slab_HasCell(&slab, 0, 4));
    CHECK_EQ(slab.used, 4);
}

int main(void)
{
    RUN(test_memory);
    RUN(test_classes);
    RUN(test_whole_slots);
    RUN(test_cells);
    RUN(test_walk);
    RUN(test_rows_become_one);
    free(memory);
    return CHECK_RESULT();
}
