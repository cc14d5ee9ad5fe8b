/**
 * @file
 * KVC and the rotation schedule: its tables, its upload by command, and the handover that follows.
 */
#include "app_rig.h"
#include "kvc_eventids.h"
#include "sky_lib.h"

#define CHUNK_BYTES 1000u
#define ROWS        1400u /* two segments */

static rig_t               rig;
static KVC_ScheduleTable_t table[2];
static uint32_t            upload = 100;
static uint32_t            clock_set_s; /* how far the satellite's clock has been set on */

CFE_TIME_SysTime_t __real_CFE_TIME_GetTime(void);
CFE_TIME_SysTime_t __wrap_CFE_TIME_GetTime(void);

/* In place of the executive's, by the linker. */
CFE_TIME_SysTime_t __wrap_CFE_TIME_GetTime(void)
{
    CFE_TIME_SysTime_t time = __real_CFE_TIME_GetTime();

    time.Seconds += __atomic_load_n(&clock_set_s, __ATOMIC_RELAXED);
    return time;
}

static void set_clock_on(uint32_t seconds)
{
    __atomic_store_n(&clock_set_s, seconds, __ATOMIC_RELAXED);
    rig_command(KVC_WAKEUP_MID, 0, NULL, 0);
}

/* A schedule whose window goes to and fro between (2, 2) and its neighbour in the east, one row every @p row_ms. */
static void make_rows(KVC_ScheduleRow_t *rows, uint32_t count, uint32_t row_ms)
{
    for (uint32_t i = 0; i < count; ++i)
    {
        rows[i].TimeMs = i * row_ms;
        rows[i].Plane  = 2;
        rows[i].Slot   = 2 + (int32_t)(i % 2u);
    }
}

/* As tables, of which the epoch was @p age_s ago. */
static void make_tables(uint32_t total, uint32_t row_ms, uint32_t age_s)
{
    static KVC_ScheduleRow_t rows[2u * KVC_SEGMENT_ROWS];

    (void)memset(table, 0, sizeof(table));
    make_rows(rows, total, row_ms);
    for (uint32_t i = 0; i < total; ++i)
    {
        table[i / KVC_SEGMENT_ROWS].Row[i % KVC_SEGMENT_ROWS] = rows[i];
    }
    for (uint32_t k = 0; k < 2; ++k)
    {
        table[k].EpochS    = CFE_TIME_GetTime().Seconds - age_s;
        table[k].Planes    = 3;
        table[k].Slots     = 3;
        table[k].Layout    = SKY_LAYOUT_ROTATION;
        table[k].Servers   = 1;
        table[k].FirstRow  = k * KVC_SEGMENT_ROWS + 1u;
        table[k].RowCount  = k == 0 && total > KVC_SEGMENT_ROWS ? KVC_SEGMENT_ROWS : total - k * KVC_SEGMENT_ROWS;
        table[k].TotalRows = total;
        table[k].RowsCrc   = SKY_Crc32c(0, rows, total * sizeof(rows[0]));
    }
}

static void load(uint32_t segment)
{
    rig_table_load(segment == 0 ? "KVC.Schedule1" : "KVC.Schedule2", &table[segment], sizeof(table[segment]));
    rig_command(KVC_WAKEUP_MID, 0, NULL, 0); /* it need not wait for its turn */
}

static void switch_off(void)
{
    static const KVC_ScheduleTable_t none;

    rig_table_load("KVC.Schedule1", &none, sizeof(none));
    rig_command(KVC_WAKEUP_MID, 0, NULL, 0);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "no schedule");
}

/* ---- tables -------------------------------------------------------------------------------------------------------- */

static void test_nothing_moves_by_default(void)
{
    CHECK_EQ(rig_kvc_hk(&rig).Rows, 0);
    CHECK_EQ(rig_kvc_hk(&rig).Row, 0);
}

static void test_segments_that_agree_are_followed(void)
{
    make_tables(ROWS, 1000, 700);
    load(0);
    RIG_EVENT(&rig, "KVC", KVC_SEGMENT_INF_EID, "1400 rows waits for its segment KVC.Schedule2");
    CHECK_EQ(rig_kvc_hk(&rig).Rows, 0);
    load(1);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "1400 rows, 1399000 ms, centre (2, 2) to (2, 3)");
    CHECK_EQ(rig_kvc_hk(&rig).Rows, ROWS);
    CHECK(rig_kvc_hk(&rig).Row >= 701 && rig_kvc_hk(&rig).Row < 801);

    make_tables(ROWS, 500, 700); /* the first segment of another one: the one before stays */
    load(0);
    RIG_EVENT(&rig, "KVC", KVC_SEGMENT_INF_EID, "Schedule2");
    CHECK(rig_kvc_hk(&rig).Row < 801);
    table[0].RowsCrc ^= 1u; /* agree, but are not what they say */
    table[1].RowsCrc ^= 1u;
    load(0);
    RIG_EVENT(&rig, "KVC", KVC_SEGMENT_INF_EID, "Schedule2");
    load(1);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_ERR_EID, "RowsCrc says");
    CHECK(rig_kvc_hk(&rig).Row < 801);

    make_tables(ROWS, 1000, 700);
    table[1].Row[0].TimeMs = 5; /* each segment is good, but not together */
    for (uint32_t k = 0; k < 2; ++k)
    {
        const uint32_t crc = SKY_Crc32c(0, table[0].Row, sizeof(table[0].Row));

        table[k].RowsCrc = SKY_Crc32c(crc, table[1].Row, table[1].RowCount * sizeof(table[1].Row[0]));
    }
    load(1);
    RIG_EVENT(&rig, "KVC", KVC_SEGMENT_INF_EID, "Schedule2");
    load(0);
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "TimeMs of row 1363 is 5, allowed more than 1361000");
    CHECK_EQ(rig_kvc_hk(&rig).Rows, ROWS);
    switch_off();
    CHECK_EQ(rig_kvc_hk(&rig).Rows, 0);
}

static void test_what_tables_must_not_say(void)
{
    static const char *const words[] = {"RowCount is 1, allowed 0 .. 0",
                                        "EpochMs is 1000, allowed 0 .. 999",
                                        "Planes is 0, allowed 1 .. 65535",
                                        "Slots is 65536, allowed 1 .. 65535",
                                        "Planes is 4, allowed 3 .. 3",
                                        "Slots is 4, allowed 3 .. 3",
                                        "Layout is 5, allowed 1 .. 4",
                                        "TotalRows is 5449, allowed 0 .. 5448",
                                        "FirstRow is 0, allowed 1 .. 10",
                                        "FirstRow is 2, allowed 1 .. 1",
                                        "Servers is 10, allowed 1 .. 9",
                                        "RowCount is 9, allowed 10 .. 10",
                                        "TimeMs of row 1 is 1, allowed 0",
                                        "TimeMs of row 4 is 2000, allowed more than 2000",
                                        "centre of row 3 is (4, 2), allowed are steps of 1 planes, 1 slots",
                                        "centre of row 3 is (2, 0), allowed are steps",
                                        "centre of row 1 is (2, 1073741825)",
                                        "centre of row 1 is (-1073741825, 2)",
                                        "TimeMs of row 1364 is 7, allowed more than 4294967295",
                                        "Clock is 2, allowed 0 .. 1"};

    for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i)
    {
        make_tables(10, 1000, 0);
        table[0].TotalRows = i == 0 ? 0 : i == 7 ? 5449 : 10;
        table[0].RowCount  = i == 0 ? 1 : i == 11 ? 9 : 10;
        table[0].EpochMs   = i == 1 ? 1000 : 0;
        table[0].Clock     = i == 19 ? 2 : 0;
        table[0].Planes    = i == 2 ? 0 : i == 4 ? 4 : 3;
        table[0].Slots     = i == 3 ? 65536 : i == 5 ? 4 : 3;
        table[0].Layout    = i == 6 ? 5 : 1;
        table[0].FirstRow  = i == 8 ? 0 : i == 9 ? 2 : 1;
        table[0].Servers   = i == 10 ? 10 : 9;
        table[0].Row[0].TimeMs += i == 12 ? 1u : 0u;
        table[0].Row[3].TimeMs -= i == 13 ? 1000u : 0u;
        table[0].Row[2].Plane += i == 14 ? 2 : 0;
        table[0].Row[2].Slot -= i == 15 ? 2 : 0;
        table[0].Row[0].Slot  = i == 16 ? SKY_PLACEMENT_CELL_MAX + 1 : 2;
        table[0].Row[0].Plane = i == 17 ? -SKY_PLACEMENT_CELL_MAX - 1 : 2;
        if (i == 18)
        {
            table[0].FirstRow      = KVC_SEGMENT_ROWS + 1; /* whose first row's time is not known to be the first */
            table[0].TotalRows     = KVC_SEGMENT_ROWS + 10;
            table[0].Row[0].TimeMs = UINT32_MAX;
            table[0].Row[1].TimeMs = 7;
        }
        load(0);
        RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, words[i]);
    }
    CHECK_EQ(rig_kvc_hk(&rig).Rows, 0);
}

/* ---- upload -------------------------------------------------------------------------------------------------------- */

static void send_begin(uint32_t id, uint32_t total, int32_t age_ms)
{
    const KVC_ScheduleBegin_Payload_t begin = {id, age_ms, 3, 3, SKY_LAYOUT_ROTATION, 1, total};

    rig_command(KVC_CMD_MID, KVC_SCHEDULE_BEGIN_CC, &begin, sizeof(begin));
}

static void send_rows(uint32_t id, uint32_t first, uint32_t count, uint32_t row_ms)
{
    static KVC_ScheduleRow_t   rows[ROWS];
    KVC_ScheduleRows_Payload_t piece = {id, first, count, {{0, 0, 0}}};

    make_rows(rows, ROWS, row_ms);
    for (uint32_t i = 0; i < count && i < KVC_COMMAND_ROWS && first + i <= ROWS && first > 0; ++i)
    {
        piece.Row[i] = rows[first - 1u + i];
    }
    rig_command(KVC_CMD_MID, KVC_SCHEDULE_ROWS_CC, &piece, sizeof(piece));
}

static void send_commit(uint32_t id, uint32_t total, uint32_t row_ms)
{
    static KVC_ScheduleRow_t           rows[ROWS];
    const KVC_ScheduleCommit_Payload_t commit = {id,
                                                 (make_rows(rows, total, row_ms), SKY_Crc32c(0, rows, total * sizeof(rows[0])))};

    rig_command(KVC_CMD_MID, KVC_SCHEDULE_COMMIT_CC, &commit, sizeof(commit));
}

static void test_pieces_in_any_order(void)
{
    const uint32_t pieces = (ROWS + KVC_COMMAND_ROWS - 1u) / KVC_COMMAND_ROWS;
    uint32_t       errors = rig_kvc_hk(&rig).CommandErrorCounter;

    ++upload;
    send_begin(upload, ROWS, 700000);
    for (uint32_t i = pieces; i-- > 0;)
    {
        const uint32_t first = i * KVC_COMMAND_ROWS + 1u;
        const uint32_t count = ROWS - first + 1u < KVC_COMMAND_ROWS ? ROWS - first + 1u : KVC_COMMAND_ROWS;

        if (i == 3)
        {
            send_begin(upload, ROWS, 100000); /* once more, late: moves nothing */
            send_commit(upload, ROWS, 1000);  /* too soon */
            RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "some are missing");
        }
        send_rows(upload, first, count, 1000);
        if (i % 3 == 0)
        {
            send_rows(upload, first, count, 1000);
        }
        (void)rig_kvc_hk(&rig); /* a pipe is 16 deep */
    }
    CHECK_EQ(rig_kvc_hk(&rig).Rows, 0);
    send_commit(upload, ROWS, 1000);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "1400 rows");
    send_commit(upload, ROWS, 1000);
    send_rows(upload, 1, 10, 500); /* committed: nothing changes any more */
    CHECK_EQ(rig_kvc_hk(&rig).Rows, ROWS);
    CHECK(rig_kvc_hk(&rig).Row >= 701 && rig_kvc_hk(&rig).Row < 801);
    CHECK_EQ(rig_kvc_hk(&rig).CommandErrorCounter, errors + 1u);
}

static void test_pieces_that_are_refused(void)
{
    send_rows(1, 1, 1, 1000);
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "SCHEDULE_ROWS: no upload 1 has begun");
    send_commit(1, 1, 1000);
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "SCHEDULE_COMMIT: no upload 1 has begun");
    send_begin(++upload, 5449, 0);
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "TotalRows is 5449, allowed 0 .. 5448");
    send_begin(++upload, 10, 0);
    send_rows(upload, 1, 0, 1000);
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "0 rows from 1, allowed 1 .. 83 within 1 .. 10");
    send_rows(upload, 1, KVC_COMMAND_ROWS + 1u, 1000);
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "84 rows from 1");
    send_rows(upload, 0, 1, 1000);
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "1 rows from 0");
    send_rows(upload, 11, 1, 1000);
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "1 rows from 11");
    send_rows(upload, 10, 2, 1000);
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "2 rows from 10");
    send_rows(upload, 1, 10, 0); /* all at one time: table services will not have them */
    send_commit(upload, 10, 0);
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "TimeMs of row 2 is 0");
    RIG_EVENT(&rig, "KVC", KVC_UPLOAD_ERR_EID, "KVC.Schedule1 cannot be loaded");
    CHECK_EQ(rig_kvc_hk(&rig).Rows, ROWS); /* the one before */

    send_begin(++upload, 0, 0);
    send_commit(upload, 0, 0);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "no schedule");
    CHECK_EQ(rig_kvc_hk(&rig).Rows, 0);
}

/* ---- clocks -------------------------------------------------------------------------------------------------------- */

/* Rows of 10 s: what passes while a test runs is no row more than one. */
static bool row_is(uint32_t row)
{
    const uint32_t found = rig_kvc_hk(&rig).Row;

    return found == row || found == row + 1u;
}

static void follow_upload(int32_t age_ms)
{
    send_begin(++upload, 83, age_ms);
    send_rows(upload, 1, 83, 10000);
    send_commit(upload, 83, 10000);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "83 rows");
}

static void test_tables_follow_the_clock(void)
{
    make_tables(83, 10000, 100);
    load(0);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "83 rows");
    CHECK(row_is(11));
    set_clock_on(500);
    CHECK(row_is(61));
    set_clock_on(0);
    CHECK(row_is(11));
}

static void test_uploads_stay_when_the_clock_is_set(void)
{
    KVC_LimitsTable_t limits = {.StoreBytes = 128 * 1024, .SlotBytes = 8192, .Credit = 3, .PartLifetimeMs = 1000};

    follow_upload(100000);
    CHECK(row_is(11));
    set_clock_on(500);
    CHECK(row_is(11));
    rig_table_load("KVC.Limits", &limits, sizeof(limits)); /* starts the service anew */
    RIG_EVENT(&rig, "KVC", KVC_STORE_INF_EID, "slots of 8192 bytes");
    CHECK(row_is(11));
    send_begin(++upload, 83, 300000); /* the clock is set in the middle of an upload */
    send_rows(upload, 1, 83, 10000);
    set_clock_on(0);
    send_commit(upload, 83, 10000);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "83 rows");
    CHECK(row_is(31));
    test_tables_follow_the_clock(); /* in its place */
}

static void test_epochs_that_the_monotonic_clock_has_not(void)
{
    follow_upload(INT32_MAX); /* long before this machine started, or not */
    CHECK_EQ(rig_kvc_hk(&rig).Row, 83);
    follow_upload(INT32_MIN);
    CHECK_EQ(rig_kvc_hk(&rig).Row, 1);
    make_tables(83, 10000, 0);
    table[0].Clock  = KVC_CLOCK_MONOTONIC; /* 100 s ago */
    table[0].EpochS = (uint32_t)(SKY_LIB_NowUs() / 1000000u) - 100u;
    load(0);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "83 rows");
    CHECK(row_is(11));
    switch_off();
}

/* ---- handover ------------------------------------------------------------------------------------------------------ */

static void put_chunk(void)
{
    static const uint8_t data[CHUNK_BYTES];
    SKY_Packet_t         pkt = rig_request(&rig, SKY_APID_KVC, SKY_OP_PUT);

    pkt.key[0]      = 7;
    pkt.chunk_total = 1;
    pkt.block_len   = CHUNK_BYTES;
    pkt.chunk_len   = CHUNK_BYTES;
    pkt.payload     = data;
    pkt.length      = CHUNK_BYTES;
    pkt.chunk_crc   = SKY_Crc32c(0, data, CHUNK_BYTES);
    rig_send(&rig, rig.ground, &pkt);
}

/* What comes over the socket may be later than a command that is given after it */
static void wait_until_held(uint64_t chunks)
{
    for (uint32_t i = 0; i < RIG_LIMIT_MS / RIG_POLL_MS && rig_kvc_hk(&rig).Chunks < chunks; ++i)
    {
        (void)poll(NULL, 0, RIG_POLL_MS);
    }
    CHECK_EQ(rig_kvc_hk(&rig).Chunks, chunks);
}

/* The neighbour takes what it is sent, and says so. What asks for chunks that came before is a question asked twice, as its
   answer was late. @return chunks that came until then */
static uint32_t take_in(int neighbour)
{
    static uint8_t payload[SKY_CHUNKSET_MAX_BYTES];
    uint32_t       chunks = 0;
    SKY_Packet_t   pkt, answer;

    while (rig_receive(&rig, neighbour, RIG_LIMIT_MS, &pkt))
    {
        chunks += pkt.op == SKY_OP_PUT && pkt.is_request ? 1u : 0u;
        if (pkt.op == SKY_OP_HAS && pkt.is_request)
        {
            SKY_Packet_Reply(&pkt, pkt.dst, SKY_STATUS_OK, &answer);
            (void)memcpy(payload, pkt.payload, pkt.length); /* all of them */
            answer.payload   = payload;
            answer.length    = pkt.length;
            answer.credit    = 20;
            answer.hop_limit = SKY_LIMIT_HOP_LIMIT;
            rig_send(&rig, neighbour, &answer);
            if (chunks > 0)
            {
                return chunks;
            }
        }
    }
    return 0;
}

static void wait_until_moved(uint64_t chunks)
{
    for (uint32_t i = 0; i < RIG_LIMIT_MS / RIG_POLL_MS && rig_kvc_hk(&rig).MigratedOut < chunks; ++i)
    {
        (void)poll(NULL, 0, RIG_POLL_MS);
    }
    CHECK_EQ(rig_kvc_hk(&rig).MigratedOut, chunks);
    CHECK_EQ(rig_kvc_hk(&rig).Chunks, 0);
}

static void test_handover_by_schedule(void)
{
    uint64_t stats[SKY_STATS_KVC_COUNT];

    put_chunk();
    send_begin(++upload, 2, 1500); /* its second row holds already: the window is over the neighbour in the east */
    send_rows(upload, 1, 2, 1000);
    send_commit(upload, 2, 1000);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "2 rows, 1000 ms");
    CHECK_EQ(take_in(rig.neighbour[SKY_LINK_EAST]), 1);
    wait_until_moved(1);
    CHECK_EQ(rig_kvc_hk(&rig).Handovers, 1);
    rig_stats(&rig, SKY_APID_KVC, stats, SKY_STATS_KVC_COUNT);
    CHECK_EQ(stats[SKY_STATS_KVC_ROW], 2);
    CHECK_EQ(stats[SKY_STATS_KVC_ROWS], 2);
    CHECK_EQ(stats[SKY_STATS_KVC_HANDOVERS], 1);
}

static void test_schedule_survives_a_new_store(void)
{
    KVC_LimitsTable_t limits = {.StoreBytes = 256 * 1024, .SlotBytes = 8192, .Credit = 3, .PartLifetimeMs = 1000};

    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_STORE_INF_EID, "slots of 8192 bytes");
    CHECK_EQ(rig_kvc_hk(&rig).Rows, 2);
}

static void test_handover_by_command(void)
{
    KVC_Handover_Payload_t target = {2, 1};

    put_chunk();
    rig_command(KVC_CMD_MID, KVC_HANDOVER_CC, &target, sizeof(target));
    RIG_EVENT(&rig, "KVC", KVC_HANDOVER_ERR_EID, "no handover to (2, 1): refused, a schedule is followed");
    CHECK_EQ(take_in(rig.neighbour[SKY_LINK_EAST]), 1); /* what came late */
    wait_until_moved(1);
    switch_off();
    rig_command(KVC_CMD_MID, KVC_HANDOVER_CC, &target, sizeof(target));
    RIG_EVENT(&rig, "KVC", KVC_HANDOVER_ERR_EID, "not_found");
    put_chunk();
    wait_until_held(1);
    target.Slot = 4;
    rig_command(KVC_CMD_MID, KVC_HANDOVER_CC, &target, sizeof(target));
    RIG_EVENT(&rig, "KVC", KVC_HANDOVER_ERR_EID, "no handover to (2, 4): bad_address");
    target.Slot = 1;
    rig_command(KVC_CMD_MID, KVC_HANDOVER_CC, &target, sizeof(target));
    RIG_EVENT(&rig, "KVC", KVC_HANDOVER_INF_EID, "everything goes to (2, 1)");
    CHECK_EQ(take_in(rig.neighbour[SKY_LINK_WEST]), 1);
    wait_until_moved(2);
}

/* Wait for the event that a late handover is done. @return events about late ones until then */
static uint32_t late_events_until_done(void)
{
    const CFE_EVS_LongEventTlm_t *event;
    uint32_t                      count = 0;

    while ((event = (const void *)rig_message(&rig, CFE_EVS_LONG_EVENT_MSG_MID)) != NULL &&
           strstr(event->Payload.Message, "late handover done after") == NULL)
    {
        count += event->Payload.PacketID.EventID == KVC_LATE_ERR_EID ? 1u : 0u;
    }
    CHECK(event != NULL && event->Payload.PacketID.EventID == KVC_DONE_INF_EID);
    return count;
}

/* The neighbour that is to take a chunk is silent. One event says that the handover takes too long, another one that it is done. */
static void test_a_late_handover_is_told(void)
{
    KVC_LimitsTable_t limits = {
        .StoreBytes = 256 * 1024, .SlotBytes = 8192, .Credit = 3, .PartLifetimeMs = 1000, .HandoverMs = 100};

    RIG_EVENT(&rig, "KVC", KVC_STORE_INF_EID, "slots of 6144 bytes"); /* as it started */
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    rig_command(KVC_WAKEUP_MID, 0, NULL, 0);
    RIG_EVENT(&rig, "KVC", KVC_STORE_INF_EID, "slots of 8192 bytes");
    put_chunk();
    wait_until_held(1);
    make_tables(1, 1000, 0);
    table[0].Row[0].Slot = 3;
    table[0].RowsCrc     = SKY_Crc32c(0, table[0].Row, sizeof(table[0].Row[0]));
    load(0);
    RIG_EVENT(&rig, "KVC", KVC_SCHEDULE_INF_EID, "1 rows");
    RIG_EVENT(&rig, "KVC", KVC_LATE_ERR_EID, "handover late: 1 chunks left after");
    for (uint32_t i = 0; i < 3; ++i)
    {
        rig_command(KVC_WAKEUP_MID, 0, NULL, 0);
    }
    CHECK_EQ(take_in(rig.neighbour[SKY_LINK_EAST]), 1);
    CHECK_EQ(late_events_until_done(), 0); /* it was told once; whoever waits for housekeeping first passes the event over */
    wait_until_moved(1);
    switch_off();
}

int main(void)
{
    if (rig_open(&rig, NULL))
    {
        RUN(test_nothing_moves_by_default);
        RUN(test_segments_that_agree_are_followed);
        RUN(test_what_tables_must_not_say);
        rig_close(&rig);
    }
    if (rig_open(&rig, NULL)) /* anew: EVS lets no app send more than so many events in a row */
    {
        RUN(test_pieces_in_any_order);
        RUN(test_pieces_that_are_refused);
        rig_close(&rig);
    }
    if (rig_open(&rig, NULL))
    {
        RUN(test_tables_follow_the_clock);
        RUN(test_uploads_stay_when_the_clock_is_set);
        RUN(test_epochs_that_the_monotonic_clock_has_not);
        RUN(test_handover_by_schedule);
        RUN(test_schedule_survives_a_new_store);
        RUN(test_handover_by_command);
        rig_close(&rig);
    }
    if (rig_open(&rig, NULL))
    {
        RUN(test_a_late_handover_is_told);
        rig_close(&rig);
    }
    return CHECK_RESULT();
}
