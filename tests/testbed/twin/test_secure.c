/**
 * @file
 * Satellites and hosts with keys, and an attacker on all links: nothing comes of what it does, and each of the two truths fails where the core
 * is broken on purpose.
 */
#include "twin_rig.h"

#define ATTACK_PPM 30000u

/* Keys, an attacker for most of the time, and a satellite that goes and comes back meanwhile. */
static void attacked(Rig_t *rig, uint32_t suite)
{
    rig_init(rig, 3);
    rig->config.suite                                                   = suite;
    rig_fault(rig, 10, SKYT_FAULT_MODEL, SKYT_ALL, 0)->model.attack_ppm = ATTACK_PPM;
    (void)rig_fault(rig, 80, SKYT_FAULT_CRASH, node_at(3, 9), 0);
    (void)rig_fault(rig, 140, SKYT_FAULT_RESTART, node_at(3, 9), 0);
    (void)rig_fault(rig, 300, SKYT_FAULT_MODEL, SKYT_ALL, 0);
}

static void test_all_works_with_keys_as_without(void)
{
    SKYT_Counters_t counters[2];
    Rig_t           rig;

    for (uint32_t suite = SKY_SUITE_NONE; suite <= SKY_SUITE_BLAKE2B_PACKET; ++suite)
    {
        rig_init(&rig, 4);
        rig.config.suite = suite;
        rig_run_sound(&rig, &counters[suite == 0 ? 0 : 1]);
        CHECK_EQ(counters[suite == 0 ? 0 : 1].hits, GETS);
        CHECK_EQ(counters[suite == 0 ? 0 : 1].sealed > 0, suite != 0);
        CHECK_EQ(counters[suite == 0 ? 0 : 1].commands, suite == 0 ? 0 : rig.rows - 1u); /* one a row, each obeyed once */
    }
    CHECK(counters[1].session_keys > 50);
    CHECK(counters[1].packets > counters[0].packets);
}

static void test_nothing_comes_of_an_attack(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    for (uint32_t suite = SKY_SUITE_GMAC_HEADER; suite <= SKY_SUITE_BLAKE2B_PACKET; ++suite)
    {
        attacked(&rig, suite);
        rig_run_sound(&rig, &counters);
        for (uint32_t kind = 0; kind < SKYT_ATTACKS; ++kind)
        {
            CHECK(counters.attacks[kind] > 10);
        }
        CHECK(counters.refusals[SKYT_REFUSAL_UNAUTHENTICATED] > 100);
        CHECK(counters.refusals[SKYT_REFUSAL_REPLAYED] > 10);
        CHECK(counters.hits > GETS / 10u); /* the satellite has taken chunks of most blocks with it */
    }
}

static void test_an_attack_needs_keys(void)
{
    SKYT_Fault_t fault = {START_US, SKYT_FAULT_MODEL, SKYT_ALL, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
    char         why[SKYT_TEXT_BYTES];
    Rig_t        rig;

    for (uint32_t suite = SKY_SUITE_NONE; suite <= SKY_SUITE_BLAKE2B_HEADER; suite += SKY_SUITE_BLAKE2B_HEADER)
    {
        rig_init(&rig, 1);
        rig.config.suite  = suite;
        SKYT_Twin_t *twin = SKYT_Create(&rig.config, why);

        CHECK(twin != NULL);
        CHECK_EQ(SKYT_AddFaults(twin, &fault, 1), suite != SKY_SUITE_NONE);
        SKYT_Destroy(twin);
    }
    rig.config.suite = SKY_SUITE_BLAKE2B_PACKET + 1u;
    CHECK(SKYT_Create(&rig.config, why) == NULL);
    CHECK(strstr(why, "suite is 5; allowed are 0 to 4") != NULL);
}

static void test_tags_that_nobody_compares(void)
{
    Rig_t rig;

    attacked(&rig, SKY_SUITE_BLAKE2B_PACKET);
    check_first(&rig, SKYT_BREAK_CREDULOUS, SKYT_INVARIANT_AUTHENTIC, "forged or changed");
}

static void test_sequence_numbers_that_nobody_remembers(void)
{
    Rig_t rig;

    attacked(&rig, SKY_SUITE_BLAKE2B_HEADER);
    check_first(&rig, SKYT_BREAK_OBLIVIOUS, SKYT_INVARIANT_AUTHENTIC, "that it has served before");
}

/* The attacker sends all that a satellite got after its first boot again, and finds the same keys. */
static void test_the_same_salt_at_each_boot(void)
{
    SKYT_Counters_t counters;
    Rig_t           rig;

    attacked(&rig, SKY_SUITE_GMAC_HEADER);
    rig_run(&rig, SKYT_BREAK_SALT, &counters);
    CHECK(counters.violations[SKYT_INVARIANT_AUTHENTIC] > 0);
    CHECK(counters.violations[SKYT_INVARIANT_NONCE] > 0);
}

static void test_sequence_numbers_that_are_sent_twice(void)
{
    Rig_t rig;

    rig_init(&rig, 3); /* it needs no attacker */
    rig.config.suite = SKY_SUITE_GMAC_PACKET;
    check_first(&rig, SKYT_BREAK_STUTTER, SKYT_INVARIANT_NONCE, "a sequence number that it has had");
}

int main(void)
{
    RUN(test_all_works_with_keys_as_without);
    RUN(test_nothing_comes_of_an_attack);
    RUN(test_an_attack_needs_keys);
    RUN(test_tags_that_nobody_compares);
    RUN(test_sequence_numbers_that_nobody_remembers);
    RUN(test_the_same_salt_at_each_boot);
    RUN(test_sequence_numbers_that_are_sent_twice);
    return CHECK_RESULT();
}
