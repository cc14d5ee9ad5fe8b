/**
 * @file
 * Replay windows against a model that remembers every number, and counters that only rise.
 */
#include <string.h>

#include "check.h"
#include "fixture.h"
#include "sky_replay.h"

#define LAST_NUMBER (UINT64_MAX - 1u)
#define STEPS       200000u
#define SPAN        (1u << 20)

static SKY_Replay_t replay;

/* Take a number as a satellite does. */
static bool take(uint64_t sequence)
{
    const bool is_new = SKY_Replay_IsNew(&replay, sequence);

    if (is_new)
    {
        SKY_Replay_Note(&replay, sequence);
    }
    return is_new;
}

static void test_numbers_are_new_once(void)
{
    SKY_Replay_Init(&replay);
    CHECK(take(1));
    CHECK(!take(1));
    CHECK(take(3));
    CHECK(take(2));
    CHECK(!take(2));
    CHECK(!take(3));
    CHECK(take(4));
}

static void test_the_window_has_16384_numbers(void)
{
    SKY_Replay_Init(&replay);
    CHECK(take(20000));
    CHECK(take(20000u - SKY_REPLAY_WINDOW + 1u));
    CHECK(!take(20000u - SKY_REPLAY_WINDOW));
    CHECK(take(20001));
    CHECK(!take(20000u - SKY_REPLAY_WINDOW + 1u));
    CHECK(take(20000u - SKY_REPLAY_WINDOW + 2u));
}

static void test_zero_and_the_last_number_are_never_new(void)
{
    SKY_Replay_Init(&replay);
    CHECK(!take(0));
    CHECK(!take(UINT64_MAX));
    CHECK(take(LAST_NUMBER));
    CHECK(!take(LAST_NUMBER));
    CHECK(!take(UINT64_MAX));
    CHECK(!take(0));
    CHECK(!take(1));
    CHECK(take(LAST_NUMBER - 1u));
    CHECK(take(LAST_NUMBER - SKY_REPLAY_WINDOW + 1u));
    CHECK(!take(LAST_NUMBER - SKY_REPLAY_WINDOW));
}

static void test_the_window_moves_up_to_the_last_number(void)
{
    SKY_Replay_Init(&replay);
    CHECK(take(LAST_NUMBER - 200u));
    CHECK(take(LAST_NUMBER - 300u));
    CHECK(take(LAST_NUMBER));
    CHECK(!take(LAST_NUMBER - 300u));
    for (uint64_t age = 1; age < 200u; ++age)
    {
        CHECK(take(LAST_NUMBER - age));
    }
    CHECK(!take(LAST_NUMBER - 200u));
}

static void test_a_jump_forgets_what_is_too_old(void)
{
    static const uint64_t jumps[] = {SKY_REPLAY_WINDOW - 1u, SKY_REPLAY_WINDOW, SKY_REPLAY_WINDOW + 1u, UINT64_C(1) << 40};

    for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); ++i)
    {
        SKY_Replay_Init(&replay);
        CHECK(take(100));
        CHECK(take(99));
        CHECK(take(100u + jumps[i]));
        CHECK(!take(99));
        CHECK(!take(100));
        CHECK(!take(100u + jumps[i]));
        CHECK(take(100u + jumps[i] - 1u));
        CHECK(take(101u + jumps[i] - SKY_REPLAY_WINDOW) == (jumps[i] >= SKY_REPLAY_WINDOW));
    }
}

/* Numbers near the highest one, far ahead, and old ones: each is new exactly if the model says so. */
static void test_the_window_agrees_with_a_memory_of_all_numbers(void)
{
    static bool seen[SPAN];

    for (uint64_t seed = 1; seed <= 4; ++seed)
    {
        uint64_t random  = seed;
        uint64_t highest = 0;
        uint64_t wrong   = 0;

        (void)memset(seen, 0, sizeof(seen));
        SKY_Replay_Init(&replay);
        for (uint32_t step = 0; step < STEPS && highest + 40000u < SPAN; ++step)
        {
            const uint64_t kind = fx_random(&random) % 1000u;
            uint64_t       reach;

            reach       = kind == 0 ? 40000u : kind < 10 ? 300u : 8u;
            uint64_t at = highest + fx_random(&random) % reach;

            if (kind >= 500)
            {
                const uint64_t back = fx_random(&random) % (kind >= 900 ? SKY_REPLAY_WINDOW + 200u : 100u);

                at = highest > back ? highest - back : 0;
            }
            const bool is_new = at != 0 && !seen[at] && at + SKY_REPLAY_WINDOW > highest;

            wrong += take(at) != is_new ? 1u : 0u;
            seen[at] = true; /* one that was too old stays refused */
            highest  = at > highest ? at : highest;
        }
        CHECK_EQ(wrong, 0);
        CHECK_EQ(replay.highest, highest);
        CHECK(highest > 2u * SKY_REPLAY_WINDOW);
    }
}

static void test_commands_only_rise(void)
{
    SKY_Rising_t rising;

    SKY_Rising_Init(&rising);
    CHECK(!SKY_Rising_IsNew(&rising, 0));
    CHECK(SKY_Rising_IsNew(&rising, 1));
    SKY_Rising_Note(&rising, 5);
    CHECK(!SKY_Rising_IsNew(&rising, 4));
    CHECK(!SKY_Rising_IsNew(&rising, 5));
    CHECK(SKY_Rising_IsNew(&rising, 6));
    CHECK(!SKY_Rising_IsNew(&rising, UINT64_MAX));
    SKY_Rising_Note(&rising, LAST_NUMBER);
    CHECK(!SKY_Rising_IsNew(&rising, LAST_NUMBER));
    CHECK(!SKY_Rising_IsNew(&rising, UINT64_MAX));
}

int main(void)
{
    RUN(test_numbers_are_new_once);
    RUN(test_the_window_has_16384_numbers);
    RUN(test_zero_and_the_last_number_are_never_new);
    RUN(test_the_window_moves_up_to_the_last_number);
    RUN(test_a_jump_forgets_what_is_too_old);
    RUN(test_the_window_agrees_with_a_memory_of_all_numbers);
    RUN(test_commands_only_rise);
    return CHECK_RESULT();
}
