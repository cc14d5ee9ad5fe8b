/* Who is asked whether something is still there, and who is left alone. */
#include "sky_presence.h"

#include "check.h"

#define WAITED_US UINT64_C(1000)
#define QUIET_US  (SKY_PRESENCE_QUIET_TIMES * WAITED_US)

static const SKY_Addr_t        one   = {1, 1};
static const SKY_Addr_t        two   = {1, 2};
static const SKY_Addr_t        three = {2, 3};
static SKY_PresenceSatellite_t satellites[6];

static SKY_Presence_t presence_of(void)
{
    SKY_Presence_t presence;
    SKY_Torus_t    torus;

    CHECK(SKY_Torus_Init(&torus, 2, 3, false));
    SKY_Presence_Init(&presence, &torus, satellites);
    return presence;
}

static void test_who_was_silent_is_left_alone_for_a_while(void)
{
    const SKY_Addr_t first[]  = {one, two};
    SKY_Presence_t   presence = presence_of();

    CHECK(SKY_Presence_IsAwake(&presence, 0, one));
    SKY_Presence_Told(&presence, 7, WAITED_US, first, 2, &two, 1);
    CHECK(SKY_Presence_IsAwake(&presence, 7, one));
    CHECK(!SKY_Presence_IsAwake(&presence, 7, two));
    CHECK(!SKY_Presence_IsAwake(&presence, 7 + QUIET_US - 1u, two));
    CHECK(SKY_Presence_IsAwake(&presence, 7 + QUIET_US, two));
}

static void test_a_share_is_asked_for_where_all_its_places_may_be_asked(void)
{
    const SKY_Addr_t places[] = {one, three};
    SKY_Presence_t   presence = presence_of();

    SKY_Presence_Told(&presence, 0, WAITED_US, &two, 1, &three, 1);
    CHECK(SKY_Presence_Asks(&presence, 0, 2, 0, false, places, 1));
    CHECK(!SKY_Presence_Asks(&presence, 0, 2, 0, false, places, 2));
    CHECK(!SKY_Presence_Asks(&presence, 0, 2, 0, true, places, 2));
    CHECK(SKY_Presence_Asks(&presence, QUIET_US, 2, 0, true, places, 2));
    CHECK(SKY_Presence_Asks(&presence, 0, 2, 0, false, NULL, 0));
}

static void test_other_servers_are_asked_for_some_blocks(void)
{
    SKY_Presence_t presence = presence_of();

    CHECK(!SKY_Presence_Asks(&presence, 0, 2, 1, false, &one, 1));
    CHECK(SKY_Presence_Asks(&presence, 0, 2, 1, true, &one, 1));
    CHECK(!SKY_Presence_Asks(&presence, 0, 2, 2, true, &one, 1)); /* it has no share */
}

/* It may be the host that stood still. */
static void test_when_nobody_answers_all_are_asked_once_more(void)
{
    const SKY_Addr_t all[]    = {one, two};
    SKY_Presence_t   presence = presence_of();

    SKY_Presence_Told(&presence, 0, WAITED_US, all, 2, all, 2);
    CHECK(SKY_Presence_IsAwake(&presence, 0, one));
    SKY_Presence_Told(&presence, 1, WAITED_US, all, 2, all, 2);
    CHECK(!SKY_Presence_IsAwake(&presence, 1, one));
    CHECK(!SKY_Presence_IsAwake(&presence, 1, two));
    SKY_Presence_Told(&presence, 2, WAITED_US, &three, 1, NULL, 0); /* somebody does */
    SKY_Presence_Told(&presence, 3, WAITED_US, &three, 1, &three, 1);
    CHECK(SKY_Presence_IsAwake(&presence, 3, three));
}

/* One that is asked only for what others do not hold may be reached although the host is heard by nobody it asked first. */
static void test_who_is_asked_later_does_not_show_that_the_host_is_heard(void)
{
    SKY_Presence_t presence = presence_of();

    SKY_Presence_Told(&presence, 0, WAITED_US, &one, 1, &one, 1);
    CHECK(!presence.is_heard);
    SKY_Presence_Told(&presence, 0, WAITED_US, &two, 1, &one, 1);
    CHECK(presence.is_heard);
    CHECK(!SKY_Presence_IsAwake(&presence, 0, one));
}

int main(void)
{
    RUN(test_who_was_silent_is_left_alone_for_a_while);
    RUN(test_a_share_is_asked_for_where_all_its_places_may_be_asked);
    RUN(test_other_servers_are_asked_for_some_blocks);
    RUN(test_when_nobody_answers_all_are_asked_once_more);
    RUN(test_who_is_asked_later_does_not_show_that_the_host_is_heard);
    return CHECK_RESULT();
}
