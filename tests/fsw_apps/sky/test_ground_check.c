/* A ground host checks whether servers hold a block, and nobody answers it. */
#include "sky_ground.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define START_US UINT64_C(1000000)
#define TURNS    10000u /* more than any operation here takes */

static SKY_Torus_t       torus;
static SKY_Schedule_t    schedule;
static SKY_ScheduleRow_t row = {0, {3, 3}};
static SKY_Ground_t      ground;
static uint32_t          sent; /* questions for the block */
static uint8_t           bytes[SKY_CHUNKSET_MAX_BYTES];

static void send_packet(void *context, uint64_t now_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    (void)context;
    (void)now_us;
    (void)endpoint;
    (void)key;
    sent += pkt->op == SKY_OP_HAS ? 1u : 0u;
}

static uint8_t *payload(void *context)
{
    (void)context;
    return bytes;
}

static bool draw(void *context, uint8_t *to, size_t count)
{
    (void)context;
    (void)memset(to, 7, count);
    return true;
}

static uint64_t endpoint_of(void *context, SKY_Addr_t entry)
{
    (void)context;
    return (uint64_t)entry.plane << 16 | entry.slot;
}

/* Begin a host in a sky that does not turn. */
static void *begin(void)
{
    static const SKY_ReachCfg_t times = {SKY_HOST_LOST_US, SKY_HOST_DOUBT_US, SKY_HOST_PAUSE_FIRST_US, SKY_HOST_PAUSE_MAX_US};

    const SKY_HostCfg_t     cfg   = {SKY_PeerCfg_OfHost(64, 20), 1472, 77, true, 0, false, {0}};
    const SKY_GroundShell_t shell = {.host = {NULL, send_packet, payload, draw}, .EndpointOf = endpoint_of};
    const SKY_GroundSky_t   sky   = {.schedule = &schedule, .changes = 1, .uplink = SKY_UPLINK_DIRECT};
    SKY_GroundLimits_t      limits;
    void                   *memory;

    CHECK(SKY_Torus_Init(&torus, 5, 5, false));
    CHECK(SKY_Schedule_Init(&schedule, &torus, SKY_LAYOUT_HOP, 2, &row, 1, 0));
    limits = (SKY_GroundLimits_t){torus, 2, 1, 1, 8, 8};
    memory = calloc(1, SKY_Ground_MemoryBytes(&limits));
    CHECK(memory != NULL);
    CHECK(SKY_Ground_Init(&ground, &limits, &shell, &cfg, &times, memory));
    SKY_Ground_SetSky(&ground, &sky);
    return memory;
}

/* Check a block of two chunks. @return status of that */
static uint32_t check_block(uint64_t *now_us)
{
    static SKY_GroundOp_t op;
    SKY_GroundOp_t       *ended = NULL;

    (void)memset(&op, 0, sizeof(op));
    op.kind        = SKY_GROUND_CHECK;
    op.deadline_ms = 1000;
    CHECK(SKY_Stripe_Cut(&op.facts.stripe, 200, 100, 0, 0));
    CHECK(SKY_Ground_Submit(&ground, *now_us, &op));
    for (uint32_t turn = 0; ended == NULL && turn < TURNS; ++turn)
    {
        const uint64_t due_us = SKY_Ground_Run(&ground, *now_us);

        ended   = SKY_Ground_Ended(&ground);
        *now_us = ended == NULL ? due_us : *now_us;
    }
    CHECK(ended == &op);
    return op.status;
}

/* Those that were silent twice are left alone for a while. Then nobody says a word, and the block is not known to be whole. */
static void test_a_block_about_which_nobody_is_asked_is_not_known_to_be_whole(void)
{
    void    *memory = begin();
    uint64_t now_us = START_US;
    uint32_t before;

    CHECK_EQ(check_block(&now_us), SKY_STATUS_UNANSWERED);
    CHECK_EQ(check_block(&now_us), SKY_STATUS_UNANSWERED);
    CHECK(sent > 0u);
    before = sent;
    CHECK_EQ(check_block(&now_us), SKY_STATUS_UNANSWERED);
    CHECK_EQ(sent, before);
    free(memory);
}

int main(void)
{
    RUN(test_a_block_about_which_nobody_is_asked_is_not_known_to_be_whole);
    return CHECK_RESULT();
}
