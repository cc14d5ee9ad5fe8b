/**
 * @file
 * A satellite on a bench: the real apps isl and kvc in the host executive, satellite (2, 2) of 3 x 3. The test is its four
 * neighbours and a ground host (UDP sockets) and an app on its Software Bus.
 *
 * Waiting is for a condition, with a limit that only a failing test reaches.
 */
#ifndef APP_RIG_H
#define APP_RIG_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cfe_evs_msg.h"
#include "check.h"
#include "isl_msg.h"
#include "isl_msgids.h"
#include "isl_tbl.h"
#include "kvc_msg.h"
#include "kvc_msgids.h"
#include "kvc_tbl.h"
#include "satellite.h"
#include "sky.h"

#define RIG_NETWORK   0x7F120000u /* 127.18.0.0 */
#define RIG_LIMIT_MS  5000
#define RIG_SILENT_MS 100 /* how long nothing has to come where nothing is expected */
#define RIG_POLL_MS   10
#define RIG_TRIES     64
#define RIG_HOST      77u

typedef struct
{
    int             ground;
    int             neighbour[SKY_ISL_COUNT];
    uint16_t        port;
    CFE_ES_AppId_t  app;
    CFE_SB_PipeId_t pipe;
    uint64_t        request_id;
    uint64_t        cookie;                       /* of the ground host */
    uint8_t         wire[SKY_LIMIT_PACKET_BYTES]; /* last packet received */
    uint32_t        wire_len;
    uint16_t        wire_port; /* it came from there */
} rig_t;

static const SKY_Addr_t rig_self                     = {2, 2};
static const SKY_Addr_t rig_neighbour[SKY_ISL_COUNT] = {{1, 2}, {2, 3}, {3, 2}, {2, 1}};

static inline uint32_t rig_ipv4(SKY_Addr_t satellite)
{
    return RIG_NETWORK + satellite.plane * 256u + satellite.slot;
}

static inline int rig_socket(uint32_t ipv4, uint16_t port)
{
    const int          fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address;

    (void)memset(&address, 0, sizeof(address));
    address.sin_family      = AF_INET;
    address.sin_addr.s_addr = htonl(ipv4);
    address.sin_port        = htons(port);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
    {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static inline void rig_close_sockets(rig_t *rig)
{
    for (uint32_t i = 0; i < SKY_ISL_COUNT; ++i)
    {
        (void)close(rig->neighbour[i]);
    }
    (void)close(rig->ground);
}

/** A port that is free at all five addresses: the first socket asks the system for one, the others must get the same. */
static inline bool rig_bind(rig_t *rig)
{
    struct sockaddr_in address;
    socklen_t          len = sizeof(address);
    bool               ok;
    int                self;

    rig->neighbour[0] = rig_socket(rig_ipv4(rig_neighbour[0]), 0);
    (void)getsockname(rig->neighbour[0], (struct sockaddr *)&address, &len);
    rig->port = ntohs(address.sin_port);
    ok        = rig->neighbour[0] >= 0;
    for (uint32_t i = 1; i < SKY_ISL_COUNT; ++i)
    {
        rig->neighbour[i] = rig_socket(rig_ipv4(rig_neighbour[i]), rig->port);
        ok                = ok && rig->neighbour[i] >= 0;
    }
    rig->ground = rig_socket(INADDR_LOOPBACK, 0);
    self        = rig_socket(rig_ipv4(rig_self), rig->port);
    ok          = ok && rig->ground >= 0 && self >= 0;
    (void)close(self);
    if (!ok)
    {
        rig_close_sockets(rig);
    }
    return ok;
}

static inline uint64_t rig_cookie(rig_t *rig, int fd);

/** Start the satellite, and get a cookie of it for the ground host, if it has no keys and gives one to anybody.
 *  @param options  as skysat's, NULL at the end; at most 10 */
static inline bool rig_open(rig_t *rig, const char *const *options)
{
    static char      port[8];
    const char      *argv[32]                 = {"skysat",  "--plane", "2",           "--slot", "2",      "--planes", "3",
                                                 "--slots", "3",       "--store-mib", "1",      "--port", port};
    int              argc                     = 13;
    char             why[SATELLITE_WHY_BYTES] = "";
    SKYSAT_Options_t parsed;
    bool             ok = false;

    (void)memset(rig, 0, sizeof(*rig));
    for (int i = 0; i < RIG_TRIES && !ok; ++i)
    {
        ok = rig_bind(rig);
    }
    CHECK(ok);
    (void)snprintf(port, sizeof(port), "%u", rig->port);
    for (; options != NULL && *options != NULL; ++options)
    {
        argv[argc++] = *options;
    }
    ok = ok && SKYSAT_ParseOptions(argc, argv, &parsed, why, sizeof(why)) && SATELLITE_Init(&parsed, true, why, sizeof(why));
    ok = ok && EXEC_HostAppCreate(&rig->app, "TEST") == CFE_SUCCESS && EXEC_Enter(rig->app) == CFE_SUCCESS;
    ok = ok && CFE_SB_CreatePipe(&rig->pipe, 50, "TEST_PIPE") == CFE_SUCCESS;
    ok = ok && CFE_SB_Subscribe(CFE_SB_ValueToMsgId(ISL_HK_TLM_MID), rig->pipe) == CFE_SUCCESS;
    ok = ok && CFE_SB_Subscribe(CFE_SB_ValueToMsgId(KVC_HK_TLM_MID), rig->pipe) == CFE_SUCCESS;
    ok = ok &&
         CFE_SB_SubscribeEx(CFE_SB_ValueToMsgId(CFE_EVS_LONG_EVENT_MSG_MID), rig->pipe, CFE_SB_DEFAULT_QOS, 40) == CFE_SUCCESS;
    EXEC_Leave();
    ok = ok && SATELLITE_Start(why, sizeof(why)) && EXEC_Enter(rig->app) == CFE_SUCCESS;
    if (!ok)
    {
        (void)printf("no satellite: %s\n", why);
    }
    CHECK(ok);
    rig->cookie = ok && parsed.keys == NULL ? rig_cookie(rig, rig->ground) : SKY_COOKIE_NONE;
    return ok;
}

static inline void rig_close(rig_t *rig)
{
    EXEC_Leave();
    CHECK(SATELLITE_Stop());
    rig_close_sockets(rig);
}

/* ---- packets ------------------------------------------------------------------------------------------------------- */

static inline void rig_send_bytes(rig_t *rig, int fd, const void *bytes, size_t len)
{
    struct sockaddr_in to;

    (void)memset(&to, 0, sizeof(to));
    to.sin_family      = AF_INET;
    to.sin_addr.s_addr = htonl(rig_ipv4(rig_self));
    to.sin_port        = htons(rig->port);
    CHECK_EQ(sendto(fd, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)), (ssize_t)len);
}

static inline void rig_send(rig_t *rig, int fd, const SKY_Packet_t *pkt)
{
    static uint8_t wire[SKY_LIMIT_PACKET_BYTES];

    rig_send_bytes(rig, fd, wire, SKY_Packet_Encode(pkt, wire, sizeof(wire)));
}

/** Wait for a packet. @return false if none came in time */
static inline bool rig_receive(rig_t *rig, int fd, int timeout_ms, SKY_Packet_t *pkt)
{
    struct pollfd readable = {fd, POLLIN, 0};
    ssize_t       len;

    (void)memset(pkt, 0, sizeof(*pkt));
    if (poll(&readable, 1, timeout_ms) <= 0)
    {
        return false;
    }
    len = recv(fd, rig->wire, sizeof(rig->wire), 0);
    CHECK(len > 0);
    rig->wire_len = (uint32_t)len;
    CHECK_EQ(SKY_Packet_Decode(rig->wire, rig->wire_len, pkt), SKY_STATUS_OK);
    return true;
}

/** The same, but for hellos and news of links, which come whenever a link changes. */
static inline bool rig_receive_passed_on(rig_t *rig, int fd, int timeout_ms, SKY_Packet_t *pkt)
{
    bool came = rig_receive(rig, fd, timeout_ms, pkt);

    while (came && pkt->op == SKY_OP_HELLO)
    {
        came = rig_receive(rig, fd, timeout_ms, pkt);
    }
    return came;
}

/** A request of the ground host to the satellite itself. */
static inline SKY_Packet_t rig_request(rig_t *rig, uint16_t apid, uint8_t op)
{
    SKY_Packet_t pkt;

    (void)memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = apid;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = op;
    pkt.hop_limit  = SKY_LIMIT_HOP_LIMIT;
    pkt.src.slot   = RIG_HOST;
    pkt.dst        = rig_self;
    pkt.request_id = ++rig->request_id;
    pkt.cookie     = rig->cookie;
    return pkt;
}

/** Get the cookie of a socket on the ground, which a satellite gives to whoever asks without one. */
static inline uint64_t rig_cookie(rig_t *rig, int fd)
{
    SKY_Packet_t request = rig_request(rig, SKY_APID_ISL, SKY_OP_ASSOCIATE);
    SKY_Packet_t answer;

    request.cookie = SKY_COOKIE_NONE;
    rig_send(rig, fd, &request);
    CHECK(rig_receive(rig, fd, RIG_LIMIT_MS, &answer));
    CHECK(answer.request_id == request.request_id && answer.status == SKY_STATUS_COOKIE);
    CHECK(answer.cookie != SKY_COOKIE_NONE);
    return answer.cookie;
}

/** Send a request from the ground, and wait for its answer. @return status of the answer, 255: none came */
static inline SKY_Status_t rig_ask(rig_t *rig, const SKY_Packet_t *request, SKY_Packet_t *answer)
{
    rig_send(rig, rig->ground, request);
    while (rig_receive(rig, rig->ground, RIG_LIMIT_MS, answer))
    {
        if (answer->request_id == request->request_id)
        {
            CHECK(!answer->is_request);
            return answer->status;
        }
    }
    return 255;
}

/** Counters of an app, by STATS. */
static inline void rig_stats(rig_t *rig, uint16_t apid, uint64_t *values, uint32_t count)
{
    const SKY_Packet_t request = rig_request(rig, apid, SKY_OP_STATS);
    SKY_Packet_t       answer;

    (void)memset(values, 0, count * sizeof(*values));
    if (rig_ask(rig, &request, &answer) == SKY_STATUS_OK)
    {
        CHECK_EQ(answer.length, count * 8u);
        for (uint32_t i = 0; i < count * 8u && i < answer.length; ++i)
        {
            values[i / 8u] = (values[i / 8u] << 8) | answer.payload[i];
        }
    }
}

#define RIG_ISL_VALUES (SKY_STATS_ISL_COUNT + SKY_LINK_COUNT * SKY_STATS_LINK_COUNT)

static inline uint64_t rig_isl_stat(rig_t *rig, uint32_t index)
{
    uint64_t values[RIG_ISL_VALUES];

    rig_stats(rig, SKY_APID_ISL, values, RIG_ISL_VALUES);
    return values[index];
}

static inline uint64_t rig_link_stat(rig_t *rig, SKY_LinkId_t link, uint32_t index)
{
    return rig_isl_stat(rig, SKY_STATS_ISL_COUNT + (uint32_t)link * SKY_STATS_LINK_COUNT + index);
}

/* ---- Software Bus -------------------------------------------------------------------------------------------------- */

/** Write a command as it stands on the bus. @return its size */
static inline uint32_t rig_command_bytes(uint32_t mid, uint8_t code, const void *payload, size_t payload_len,
                                         CFE_SB_Buffer_t *buffer, size_t room)
{
    const size_t size = sizeof(CFE_MSG_CommandHeader_t) + payload_len;

    CHECK(size <= room);
    CHECK_EQ(CFE_MSG_Init(&buffer->Msg, CFE_SB_ValueToMsgId(mid), size), CFE_SUCCESS);
    CHECK_EQ(CFE_MSG_SetFcnCode(&buffer->Msg, code), CFE_SUCCESS);
    if (payload_len > 0)
    {
        (void)memcpy((uint8_t *)buffer + sizeof(CFE_MSG_CommandHeader_t), payload, payload_len);
    }
    CHECK_EQ(CFE_MSG_GenerateChecksum(&buffer->Msg), CFE_SUCCESS);
    return (uint32_t)size;
}

static inline void rig_command(uint32_t mid, uint8_t code, const void *payload, size_t payload_len)
{
    union
    {
        CFE_SB_Buffer_t buffer;
        uint8_t         bytes[SKY_LIMIT_RELAY_BYTES];
    } command;

    (void)rig_command_bytes(mid, code, payload, payload_len, &command.buffer, sizeof(command));
    CHECK_EQ(CFE_SB_TransmitMsg(&command.buffer.Msg, false), CFE_SUCCESS);
}

/** Wait for a message of an id; others are passed over. @return NULL if none came in time */
static inline const CFE_SB_Buffer_t *rig_message(rig_t *rig, uint32_t mid)
{
    CFE_SB_Buffer_t *buffer = NULL;
    CFE_SB_MsgId_t   got;

    while (CFE_SB_ReceiveBuffer(&buffer, rig->pipe, RIG_LIMIT_MS) == CFE_SUCCESS)
    {
        if (CFE_MSG_GetMsgId(&buffer->Msg, &got) == CFE_SUCCESS && CFE_SB_MsgIdToValue(got) == mid)
        {
            return buffer;
        }
    }
    return NULL;
}

/** Wait for an event of an app. Its text is kept until the next event. @return NULL if it did not come */
static inline const char *rig_event(rig_t *rig, const char *app, uint16_t event_id)
{
    static char                   text[CFE_MISSION_EVS_MAX_MESSAGE_LENGTH + 1];
    const CFE_EVS_LongEventTlm_t *event;

    while ((event = (const void *)rig_message(rig, CFE_EVS_LONG_EVENT_MSG_MID)) != NULL)
    {
        if (event->Payload.PacketID.EventID == event_id && strcmp(event->Payload.PacketID.AppName, app) == 0)
        {
            (void)memcpy(text, event->Payload.Message, sizeof(event->Payload.Message));
            return text;
        }
    }
    (void)printf("no event %u of %s\n", event_id, app);
    return NULL;
}

#define RIG_EVENT(rig, app, event_id, part)                          \
    do                                                               \
    {                                                                \
        const char *rig_text = rig_event((rig), (app), (event_id));  \
        CHECK(rig_text != NULL && strstr(rig_text, (part)) != NULL); \
    } while (0)

/** A table load from the ground; waits until the one before has been taken or refused. */
static inline void rig_table_load(const char *name, const void *data, size_t size)
{
    CFE_Status_t status = EXEC_TableLoad(name, data, size);

    for (int waited_ms = 0; status != CFE_SUCCESS && waited_ms < RIG_LIMIT_MS; waited_ms += RIG_POLL_MS)
    {
        (void)poll(NULL, 0, RIG_POLL_MS);
        status = EXEC_TableLoad(name, data, size);
    }
    CHECK_EQ(status, CFE_SUCCESS);
}

static inline ISL_HkTlm_Payload_t rig_isl_hk(rig_t *rig)
{
    ISL_HkTlm_Payload_t hk;
    const ISL_HkTlm_t  *message;

    (void)memset(&hk, 0, sizeof(hk));
    rig_command(ISL_SEND_HK_MID, 0, NULL, 0);
    message = (const void *)rig_message(rig, ISL_HK_TLM_MID);
    CHECK(message != NULL);
    return message != NULL ? message->Payload : hk;
}

static inline KVC_HkTlm_Payload_t rig_kvc_hk(rig_t *rig)
{
    KVC_HkTlm_Payload_t hk;
    const KVC_HkTlm_t  *message;

    (void)memset(&hk, 0, sizeof(hk));
    rig_command(KVC_SEND_HK_MID, 0, NULL, 0);
    message = (const void *)rig_message(rig, KVC_HK_TLM_MID);
    CHECK(message != NULL);
    return message != NULL ? message->Payload : hk;
}

#endif
