/* The link model: order, rate, jitter, loss, cut, and a queue that fills. */
#include "sky_link.h"

#include <string.h>

#include "check.h"

#define SLOT_BYTES 64u
#define SLOT_COUNT 256u
#define MEMORY     (SLOT_COUNT * (SLOT_BYTES + 64u))

static const SKY_LinkModel_t ideal;

static uint8_t    memory[MEMORY + 1u];
static SKY_Link_t link_model;

static void Start(SKY_LinkModel_t model, uint32_t slot_count)
{
    CHECK(SKY_Link_Init(&link_model, &model, SLOT_BYTES, slot_count, memory, sizeof(memory), 42));
}

static SKY_LinkResult_t PushNumber(uint64_t now_us, uint32_t number)
{
    return SKY_Link_Push(&link_model, now_us, NULL, 0, &number, sizeof(number), NULL, 0);
}

static uint32_t PopNumber(uint64_t now_us)
{
    const uint8_t *data   = NULL;
    uint32_t       number = UINT32_MAX;
    const size_t   len    = SKY_Link_Pop(&link_model, now_us, &data);

    if (len != 0u)
    {
        CHECK_EQ(len, sizeof(number));
        (void)memcpy(&number, data, sizeof(number));
    }
    return number;
}

static void Limits(void)
{
    const size_t needed = SKY_Link_MemoryBytes(SLOT_BYTES, 4);

    CHECK(needed > (size_t)4 * SLOT_BYTES);
    CHECK_EQ(SKY_Link_MemoryBytes(0, 4), 0);
    CHECK_EQ(SKY_Link_MemoryBytes(SLOT_BYTES, 0), 0);
    CHECK_EQ(SKY_Link_MemoryBytes(SKY_LINK_SLOT_BYTES_MAX + 1u, 4), 0);
    CHECK_EQ(SKY_Link_MemoryBytes(SLOT_BYTES, SKY_LINK_SLOTS_MAX + 1u), 0);
    CHECK(SKY_Link_Init(&link_model, &ideal, SLOT_BYTES, 4, memory, needed, 0));
    CHECK(!SKY_Link_Init(&link_model, &ideal, SLOT_BYTES, 4, memory, needed - 1u, 0));
    CHECK(!SKY_Link_Init(&link_model, &ideal, SLOT_BYTES, 0, memory, needed, 0));
    for (size_t offset = 0; offset < 17u; ++offset) /* wherever the memory begins */
    {
        CHECK(SKY_Link_Init(&link_model, &ideal, SLOT_BYTES, 4, memory + offset, needed, 0));
        CHECK(link_model.data + (size_t)4 * SLOT_BYTES <= memory + offset + needed);
        CHECK_EQ(PushNumber(0, 9), SKY_LINK_TAKEN);
        CHECK_EQ(PopNumber(0), 9);
    }
}

static void Ideal(void)
{
    SKY_LinkModel_t model = ideal;

    CHECK(SKY_LinkModel_IsIdeal(&model));
    model.delay_us = 1;
    CHECK(!SKY_LinkModel_IsIdeal(&model));
    model           = ideal;
    model.jitter_us = 1;
    CHECK(!SKY_LinkModel_IsIdeal(&model));
    model           = ideal;
    model.rate_kbps = 1;
    CHECK(!SKY_LinkModel_IsIdeal(&model));
    model          = ideal;
    model.loss_ppm = 1;
    CHECK(!SKY_LinkModel_IsIdeal(&model));
    model     = ideal;
    model.cut = true;
    CHECK(!SKY_LinkModel_IsIdeal(&model));
}

static void Delays(void)
{
    SKY_LinkModel_t model = ideal;
    const uint8_t  *data  = NULL;

    model.delay_us = 7600;
    Start(model, 8);
    CHECK_EQ(SKY_Link_NextDue(&link_model), UINT64_MAX);
    CHECK_EQ(PopNumber(UINT64_MAX), UINT32_MAX);
    CHECK_EQ(SKY_Link_Push(&link_model, 1000, "ab", 2, "cde", 3, "f", 1), SKY_LINK_TAKEN);
    CHECK_EQ(SKY_Link_NextDue(&link_model), 8600);
    CHECK_EQ(SKY_Link_Pop(&link_model, 8599, &data), 0);
    CHECK_EQ(SKY_Link_Pop(&link_model, 8600, &data), 6);
    CHECK(memcmp(data, "abcdef", 6) == 0);
    CHECK_EQ(SKY_Link_Pop(&link_model, 8600, &data), 0);
    CHECK_EQ(SKY_Link_NextDue(&link_model), UINT64_MAX);
}

static void KeepsTheOrder(void)
{
    SKY_LinkModel_t model = ideal;

    model.delay_us = 10;
    Start(model, SLOT_COUNT);
    for (uint32_t i = 0; i < SLOT_COUNT; ++i)
    {
        CHECK_EQ(PushNumber(100, i), SKY_LINK_TAKEN); /* all at the same time */
    }
    for (uint32_t i = 0; i < SLOT_COUNT; ++i)
    {
        CHECK_EQ(PopNumber(110), i);
    }
}

static void Rates(void)
{
    SKY_LinkModel_t model   = ideal;
    uint8_t         big[64] = {0};

    model.rate_kbps = 10000000; /* 10 Gbit/s: 64 bytes in 51.2 ns */
    Start(model, SLOT_COUNT);
    for (uint32_t i = 0; i < 100u; ++i)
    {
        CHECK_EQ(SKY_Link_Push(&link_model, 1000, big, 64, NULL, 0, NULL, 0), SKY_LINK_TAKEN);
    }
    CHECK_EQ(link_model.busy_until_ns, 1000000 + 5100); /* 51 ns each: the error is below a nanosecond a packet */
    CHECK_EQ(SKY_Link_NextDue(&link_model), 1001);      /* never before the last bit */

    model.rate_kbps = 8; /* 1 kB/s */
    Start(model, 8);
    CHECK_EQ(SKY_Link_Push(&link_model, 0, big, 10, NULL, 0, NULL, 0), SKY_LINK_TAKEN);
    CHECK_EQ(SKY_Link_Push(&link_model, 0, big, 10, NULL, 0, NULL, 0), SKY_LINK_TAKEN);
    CHECK_EQ(SKY_Link_NextDue(&link_model), 10000);
    CHECK_EQ(link_model.busy_until_ns, 20000000);
    CHECK_EQ(SKY_Link_Push(&link_model, 50000, big, 10, NULL, 0, NULL, 0), SKY_LINK_TAKEN); /* after a pause */
    CHECK_EQ(link_model.busy_until_ns, 60000000);
}

/* Lost packets take no slot, but the transmitter's time: no more of it than all slots full of packets would. */
static void BoundsTheBacklog(void)
{
    const uint64_t  most_us  = 4u * 64000u; /* 64 bytes at 1 kB/s, 4 slots */
    SKY_LinkModel_t model    = ideal;
    uint8_t         big[64]  = {0};
    uint32_t        refusals = 0;

    model.rate_kbps = 8;
    model.loss_ppm  = 1000000;
    Start(model, 4);
    for (uint32_t i = 0; i < 100u; ++i)
    {
        refusals += SKY_Link_Push(&link_model, 0, big, 64, NULL, 0, NULL, 0) == SKY_LINK_DROP_QUEUE ? 1u : 0u;
    }
    CHECK_EQ(refusals, 95);
    CHECK_EQ(link_model.busy_until_ns, (most_us + 64000u) * 1000u);
    CHECK_EQ(SKY_Link_Push(&link_model, 64000, big, 64, NULL, 0, NULL, 0), SKY_LINK_DROP_LOSS);

    /* A new model does not inherit what an old one piled up: at a thousand times the rate, a thousandth of the wait. */
    model.rate_kbps = 8000;
    model.loss_ppm  = 0;
    SKY_Link_SetModel(&link_model, &model);
    CHECK_EQ(SKY_Link_Push(&link_model, 64000, big, 64, NULL, 0, NULL, 0), SKY_LINK_TAKEN);
    CHECK_EQ(SKY_Link_NextDue(&link_model), 64000u + 4u * 64u + 64u);
    model.rate_kbps = 0;
    SKY_Link_SetModel(&link_model, &model);
    CHECK_EQ(SKY_Link_Push(&link_model, 64000, big, 64, NULL, 0, NULL, 0), SKY_LINK_TAKEN);
    CHECK_EQ(SKY_Link_NextDue(&link_model), 64000);
    model.rate_kbps = 8;
    SKY_Link_SetModel(&link_model, &model); /* nothing waits: nothing to cut off */
    CHECK_EQ(SKY_Link_Push(&link_model, 64000, big, 64, NULL, 0, NULL, 0), SKY_LINK_TAKEN);
    CHECK_EQ(link_model.busy_until_ns, 128000000);
}

static void Jitters(void)
{
    SKY_LinkModel_t model      = ideal;
    uint64_t        due_before = 0;
    uint32_t        reordered  = 0;
    uint32_t        seen       = 0;
    uint32_t        before     = 0;

    model.delay_us  = 1000;
    model.jitter_us = 500;
    Start(model, SLOT_COUNT);
    for (uint32_t i = 0; i < SLOT_COUNT; ++i)
    {
        CHECK_EQ(PushNumber(i, i), SKY_LINK_TAKEN);
    }
    while (link_model.used > 0u)
    {
        const uint64_t due = SKY_Link_NextDue(&link_model);
        const uint32_t at  = PopNumber(due);

        CHECK(due >= due_before);
        CHECK(due >= at + 1000u && due <= at + 1500u);
        reordered += at < before ? 1u : 0u;
        due_before = due;
        before     = at;
        ++seen;
    }
    CHECK_EQ(seen, SLOT_COUNT);
    CHECK(reordered > 50u);
}

/* Sum over the packets that came through, weighted with their place: differs where a run differs. */
static uint64_t LossyRun(uint64_t seed, uint32_t loss_ppm, uint32_t *lost)
{
    SKY_LinkModel_t model = ideal;
    uint64_t        sum   = 0;

    model.loss_ppm  = loss_ppm;
    model.jitter_us = 3;
    CHECK(SKY_Link_Init(&link_model, &model, SLOT_BYTES, 4, memory, sizeof(memory), seed));
    *lost = 0;
    for (uint32_t i = 0; i < 10000u; ++i)
    {
        if (PushNumber((uint64_t)i * 10u, i) == SKY_LINK_DROP_LOSS)
        {
            ++*lost;
        }
        else
        {
            sum = sum * 31u + SKY_Link_NextDue(&link_model);
            CHECK_EQ(PopNumber((uint64_t)i * 10u + 3u), i);
        }
    }
    return sum;
}

static void LosesAndRepeatsExactly(void)
{
    uint32_t lost = 0;
    uint64_t run;

    (void)LossyRun(1, 0, &lost);
    CHECK_EQ(lost, 0);
    (void)LossyRun(1, 1000000, &lost);
    CHECK_EQ(lost, 10000);
    run = LossyRun(1, 50000, &lost);
    CHECK(lost > 400u && lost < 600u); /* 500, standard deviation 22 */
    CHECK(run == LossyRun(1, 50000, &lost));
    CHECK(run != LossyRun(2, 50000, &lost));
}

static void LostPacketsTakeTime(void)
{
    SKY_LinkModel_t model = ideal;

    model.loss_ppm  = 1000000;
    model.rate_kbps = 8;
    Start(model, 8);
    CHECK_EQ(PushNumber(0, 1), SKY_LINK_DROP_LOSS);
    CHECK_EQ(link_model.busy_until_ns, 4000000);
}

static void Cuts(void)
{
    SKY_LinkModel_t model = ideal;

    model.delay_us = 100;
    Start(model, 8);
    CHECK_EQ(PushNumber(0, 1), SKY_LINK_TAKEN);
    model.cut      = true;
    model.delay_us = 5;
    SKY_Link_SetModel(&link_model, &model);
    CHECK_EQ(PushNumber(1, 2), SKY_LINK_DROP_CUT);
    CHECK_EQ(SKY_Link_NextDue(&link_model), 100); /* light on its way arrives */
    CHECK_EQ(PopNumber(100), 1);
    model.cut = false;
    SKY_Link_SetModel(&link_model, &model);
    CHECK_EQ(PushNumber(200, 3), SKY_LINK_TAKEN);
    CHECK_EQ(SKY_Link_NextDue(&link_model), 205);
}

static void RefusesWhatDoesNotFit(void)
{
    const uint8_t big[SLOT_BYTES + 1u] = {0};

    Start(ideal, 2);
    CHECK_EQ(SKY_Link_Push(&link_model, 0, big, SLOT_BYTES + 1u, NULL, 0, NULL, 0), SKY_LINK_DROP_SIZE);
    CHECK_EQ(SKY_Link_Push(&link_model, 0, NULL, 0, NULL, 0, NULL, 0), SKY_LINK_DROP_SIZE);
    CHECK_EQ(SKY_Link_Push(&link_model, 0, big, SLOT_BYTES, NULL, 0, NULL, 0), SKY_LINK_TAKEN);
    CHECK_EQ(PushNumber(0, 2), SKY_LINK_TAKEN);
    CHECK_EQ(PushNumber(0, 3), SKY_LINK_DROP_QUEUE);
    CHECK_EQ(link_model.used, 2);
    CHECK_EQ(SKY_Link_Pop(&link_model, 0, &(const uint8_t *){NULL}), SLOT_BYTES);
    CHECK_EQ(PushNumber(0, 4), SKY_LINK_TAKEN); /* room again */
    CHECK_EQ(PopNumber(0), 2);
    CHECK_EQ(PopNumber(0), 4);
}

int main(void)
{
    RUN(Limits);
    RUN(Ideal);
    RUN(Delays);
    RUN(KeepsTheOrder);
    RUN(Rates);
    RUN(BoundsTheBacklog);
    RUN(Jitters);
    RUN(LosesAndRepeatsExactly);
    RUN(LostPacketsTakeTime);
    RUN(Cuts);
    RUN(RefusesWhatDoesNotFit);
    return CHECK_RESULT();
}
