/**
 * @file
 * sky_service_scrub.c: questions and what is made of their answers, one by one.
 */
#include "scrub_rig.h"

static SKY_Packet_t question;
static uint8_t      question_bytes[600];

/* Let one satellite look until it asks about the block; the question is caught. Nobody else does anything. */
static node_t *catch_question(void)
{
    node_t  *node = node_at(server(4));
    uint64_t next_us;

    for (uint32_t i = 0; i < 1000; ++i)
    {
        fleet_count = 0;
        now_us += STEP_US;
        SKY_Service_Poll(&node->svc, now_us, &next_us);
        node_pull(node);
        if (fleet_count == 1)
        {
            const flying_t *flying = &fleet[fleet_first];

            (void)memcpy(question_bytes, flying->bytes, flying->len);
            CHECK_EQ(SKY_Packet_Decode(question_bytes, flying->len, &question), SKY_STATUS_OK);
            CHECK(question.is_request && question.op == SKY_OP_HAS && SKY_Addr_Equal(question.dst, server(5)));
            break;
        }
    }
    CHECK_EQ(fleet_count, 1);
    fleet_count = 0;
    return node;
}

static uint64_t suspected(void)
{
    const node_t   *node = node_at(server(4));
    SKY_BlockInfo_t info = {.suspect_us = 0};
    uint8_t         key[SKY_KEY_BYTES];

    fx_key(key, block.number);
    (void)SKY_Store_Block(&node->store, SKY_Store_Find(&node->store, 0, key), &info);
    return info.suspect_us;
}

static void answer(SKY_Status_t status, SKY_Packet_t *pkt)
{
    SKY_Packet_Reply(&question, question.dst, status, pkt);
    pkt->length = 0;
    pkt->epoch  = SKY_Schedule_RowAt(&schedule, now_us);
}

static void test_only_the_answer_counts(void)
{
    SKY_Packet_t pkt;
    node_t      *node;

    open_filled(PERIOD_MS, false);
    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    ++pkt.request_id;
    node_serve(node, &pkt);
    --pkt.request_id;
    ++pkt.tenant;
    node_serve(node, &pkt);
    --pkt.tenant;
    ++pkt.key[0];
    node_serve(node, &pkt);
    --pkt.key[0];
    CHECK_EQ(node->svc.core.counters.unsolicited, 3);
    CHECK_EQ(suspected(), 0);
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), now_us);
    node_serve(node, &pkt); /* once */
    CHECK_EQ(node->svc.core.counters.unsolicited, 4);

    node = catch_question();
    answer(SKY_STATUS_OK, &pkt); /* whole */
    pkt.payload = question.payload;
    pkt.length  = question.length;
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);
    CHECK_EQ(node->svc.core.counters.unsolicited, 4);
}

/* The next server holds another version or content: its share is none of this block. */
static void test_a_share_of_another_version(void)
{
    for (uint32_t kind = 0; kind < 2; ++kind)
    {
        SKY_Packet_t pkt;
        node_t      *node;

        open_filled(PERIOD_MS, false);
        node = catch_question();
        answer(SKY_STATUS_OK, &pkt);
        pkt.payload       = question.payload;
        pkt.length        = question.length;
        pkt.block_version = kind == 0 ? 1 : 0;
        pkt.content       = kind == 1 ? 1 : 0;
        node_serve(node, &pkt);
        CHECK_EQ(suspected(), now_us);
    }
}

static void test_answers_that_say_nothing(void)
{
    uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];
    SKY_ChunkSet_t set;
    SKY_Packet_t   pkt;
    node_t        *node;

    open_filled(PERIOD_MS, false);
    node = catch_question();
    answer(SKY_STATUS_UNREACHABLE, &pkt); /* from the way */
    pkt.src = server(3);
    node_serve(node, &pkt);
    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    pkt.op = SKY_OP_GET;
    node_serve(node, &pkt);
    node = catch_question();
    answer(SKY_STATUS_OK, &pkt); /* not even a set */
    node_serve(node, &pkt);
    node = catch_question();
    CHECK_EQ(SKY_ChunkSet_Decode(&question, &set), SKY_STATUS_OK);
    (void)memset(set.map, 0, sizeof(set.map));
    answer(SKY_STATUS_OK, &pkt); /* it knows the block, and denies every chunk: it is moving them */
    pkt.payload = payload;
    pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);

    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    ++pkt.epoch; /* its share has gone on already */
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);

    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    now_us = schedule.epoch_us + 100000000u; /* of the row before */
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);

    node = catch_question();
    SKY_Store_RaiseEpoch(&node->store, SKY_Store_Find(&node->store, 0, question.key), 9);
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);

    open_filled(PERIOD_MS, false);
    node = catch_question();
    sky_put(server(4), &block, 4);
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(suspected(), 0);

    now_us += PERIOD_US;
    node = catch_question();
    CHECK(SKY_Store_Purge(&node->store, 0, question.key, NULL) > 0);
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(node->svc.core.counters.unsolicited, 0);
    CHECK_EQ(node->svc.core.counters.scrubbed, 0);
}

/* This satellite has no link towards the one that it asks: it goes on with the next block when that is due, and does not wait. */
static void test_ends_when_there_is_no_way_from_here(void)
{
    SKY_Packet_t pkt;
    node_t      *node;
    uint64_t     next_us;

    open_filled(200, false);
    node = catch_question();
    SKY_Service_Unreachable(&node->svc, server(6)); /* another one's way */
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    CHECK(node->svc.scrub.next_us > now_us + 900000u);
    SKY_Service_Unreachable(&node->svc, question.dst);
    SKY_Service_Poll(&node->svc, now_us, &next_us);
    CHECK(node->svc.scrub.next_us < now_us + 210000u);
    answer(SKY_STATUS_NOT_FOUND, &pkt); /* to a question that has ended */
    node_serve(node, &pkt);
    CHECK_EQ(node->svc.core.counters.unsolicited, 1);
    CHECK_EQ(suspected(), 0);
}

static void test_two_answers_are_a_period_apart(void)
{
    SKY_Packet_t pkt;
    node_t      *node;

    open_filled(PERIOD_MS, true);
    node                        = node_at(server(4));
    node->svc.survey.row        = 1; /* it knows that nothing is on its way */
    node->svc.survey.settled_us = now_us;
    node                        = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    node->svc.core.cfg.scrub_period_ms = 10u * PERIOD_MS; /* but the next look is due in the old one */
    node                               = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(held_at(server(4), &block), 2);
    node->svc.core.cfg.scrub_period_ms = PERIOD_MS;
    now_us += 10u * PERIOD_US;
    node = catch_question();
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    SKY_Service_Begin(&node->svc, now_us, &pkt);
    CHECK_EQ(held_at(server(4), &block), 0);
    CHECK_EQ(node->svc.core.counters.scrubbed, 2);
    node_pull(node);
    CHECK_EQ(fleet_count, 4); /* and all shall know */
    fleet_count = 0;
}

static void test_an_answer_after_the_schedule_has_gone(void)
{
    SKY_Packet_t pkt;
    node_t      *node;

    open_filled(PERIOD_MS, false);
    node = catch_question();
    CHECK(SKY_Service_SetSchedule(&node->svc, NULL));
    answer(SKY_STATUS_NOT_FOUND, &pkt);
    node_serve(node, &pkt);
    CHECK_EQ(node->svc.core.counters.unsolicited, 1);
    CHECK_EQ(suspected(), 0);
}

/* A share with more chunks than a question can name. */
static void test_large_shares(void)
{
    const fx_block_t large  = {9, 0, 2u * SKY_LIMIT_CHUNK_SET + 3u, 2, 2u * (2u * SKY_LIMIT_CHUNK_SET + 3u)};
    node_t          *node   = node_at(centre);
    SKY_Schedule_t   narrow = {.count = 0};
    SKY_ChunkSet_t   set;

    open_filled(PERIOD_MS, false);
    CHECK(SKY_Schedule_Init(&narrow, &node->svc.core.cfg.torus, SKY_LAYOUT_ROTATION, 2, rows, 1, now_us));
    const SKY_Addr_t first = SKY_Schedule_Server(&narrow, 1, 0);
    node                   = node_at(first);
    node_open(node, first, large.chunk_total, false);
    CHECK(SKY_Service_SetSchedule(&node->svc, &narrow));
    for (uint32_t id = 0; id < large.chunk_total; id += 2)
    {
        sky_put(first, &large, id);
    }
    now_us += PERIOD_US;
    for (uint32_t i = 0; i < 1000 && fleet_count == 0; ++i)
    {
        uint64_t next_us;

        now_us += STEP_US;
        SKY_Service_Poll(&node->svc, now_us, &next_us);
        node_pull(node);
    }
    CHECK_EQ(fleet_count, 1);
    CHECK_EQ(SKY_Packet_Decode(fleet[fleet_first].bytes, fleet[fleet_first].len, &question), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Decode(&question, &set), SKY_STATUS_OK);
    CHECK_EQ(SKY_ChunkSet_Size(&set), SKY_LIMIT_CHUNK_SET);
    CHECK_EQ(set.base, 1);
    CHECK_EQ(set.stride, 2);
    fleet_count = 0;
}

int main(void)
{
    RUN(test_only_the_answer_counts);
    RUN(test_a_share_of_another_version);
    RUN(test_answers_that_say_nothing);
    RUN(test_ends_when_there_is_no_way_from_here);
    RUN(test_two_answers_are_a_period_apart);
    RUN(test_an_answer_after_the_schedule_has_gone);
    RUN(test_large_shares);
    sky_close();
    return CHECK_RESULT();
}
