/**
 * @file
 * Ways of a ground host into the sky: the first in sight, the servers, and the satellite on which it is.
 */
#include "ground_rig.h"

static run_t runs[2];

/* Have all that was asked since the beginning gone in at one satellite? */
static bool all_went_over(SKY_Addr_t entry)
{
    bool all = asked_count > 0u;

    for (uint32_t i = 0; i < asked_count; ++i)
    {
        all = all && asked_at[i] == endpoint_of(NULL, entry);
    }
    return all;
}

static void open_over(SKY_GroundUplink_t uplink)
{
    open_ground(1);
    sky.uplink     = (uint32_t)uplink;
    sky.seen_count = 0;
    set_sky();
}

static void test_the_first_in_sight_is_the_only_way_in(void)
{
    const SKY_Addr_t first  = {1, 1};
    const SKY_Addr_t second = {5, 7};

    open_over(SKY_UPLINK_FIRST);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_NO_SATELLITE);
    seen[0]        = first;
    seen[1]        = second;
    sky.seen_count = 2;
    set_sky();
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    CHECK(all_went_over(first));
    silence(first, true);
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    CHECK(SKY_Ground_IsLost(&ground, first) && !SKY_Ground_IsLost(&ground, second));
    asked_count = 0;
    CHECK_EQ(get(&runs[1], 1, 950, 6), SKY_STATUS_DONE);
    CHECK(all_went_over(second));
    silence(first, false);
    now_us += SKY_HOST_LOST_US;
    asked_count = 0;
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_DONE);
    CHECK(all_went_over(first)); /* it was asked itself whether it is back */
    CHECK(!SKY_Ground_IsLost(&ground, first));

    sky.seen_count = 1; /* the second has set; the first is lost, and nobody else can be asked */
    set_sky();
    silence(first, true);
    CHECK_EQ(put(&runs[0], 1, 950, 8), SKY_STATUS_UNANSWERED);
    close_ground();
}

static void test_servers_are_the_ways_in(void)
{
    SKY_Addr_t away;

    open_over(SKY_UPLINK_SERVERS);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    for (uint32_t i = 0; i < asked_count; ++i) /* each server directly */
    {
        CHECK_EQ(asked_at[i], endpoint_of(NULL, asked[i].dst));
    }
    away = home_of(&runs[0].op, 1, 2);
    silence(away, true);
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    asked_count = 0;
    CHECK_EQ(get(&runs[1], 1, 950, 6), SKY_STATUS_DONE);
    CHECK(asked_count > 0u);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        CHECK(asked_at[i] != endpoint_of(NULL, away));
    }
    silence(away, false);
    now_us += SKY_HOST_LOST_US;
    asked_count = 0;
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_DONE);
    CHECK_EQ(asked_at[0], endpoint_of(NULL, away)); /* directly, for it is a server */
    CHECK(!SKY_Ground_IsLost(&ground, away));
    close_ground();
}

/* Whoever is no server is asked over the server that is the fewest hops away. */
static void test_others_are_reached_over_the_nearest_server(void)
{
    SKY_Addr_t best      = {0, 0};
    uint32_t   best_hops = UINT32_MAX;
    uint32_t   others    = 0;

    open_over(SKY_UPLINK_SERVERS);
    lay_out(2); /* the window moves, and leaves satellites that have something to hand over */
    now_us += ROW_US + SECOND_US;
    set_sky();
    CHECK_EQ(get(&runs[0], 1, 950, 0), SKY_STATUS_MISS);
    for (uint32_t i = 0; i < asked_count; ++i)
    {
        bool is_server = false;

        best_hops = UINT32_MAX;
        for (uint32_t server = 0; server < SERVERS; ++server)
        {
            const SKY_Addr_t one  = SKY_Schedule_Server(&schedule, 2, server);
            const uint32_t   hops = SKY_Torus_Hops(&ground.limits.torus, one, asked[i].dst);

            is_server = is_server || SKY_Addr_Equal(one, asked[i].dst);
            best      = hops < best_hops ? one : best;
            best_hops = hops < best_hops ? hops : best_hops;
        }
        const SKY_Addr_t entry = {(uint16_t)((asked_at[i] - ENDPOINT0) / SLOTS + 1u),
                                  (uint16_t)((asked_at[i] - ENDPOINT0) % SLOTS + 1u)};

        CHECK_EQ(SKY_Torus_Hops(&ground.limits.torus, entry, asked[i].dst), best_hops);
        others += !is_server && !SKY_Addr_Equal(entry, asked[i].dst) ? 1u : 0u;
    }
    CHECK(others > 0u && best.plane != 0u);
    close_ground();
}

static void test_a_host_aboard_speaks_to_its_satellite_alone(void)
{
    SKY_Addr_t centre;
    SKY_Addr_t away;

    open_over(SKY_UPLINK_ABOARD);
    centre = SKY_Schedule_Centre(&schedule, 1);
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 1, 2);
    away = SKY_Addr_Equal(away, centre) ? home_of(&runs[0].op, 1, 3) : away;
    silence(away, true);
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    silence(away, false);
    now_us += SKY_HOST_LOST_US;
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_DONE);
    CHECK(!SKY_Ground_IsLost(&ground, away));
    CHECK(all_went_over(centre));
    close_ground();
}

/* A server of before is lost: it is no way in, so it is asked over another one whether it is back. */
static void test_a_server_of_before_is_asked_over_one_of_now(void)
{
    SKY_Addr_t away;

    open_over(SKY_UPLINK_SERVERS);
    lay_out(2);
    set_sky();
    CHECK_EQ(put(&runs[0], 1, 950, 5), SKY_STATUS_DONE);
    away = home_of(&runs[0].op, 1, 2);
    silence(away, true);
    CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
    rest();
    CHECK(SKY_Ground_IsLost(&ground, away));
    silence(away, false);
    now_us      = START_US + ROW_US + SKY_HOST_LOST_US;
    asked_count = 0;
    CHECK_EQ(put(&runs[0], 1, 950, 7), SKY_STATUS_DONE);
    CHECK(SKY_Addr_Equal(asked[0].dst, away) && asked_at[0] != endpoint_of(NULL, away));
    CHECK(!SKY_Ground_IsLost(&ground, away));
    close_ground();
}

/* Two servers are lost: none of them is a way in, nor is it under another schedule. */
static void test_lost_servers_are_no_ways_in(void)
{
    for (uint32_t server = 0; server < SERVERS; ++server)
    {
        open_over(SKY_UPLINK_SERVERS);
        const SKY_Addr_t one   = SKY_Schedule_Server(&schedule, 1, server);
        const SKY_Addr_t other = SKY_Schedule_Server(&schedule, 1, (server + 1u) % SERVERS);

        silence(one, true);
        silence(other, true);
        CHECK_EQ(put(&runs[0], 1, 950, 6), SKY_STATUS_DONE);
        rest();
        CHECK_EQ(ground.reach.lost_count, 2);
        sky.changes = 2;
        set_sky();
        asked_count = 0;
        CHECK_EQ(get(&runs[1], 1, 950, 6), SKY_STATUS_DONE);
        CHECK(is_as_put(&runs[1], 1, 6) && asked_count > 0u);
        for (uint32_t i = 0; i < asked_count; ++i)
        {
            CHECK(asked_at[i] != endpoint_of(NULL, one) && asked_at[i] != endpoint_of(NULL, other));
        }
        close_ground();
    }
}

int main(void)
{
    RUN(test_the_first_in_sight_is_the_only_way_in);
    RUN(test_servers_are_the_ways_in);
    RUN(test_others_are_reached_over_the_nearest_server);
    RUN(test_a_host_aboard_speaks_to_its_satellite_alone);
    RUN(test_a_server_of_before_is_asked_over_one_of_now);
    RUN(test_lost_servers_are_no_ways_in);
    return CHECK_RESULT();
}
