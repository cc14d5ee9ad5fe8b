/**
 * @file
 * KVC as an app: commands, housekeeping, table, and its service through the socket.
 */
#include "app_rig.h"
#include "kvc_eventids.h"

#define CHUNK_BYTES 6000u
#define CHUNKS      5u
#define BLOCK_BYTES (CHUNKS * CHUNK_BYTES - 17u)

static rig_t   rig;
static uint8_t block[CHUNKS * CHUNK_BYTES];

static uint32_t chunk_len(uint32_t id)
{
    return id + 1 < CHUNKS ? CHUNK_BYTES : BLOCK_BYTES - (CHUNKS - 1) * CHUNK_BYTES;
}

static SKY_Packet_t block_request(uint8_t op, uint8_t key)
{
    SKY_Packet_t pkt = rig_request(&rig, SKY_APID_KVC, op);

    (void)memset(pkt.key, key, sizeof(pkt.key));
    pkt.chunk_total = CHUNKS;
    pkt.block_len   = BLOCK_BYTES;
    pkt.chunk_len   = CHUNK_BYTES;
    return pkt;
}

static void put_block(uint8_t key)
{
    for (uint32_t id = 0; id < CHUNKS; ++id)
    {
        SKY_Packet_t pkt = block_request(SKY_OP_PUT, key);

        pkt.chunk_id  = id;
        pkt.payload   = &block[id * CHUNK_BYTES];
        pkt.length    = chunk_len(id);
        pkt.chunk_len = chunk_len(id);
        pkt.chunk_crc = SKY_Crc32c(0, pkt.payload, pkt.length);
        rig_send(&rig, rig.ground, &pkt);
    }
}

/** Ask for all chunks. @return chunks that came whole, or minus the status if there was none */
static int get_block(uint8_t key, uint16_t credit)
{
    SKY_Packet_t   pkt = block_request(SKY_OP_GET, key);
    SKY_Packet_t   answer;
    SKY_ChunkSet_t set;
    uint8_t        payload[SKY_CHUNKSET_MAX_BYTES];
    int            whole = 0;

    CHECK(SKY_ChunkSet_Init(&set, 0, 1, CHUNKS));
    for (uint32_t id = 0; id < CHUNKS; ++id)
    {
        SKY_ChunkSet_Add(&set, id);
    }
    pkt.payload = payload;
    pkt.length  = (uint32_t)SKY_ChunkSet_Encode(&set, payload, sizeof(payload));
    pkt.credit  = credit;
    rig_send(&rig, rig.ground, &pkt);
    while (rig_receive(&rig, rig.ground, RIG_LIMIT_MS, &answer))
    {
        if (answer.status != SKY_STATUS_OK)
        {
            return -(int)answer.status;
        }
        CHECK(answer.chunk_id < CHUNKS);
        CHECK_EQ(answer.length, chunk_len(answer.chunk_id));
        whole += memcmp(answer.payload, &block[answer.chunk_id * CHUNK_BYTES], answer.length) == 0 ? 1 : 0;
        if ((answer.flags & SKY_FLAG_LAST) != 0)
        {
            return whole;
        }
    }
    return -255;
}

static void test_put_get_and_housekeeping(void)
{
    KVC_HkTlm_Payload_t hk;

    put_block(1);
    CHECK_EQ(get_block(1, CHUNKS), CHUNKS);
    CHECK_EQ(get_block(1, 2), 2); /* a burst is no larger than the credit */
    CHECK_EQ(get_block(2, CHUNKS), -(int)SKY_STATUS_NOT_FOUND);
    hk = rig_kvc_hk(&rig);
    CHECK_EQ(hk.Serving, 1);
    CHECK_EQ(hk.SlotBytes, 6144);
    CHECK_EQ(hk.UsedBytes, (CHUNKS + 1u) * 6144u); /* and a slot for entries of blocks */
    CHECK_EQ(hk.Chunks, CHUNKS);
    CHECK_EQ(hk.Blocks, 1);
    CHECK_EQ(hk.Bytes, BLOCK_BYTES);
    CHECK_EQ(hk.Puts, CHUNKS);
    CHECK(hk.StoreBytes > 100 * 6144u && hk.StoreBytes <= 1024 * 1024);
}

static void test_bad_chunk_is_refused_counted_and_told_once(void)
{
    SKY_Packet_t pkt = block_request(SKY_OP_PUT, 9);
    SKY_Packet_t answer;

    pkt.payload   = block;
    pkt.length    = CHUNK_BYTES;
    pkt.chunk_crc = 1 ^ SKY_Crc32c(0, pkt.payload, pkt.length);
    CHECK_EQ(rig_ask(&rig, &pkt, &answer), SKY_STATUS_BAD_CRC);
    ++pkt.request_id;
    CHECK_EQ(rig_ask(&rig, &pkt, &answer), SKY_STATUS_BAD_CRC);
    RIG_EVENT(&rig, "KVC", KVC_REFUSED_ERR_EID, "refused: bad_crc");
    CHECK_EQ(rig_kvc_hk(&rig).Errors, 2);
}

static void test_commands(void)
{
    static const uint8_t     excess = 0;
    KVC_PurgeBlock_Payload_t purge;
    KVC_HkTlm_Payload_t      hk;

    rig_command(KVC_CMD_MID, KVC_NOOP_CC, NULL, 0);
    RIG_EVENT(&rig, "KVC", KVC_NOOP_INF_EID, "Version");
    rig_command(KVC_CMD_MID, KVC_NOOP_CC, &excess, 1);
    RIG_EVENT(&rig, "KVC", KVC_LEN_ERR_EID, "9 bytes, not 8");
    rig_command(KVC_CMD_MID, 99, NULL, 0);
    RIG_EVENT(&rig, "KVC", KVC_CC_ERR_EID, "99");
    rig_command(KVC_SEND_HK_MID, 0, &excess, 1);
    RIG_EVENT(&rig, "KVC", KVC_LEN_ERR_EID, "9 bytes");

    put_block(1);
    put_block(3);
    CHECK_EQ(get_block(3, CHUNKS), CHUNKS);
    (void)memset(&purge, 0, sizeof(purge));
    (void)memset(purge.Key, 3, sizeof(purge.Key));
    rig_command(KVC_CMD_MID, KVC_PURGE_BLOCK_CC, &purge, sizeof(purge));
    RIG_EVENT(&rig, "KVC", KVC_PURGE_INF_EID, "5 chunks");
    CHECK_EQ(get_block(3, CHUNKS), -(int)SKY_STATUS_NOT_FOUND);
    CHECK_EQ(get_block(1, CHUNKS), CHUNKS);

    hk = rig_kvc_hk(&rig);
    CHECK_EQ(hk.CommandCounter, 2);
    CHECK_EQ(hk.CommandErrorCounter, 3);
    rig_command(KVC_CMD_MID, KVC_CLEAR_STORE_CC, NULL, 0);
    RIG_EVENT(&rig, "KVC", KVC_CLEAR_INF_EID, "cleared");
    CHECK_EQ(get_block(1, CHUNKS), -(int)SKY_STATUS_NOT_FOUND);
    rig_command(KVC_CMD_MID, KVC_RESET_COUNTERS_CC, NULL, 0);
    RIG_EVENT(&rig, "KVC", KVC_RESET_INF_EID, "reset");
    hk = rig_kvc_hk(&rig);
    CHECK_EQ(hk.CommandCounter, 0);
    CHECK_EQ(hk.CommandErrorCounter, 0);
    CHECK_EQ(hk.Puts, 0);
    CHECK_EQ(hk.UsedBytes, 0);
}

static void test_limits_table(void)
{
    KVC_LimitsTable_t limits = {.StoreBytes = 256 * 1024, .SlotBytes = 8192, .Credit = 3, .PartLifetimeMs = 1000};
    KVC_LimitsTable_t good;
    uint64_t          puts;

    put_block(4);
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_STORE_INF_EID, "slots of 8192 bytes");
    CHECK_EQ(get_block(4, CHUNKS), -(int)SKY_STATUS_NOT_FOUND); /* a new cut empties the store */
    put_block(4);
    CHECK_EQ(get_block(4, CHUNKS), 3); /* the table's credit */
    CHECK_EQ(rig_kvc_hk(&rig).SlotBytes, 8192);

    puts          = rig_kvc_hk(&rig).Puts;
    limits.Credit = 4; /* the same cut: counters and chunks stay */
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_STORE_INF_EID, "slots of 8192 bytes");
    CHECK_EQ(get_block(4, CHUNKS), 4);
    CHECK_EQ(rig_kvc_hk(&rig).Puts, puts);
    CHECK(puts >= CHUNKS);

    good             = limits;
    limits.SlotBytes = SKY_LIMIT_CHUNK_BYTES + 1;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "SlotBytes is 61441, allowed 1 .. 61440");
    limits        = good;
    limits.Credit = 0;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "Credit is 0");
    limits                = good;
    limits.PartLifetimeMs = 0;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "PartLifetimeMs is 0");
    limits                      = good;
    limits.MigrateAllFromGround = 2;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "MigrateAllFromGround is 2");
    limits        = good;
    limits.Gossip = 2;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "Gossip is 2");
    limits               = good;
    limits.ScrubPeriodMs = 86400001;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "ScrubPeriodMs is 86400001");
    limits            = good;
    limits.HandoverMs = 3600001;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "HandoverMs is 3600001");
    limits               = good;
    limits.WindowServers = 1025;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "WindowServers is 1025, allowed 0 .. 1024");
    limits.WindowServers = 3;
    limits.WindowLayout  = 5;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "WindowLayout is 5, allowed 1 .. 4");
    limits.WindowLayout = 3;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "WindowPlane is 0");
    limits.WindowPlane = 1;
    limits.WindowSlot  = 255;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "WindowSlot is 255");
    limits            = good;
    limits.StoreBytes = UINT32_MAX;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "StoreBytes is");
    limits            = good;
    limits.StoreBytes = 100;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_TBL_VALUE_ERR_EID, "no store of 8192 byte slots");
    CHECK_EQ(get_block(4, CHUNKS), 4); /* the good table is still in force */
    limits               = good;
    limits.WindowServers = 3;
    limits.WindowLayout  = 3;
    limits.WindowPlane   = 200; /* there are fewer planes */
    limits.WindowSlot    = 1;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_WINDOW_ERR_EID, "does not fit");
    limits.WindowPlane = 1;
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_STORE_INF_EID, "slots of 8192 bytes");
    CHECK_EQ(get_block(4, CHUNKS), 4);
}

/** Moving all blocks of a tenant needs no key, so the ground may do it only if the table says so. */
static void test_migration_of_a_whole_tenant(void)
{
    static const uint8_t target[SKY_MIGRATE_BYTES] = {[SKY_MIGRATE_OFF_PLANE + 1] = 2, [SKY_MIGRATE_OFF_SLOT + 1] = 3};
    KVC_LimitsTable_t    limits = {.SlotBytes = 6144, .Credit = 20, .PartLifetimeMs = 1000, .MigrateAllFromGround = 1};
    SKY_Packet_t         pkt    = rig_request(&rig, SKY_APID_KVC, SKY_OP_MIGRATE);
    SKY_Packet_t         answer;

    pkt.payload = target;
    pkt.length  = sizeof(target);
    CHECK_EQ(rig_ask(&rig, &pkt, &answer), SKY_STATUS_REFUSED);
    rig_table_load("KVC.Limits", &limits, sizeof(limits));
    RIG_EVENT(&rig, "KVC", KVC_STORE_INF_EID, "slots of 6144 bytes");
    ++pkt.request_id;
    CHECK_EQ(rig_ask(&rig, &pkt, &answer), SKY_STATUS_NOT_FOUND); /* admitted; the new cut has emptied the store */
}

/** No answer has more packets than isl sends for one request. */
static void test_credit_is_what_the_links_carry(void)
{
    static const char *const options[] = {"--mtu", "576", "--credit", "2048", NULL};

    if (rig_open(&rig, options))
    {
        RIG_EVENT(&rig, "KVC", KVC_CREDIT_INF_EID, "Credit lowered to ");
        rig_close(&rig);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(block); ++i)
    {
        block[i] = (uint8_t)(i * 131u + i / 251u);
    }
    if (rig_open(&rig, NULL))
    {
        RUN(test_put_get_and_housekeeping);
        RUN(test_bad_chunk_is_refused_counted_and_told_once);
        rig_command(KVC_CMD_MID, KVC_RESET_COUNTERS_CC, NULL, 0);
        RUN(test_commands);
        RUN(test_limits_table);
        RUN(test_migration_of_a_whole_tenant);
        rig_close(&rig);
    }
    RUN(test_credit_is_what_the_links_carry);
    return CHECK_RESULT();
}
