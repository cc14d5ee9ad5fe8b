/**
 * @file
 * sky_service_repair.c and sky_service_census.c: what is lost of a block with parity comes back where it was, as it was.
 */
#include "repair_rig.h"

/* Nine servers, two of parity, three rows, the last of which is short and ends with a short chunk. */
static coded_t open_filled(bool gossip)
{
    const coded_t coded = a_coded(1, 16u * 100u + 30u, 100, 7, 2);

    open_sky(SKY_LAYOUT_ROTATION, 9, 64, gossip);
    put_all(&coded);
    CHECK(is_whole(&coded));
    CHECK_EQ(SKY_Stripe_Rows(&coded.stripe), 3);
    run(LIFE_MS * 1000u);
    return coded;
}

static void test_a_whole_block_stays(void)
{
    const coded_t coded = open_filled(true);

    run(6u * PERIOD_US);
    CHECK(is_whole(&coded));
    CHECK_EQ(repaired() + degraded() + scrubbed(), 0);
    CHECK_EQ(sent_gets, 0);
}

static void test_each_lost_share_comes_back(void)
{
    for (uint32_t i = 0; i < 9; ++i)
    {
        const coded_t  coded = open_filled(true);
        const uint32_t share = held_at(at_home(i), &coded);

        restart(home_of(i));
        CHECK_EQ(held(&coded), coded.stripe.chunk_total - share);
        run(4u * PERIOD_US);
        CHECK(is_whole(&coded));
        CHECK_EQ(repaired(), share);
        CHECK_EQ(degraded(), 1);
        CHECK_EQ(scrubbed(), 0);
    }
}

static void test_each_two_lost_shares_come_back(void)
{
    for (uint32_t i = 0; i < 9; ++i)
    {
        for (uint32_t j = i + 1u; j < 9; ++j)
        {
            const coded_t coded = open_filled(true);

            restart(home_of(i));
            restart(home_of(j));
            run(4u * PERIOD_US);
            CHECK(is_whole(&coded));
            CHECK_EQ(scrubbed(), 0);
        }
    }
}

static void test_chunks_in_parts(void)
{
    link_bytes          = IN_PARTS;
    const coded_t coded = a_coded(1, 20u * 600u - 7u, 600, 7, 2);

    open_sky(SKY_LAYOUT_ROTATION, 9, 64, true);
    put_all(&coded);
    run(LIFE_MS * 1000u);
    restart(home_of(3));
    restart(home_of(8));
    run(4u * PERIOD_US);
    CHECK(is_whole(&coded));
    link_bytes = WHOLE;
}

/* Of three lost shares none comes back, so the block goes from everywhere. */
static void test_what_cannot_be_decoded_goes(void)
{
    for (uint32_t gossip = 0; gossip < 2; ++gossip)
    {
        const coded_t coded = open_filled(gossip != 0);

        restart(home_of(2));
        restart(home_of(3));
        restart(home_of(7));
        run(2u * PERIOD_US);
        CHECK(held(&coded) > 0);
        run((gossip != 0 ? 8u : 60u) * PERIOD_US); /* without gossip each finds out by itself */
        CHECK_EQ(held(&coded), 0);
        CHECK_EQ(repaired(), 0);
        CHECK((gossip_purged() > 0) == (gossip != 0));
        CHECK(scrubbed() > 0);
    }
}

static void test_values_of_one_chunk(void)
{
    const coded_t coded = a_coded(1, 77, 100, 7, 2);

    open_sky(SKY_LAYOUT_ROTATION, 9, 64, true);
    put_all(&coded);
    CHECK_EQ(held(&coded), 3);
    run(LIFE_MS * 1000u);
    restart(home_of(0));
    restart(home_of(1));
    run(4u * PERIOD_US);
    CHECK(is_whole(&coded));
}

static void test_two_servers(void)
{
    const coded_t coded = a_coded(1, 350, 100, 1, 1);

    open_sky(SKY_LAYOUT_ROTATION, 2, 64, true);
    put_all(&coded);
    run(LIFE_MS * 1000u);
    restart(home_of(1));
    run(4u * PERIOD_US);
    CHECK(is_whole(&coded));
    restart(home_of(0));
    run(4u * PERIOD_US);
    CHECK(is_whole(&coded));
}

static void test_twenty_servers(void)
{
    const coded_t coded = a_coded(1, 40u * 100u, 100, 16, 4);

    open_sky(SKY_LAYOUT_ROTATION, 20, 64, true);
    put_all(&coded);
    run(LIFE_MS * 1000u);
    for (uint32_t i = 0; i < 4; ++i)
    {
        restart(home_of(5u * i));
    }
    run(4u * PERIOD_US);
    CHECK(is_whole(&coded));
}

/* More rows than one census counts. */
static void test_many_rows(void)
{
    const coded_t coded = a_coded(1, (2u * 130u + 1u) * 20u, 20, 2, 1);

    open_sky(SKY_LAYOUT_ROTATION, 3, 256, true);
    put_all(&coded);
    CHECK_EQ(SKY_Stripe_Rows(&coded.stripe), 131);
    run(LIFE_MS * 1000u);
    at_home(2)->deaf = true; /* of no row is known whether it is whole */
    run(6u * PERIOD_US);
    CHECK_EQ(degraded(), 0);
    at_home(2)->deaf = false;
    restart(home_of(2));
    run(6u * PERIOD_US);
    CHECK(is_whole(&coded));
    CHECK_EQ(degraded(), 1);
}

/* Who is asked for a chunk by another satellite does not count that as use, and neither does who gets one back. */
static void test_a_repair_is_no_use(void)
{
    const coded_t first = open_filled(true);
    const coded_t other = a_coded(2, 7u * 100u, 100, 7, 2);

    put_all(&other);
    run(LIFE_MS * 1000u);
    restart(home_of(4));
    run(4u * PERIOD_US);
    CHECK(is_whole(&first));
    CHECK(repaired() >= 4);
    for (uint32_t i = 0; i < 9; ++i)
    {
        SKY_StoreWalk_t walk = {.used = 0};
        SKY_BlockInfo_t info;

        CHECK(SKY_Store_NextUsed(&at_home(i)->store, &walk, &info));
        CHECK(i == 4 || info.content == other.content);
    }
}

int main(void)
{
    RUN(test_a_whole_block_stays);
    RUN(test_each_lost_share_comes_back);
    RUN(test_each_two_lost_shares_come_back);
    RUN(test_chunks_in_parts);
    RUN(test_what_cannot_be_decoded_goes);
    RUN(test_values_of_one_chunk);
    RUN(test_two_servers);
    RUN(test_twenty_servers);
    RUN(test_many_rows);
    RUN(test_a_repair_is_no_use);
    close_sky();
    return CHECK_RESULT();
}
