/**
 * @file
 * A host that asks, on a bench. The satellites are the test itself.
 */
#ifndef ASK_RIG_H
#define ASK_RIG_H

#include "fixture.h"
#include "sky_host.h"

#define SATELLITES 5u /* more than the host has memory for */
#define PEERS      4u
#define PLACES     2u /* questions on their way */
#define ROOM       16u
#define MOST_SENT  64u
#define START_US   UINT64_C(5000000)
#define NUMBER     77u
#define FIRST_US   250000u /* until the first repeat, if nothing was measured */

typedef struct
{
    uint64_t     endpoint;
    SKY_Packet_t pkt;
} sent_t;

static SKY_Host_t           host;
static SKY_HostPeerMemory_t peers;
static SKY_HostAsked_t      asked[PLACES];
static sent_t               sent[MOST_SENT];
static uint32_t             sent_count, drawn;
static uint64_t             now_us;
static uint8_t              rooms[SATELLITES][ROOM];

static void send(void *context, uint64_t at_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    (void)context;
    CHECK(key == NULL); /* this host has no keyring */
    CHECK_EQ(at_us, now_us);
    CHECK(sent_count < MOST_SENT);
    sent[sent_count].endpoint = endpoint;
    sent[sent_count].pkt      = *pkt;
    ++sent_count;
}

static bool draw(void *context, uint8_t *bytes, size_t count)
{
    const uint32_t number = ++drawn * 1000u;

    (void)context;
    CHECK_EQ(count, sizeof(number));
    (void)memcpy(bytes, &number, count);
    return true;
}

static void lend(uint32_t count)
{
    const SKY_HostQuestionMemory_t memory = {asked, count};

    CHECK(SKY_Host_LendQuestions(&host, &memory));
}

static void start(bool keeps_number)
{
    const SKY_HostShell_t shell = {.Send = send, .Random = draw};
    const SKY_HostCfg_t   cfg   = {SKY_PeerCfg_OfHost(64, 20), 1472, NUMBER, keeps_number, 0, false, {0}};

    free(peers.peers);
    free(peers.active);
    free(peers.ways);
    free(peers.index);
    peers.peer_count = PEERS;
    peers.peers      = calloc(PEERS, sizeof(*peers.peers));
    peers.active     = calloc(PEERS, sizeof(*peers.active));
    peers.ways       = calloc(PEERS, sizeof(*peers.ways));
    peers.index      = calloc(1, SKY_Index_MemoryBytes(PEERS));
    now_us           = START_US;
    sent_count       = 0;
    CHECK(SKY_Host_Init(&host, &shell, &cfg, &peers));
    lend(PLACES);
}

static SKY_Addr_t satellite(uint32_t i)
{
    return (SKY_Addr_t){2, (uint16_t)(i + 1u)};
}

/* A question to satellite @p i through satellite [1, 1] at endpoint 100. */
static SKY_HostQuestion_t question(uint32_t i)
{
    static const uint8_t payload[] = {1, 2, 3};
    SKY_HostQuestion_t   one;

    (void)memset(&one, 0xA5, sizeof(one)); /* what the host sets need not be set */
    one.place = (SKY_HostPlace_t){satellite(i).plane, satellite(i).slot, 1, 1, 100, 0, 0};
    fx_key(one.key, i);
    one.apid          = SKY_APID_KVC;
    one.op            = SKY_OP_HAS;
    one.flags         = SKY_FLAG_ANY;
    one.tenant        = 5;
    one.epoch         = 6;
    one.block_version = 9;
    one.chunk_id      = 7;
    one.credit        = 8;
    one.deadline_ms   = 5000;
    one.payload       = payload;
    one.payload_bytes = sizeof(payload);
    one.room          = rooms[i];
    one.room_bytes    = ROOM;
    return one;
}

static void ask(SKY_HostQuestion_t *one)
{
    CHECK_EQ(SKY_Host_Ask(&host, now_us, one), SKY_HOST_BEGUN);
    CHECK_EQ(one->status, SKY_STATUS_RUNNING);
}

static uint64_t run(void)
{
    const uint64_t due_us = SKY_Host_Run(&host, now_us, true);

    CHECK(due_us > now_us);
    return due_us;
}

/* Run until a time, each time that it says. */
static inline void run_until(uint64_t end_us)
{
    uint64_t due_us = run();

    while (due_us <= end_us)
    {
        now_us = due_us;
        due_us = run();
    }
    now_us = end_us;
}

static SKY_Packet_t answer_to(uint32_t nth, SKY_Status_t status)
{
    SKY_Packet_t pkt;

    CHECK(nth < sent_count);
    SKY_Packet_Reply(&sent[nth].pkt, sent[nth].pkt.dst, status, &pkt);
    pkt.payload = NULL;
    pkt.length  = 0;
    return pkt;
}

static void receive_from(uint64_t endpoint, const SKY_Packet_t *pkt)
{
    uint8_t      bytes[1600];
    const size_t len = SKY_Packet_Encode(pkt, bytes, sizeof(bytes));

    CHECK(len > 0);
    SKY_Host_Receive(&host, now_us, endpoint, bytes, len);
}

static void receive(const SKY_Packet_t *pkt)
{
    receive_from(100, pkt);
}

static void answer(uint32_t nth, SKY_Status_t status)
{
    const SKY_Packet_t pkt = answer_to(nth, status);

    receive(&pkt);
}

static void check_ended(SKY_HostQuestion_t *one, SKY_Status_t status)
{
    CHECK(SKY_Host_NextAnswered(&host) == one);
    CHECK_EQ(one->status, status);
    CHECK(one->next == NULL);
}

static inline void check_none_ended(void)
{
    CHECK(SKY_Host_NextAnswered(&host) == NULL);
}

#endif
