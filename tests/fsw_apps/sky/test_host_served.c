/**
 * @file
 * What each satellite did in a block: who is in it, what counts, and the times of several pieces and transfers.
 */
#include "host_rig.h"

static host_rig_t       rig;
static SKY_HostPlace_t  places[SATELLITES];
static SKY_HostServed_t served[SATELLITES];
static uint8_t          up[CHUNKS_MAX * CHUNK], down[CHUNKS_MAX * CHUNK];

static void open_sky(void)
{
    host_open(&rig, host_usual);
    for (uint32_t i = 0; i < SATELLITES; ++i)
    {
        places[i] = host_place(i);
    }
    (void)memset(served, 0, sizeof(served));
}

static SKY_HostBlock_t block_of(uint32_t kind, uint32_t chunks, uint32_t servers, uint32_t room)
{
    SKY_HostBlock_t block = host_block(kind, 1, chunks, places, servers, kind == (uint32_t)SKY_HOST_PUT ? up : down);

    block.served      = room > 0u ? served : NULL;
    block.served_room = room;
    return block;
}

static uint32_t run(SKY_HostBlock_t *block)
{
    CHECK_EQ(SKY_Host_Begin(&rig.host, rig.now_us, block), SKY_HOST_BEGUN);
    host_run(&rig);
    CHECK(SKY_Host_NextEnded(&rig.host) == block);
    return block->status;
}

static void put(uint32_t chunks, uint32_t servers)
{
    SKY_HostBlock_t block = block_of(SKY_HOST_PUT, chunks, servers, 0);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.served_count, 0); /* nobody wants to know */
}

static const SKY_HostServed_t *of(const SKY_HostBlock_t *block, uint32_t slot)
{
    for (uint32_t i = 0; i < block->served_count; ++i)
    {
        if (served[i].slot == slot)
        {
            return &served[i];
        }
    }
    CHECK(false);
    return NULL;
}

static void test_each_satellite_has_its_part(void)
{
    open_sky();
    SKY_HostBlock_t block = block_of(SKY_HOST_PUT, 5, SATELLITES, SATELLITES);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.served_count, SATELLITES);
    CHECK_EQ(of(&block, 1)->chunks, 2); /* chunks 0 and 4 */
    CHECK_EQ(of(&block, 1)->bytes, CHUNK + 1u);
    CHECK_EQ(of(&block, 4)->chunks, 1);
    const uint64_t began_us = rig.now_us;

    block = block_of(SKY_HOST_GET, 5, SATELLITES, SATELLITES);
    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.served_count, SATELLITES);
    uint32_t requests = 0;

    for (uint32_t slot = 1; slot <= SATELLITES; ++slot)
    {
        const SKY_HostServed_t *one = of(&block, slot);

        CHECK(one->plane == 1u && one->entry_plane == 1u && one->entry_slot == slot);
        CHECK_EQ(one->chunks, slot == 1u ? 2 : 1);
        CHECK_EQ(one->asked_us, began_us);
        CHECK_EQ(one->first_us, began_us + RTT_US);
        CHECK(one->last_us >= one->first_us);
        CHECK(one->srtt_us > 0);
        CHECK_EQ(one->repeats, 0);
        requests += one->requests;
    }
    CHECK_EQ(requests, block.requests);
    host_close(&rig);
}

static void test_without_room_others_are_not_told_of(void)
{
    open_sky();
    put(4, SATELLITES);
    SKY_HostBlock_t block = block_of(SKY_HOST_GET, 4, SATELLITES, 2);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.served_count, 2);
    CHECK(served[0].slot != served[1].slot && served[2].slot == 0u);
    host_close(&rig);
}

/* Who is silent was asked, and has said nothing. */
static void test_who_is_silent_has_no_times_of_answers(void)
{
    open_sky();
    put(4, 2);
    rig.is_silent[1]      = true;
    SKY_HostBlock_t block = block_of(SKY_HOST_GET, 4, 2, SATELLITES);

    CHECK_EQ(run(&block), SKY_STATUS_EXPIRED);
    CHECK_EQ(block.served_count, 2);
    CHECK_EQ(of(&block, 1)->chunks, 2); /* also of a block that did not come whole */
    const SKY_HostServed_t *silent = of(&block, 2);

    CHECK(silent->asked_us > 0 && silent->first_us == 0 && silent->last_us == 0);
    CHECK(silent->chunks == 0 && silent->bytes == 0 && silent->repeats > 0);
    host_close(&rig);
}

/* A satellite has one record, whatever it is asked for: its times are those of the first and the last of all pieces. */
static void test_pieces_and_transfers_add_up(void)
{
    const uint32_t chunks = 4200; /* three pieces */

    open_sky();
    put(chunks, 1);
    const uint64_t  began_us = rig.now_us;
    SKY_HostBlock_t block    = block_of(SKY_HOST_GET, chunks, 1, SATELLITES);

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.served_count, 1);
    CHECK_EQ(served[0].chunks, chunks);
    CHECK_EQ(served[0].bytes, block.stripe.block_len);
    CHECK_EQ(served[0].requests, block.requests);
    CHECK_EQ(served[0].asked_us, began_us);
    CHECK_EQ(served[0].first_us, began_us + RTT_US);
    CHECK_EQ(served[0].last_us, began_us + block.duration_us);

    /* A second transfer goes on where the first one ended: here it is of no avail. */
    const SKY_HostServed_t before = served[0];

    rig.is_silent[0] = true;
    CHECK_EQ(run(&block), SKY_STATUS_EXPIRED);
    CHECK_EQ(block.served_count, 1);
    CHECK_EQ(served[0].chunks, chunks);
    CHECK(served[0].requests > before.requests && served[0].repeats > 0);
    CHECK(served[0].asked_us == before.asked_us && served[0].first_us == before.first_us && served[0].last_us == before.last_us);
    host_close(&rig);
}

/* The last place to be asked is not the last to end: what it was asked counts from the first. */
static void test_an_earlier_time_counts_though_it_is_told_later(void)
{
    open_sky();
    put(8, 1);
    SKY_HostBlock_t block = block_of(SKY_HOST_GET, 8, 1, SATELLITES);

    served[0]                     = (SKY_HostServed_t){.plane    = 1,
                                                       .slot     = 1,
                                                       .asked_us = rig.now_us + 1000000u,
                                                       .first_us = rig.now_us + 2000000u,
                                                       .last_us  = rig.now_us + 3000000u};
    block.served_count            = 1;
    const SKY_HostServed_t before = served[0];

    CHECK_EQ(run(&block), SKY_STATUS_DONE);
    CHECK_EQ(block.served_count, 1);
    CHECK(served[0].asked_us < before.asked_us && served[0].first_us < before.first_us && served[0].last_us == before.last_us);
    host_close(&rig);
}

int main(void)
{
    RUN(test_each_satellite_has_its_part);
    RUN(test_without_room_others_are_not_told_of);
    RUN(test_who_is_silent_has_no_times_of_answers);
    RUN(test_pieces_and_transfers_add_up);
    RUN(test_an_earlier_time_counts_though_it_is_told_later);
    return CHECK_RESULT();
}
