/**
 * @file
 * What the unit tests of ISL share.
 */
#include "isl_ut.h"

#include "isl_dispatch.h"
#include "isl_msgids.h"
#include "isl_task.h"
#include "isl_tbl_manage.h"
#include "isl_tlm.h"

ISL_NeighboursTable_t         UT_Neighbours;
ISL_LinksTable_t              UT_Links;
ISL_KeysTable_t               UT_Keys;
ISL_PeersTable_t              UT_Peers[ISL_PEERS_PAGES];
uint16                        UT_LastEvent;
CFE_ES_ChildTaskMainFuncPtr_t UT_IoTask, UT_TlmTask;
osal_task_entry               UT_DeleteHandler;
uint8                         UT_Received[2048];
size_t                        UT_ReceivedBytes;
uint32                        UT_FromIpv4;
uint16                        UT_FromPort;
uint8                         UT_Sent[UT_SENT_MAX];
size_t                        UT_SentBytes;
uint32                        UT_SentCount, UT_SentIpv4;
CFE_MSG_Type_t                UT_Type;

/* ---- hooks --------------------------------------------------------------------------------------------------------- */

static void OnEvent(void *user, UT_EntryKey_t key, const UT_StubContext_t *context, va_list va)
{
    (void)user;
    (void)key;
    (void)va;
    UT_LastEvent = UT_Hook_GetArgValueByName(context, "EventID", uint16);
}

static void OnChildTask(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    const CFE_ES_ChildTaskMainFuncPtr_t entry = UT_Hook_GetArgValueByName(context, "FunctionPtr", CFE_ES_ChildTaskMainFuncPtr_t);
    const char *const                   name  = UT_Hook_GetArgValueByName(context, "TaskName", const char *);

    (void)user;
    (void)key;
    *(strcmp(name, "ISL_IO") == 0 ? &UT_IoTask : &UT_TlmTask) = entry;
}

static void OnDeleteHandler(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    UT_DeleteHandler = UT_Hook_GetArgValueByName(context, "function_pointer", osal_task_entry);
}

/** An address in the form of BSD sockets. */
static void OnAddress(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    static const uint8   ipv4[] = {201, 102, 53, 154};
    OS_SockAddr_t *const addr   = UT_Hook_GetArgValueByName(context, "Addr", OS_SockAddr_t *);

    (void)user;
    (void)key;
    addr->ActualLength = 16;
    memcpy(&addr->AddrData.Buffer[4], ipv4, sizeof(ipv4));
}

static uint32 Ipv4Of(const OS_SockAddr_t *addr)
{
    const uint8 *const at = &addr->AddrData.Buffer[4];

    return ((uint32)at[0] << 24) | ((uint32)at[1] << 16) | ((uint32)at[2] << 8) | at[3];
}

static void OnSend(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    const void *const buffer = UT_Hook_GetArgValueByName(context, "buffer", const void *);
    int32             status = OS_SUCCESS;

    (void)user;
    UT_SentBytes = UT_Hook_GetArgValueByName(context, "buflen", size_t);
    UT_SentIpv4  = Ipv4Of(UT_Hook_GetArgValueByName(context, "RemoteAddr", const OS_SockAddr_t *));
    ++UT_SentCount;
    if (UT_SentBytes <= sizeof(UT_Sent))
    {
        memcpy(UT_Sent, buffer, UT_SentBytes);
    }
    if (!UT_Stub_GetInt32StatusCode(context, &status) || status >= 0)
    {
        status = (int32)UT_SentBytes;
    }
    UT_Stub_SetReturnValue(key, status);
}

static void OnGetPort(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "PortNum", uint16 *) = UT_FromPort;
}

/** Receive one packet, then nothing. */
static void OnReceive(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    void *const          buffer = UT_Hook_GetArgValueByName(context, "buffer", void *);
    OS_SockAddr_t *const from   = UT_Hook_GetArgValueByName(context, "RemoteAddr", OS_SockAddr_t *);
    int32                status = OS_ERROR_TIMEOUT;

    (void)user;
    memset(from, 0, sizeof(*from));
    from->AddrData.Buffer[4] = (uint8)(UT_FromIpv4 >> 24);
    from->AddrData.Buffer[5] = (uint8)(UT_FromIpv4 >> 16);
    from->AddrData.Buffer[6] = (uint8)(UT_FromIpv4 >> 8);
    from->AddrData.Buffer[7] = (uint8)UT_FromIpv4;
    if (UT_ReceivedBytes > 0)
    {
        status = (int32)UT_ReceivedBytes;
        memcpy(buffer, UT_Received, UT_ReceivedBytes);
        UT_ReceivedBytes = 0;
    }
    UT_Stub_SetReturnValue(key, status);
}

static void OnType(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "Type", CFE_MSG_Type_t *) = UT_Type;
}

/** Give each table a handle that has its number in each byte, as handles are integers or structures. ISL registers them in this order. */
static void OnRegister(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    CFE_TBL_Handle_t *const handle = UT_Hook_GetArgValueByName(context, "TblHandlePtr", CFE_TBL_Handle_t *);

    (void)user;
    memset(handle, (int)UT_GetStubCount(key), sizeof(*handle));
}

static void OnGetAddress(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    void *const tables[] = {NULL, &UT_Neighbours, &UT_Links, &UT_Keys, &UT_Peers[0], &UT_Peers[1], &UT_Peers[2], &UT_Peers[3]};
    const CFE_TBL_Handle_t handle = UT_Hook_GetArgValueByName(context, "TblHandle", CFE_TBL_Handle_t);
    uint8                  number;

    (void)user;
    (void)key;
    memcpy(&number, &handle, sizeof(number));
    *UT_Hook_GetArgValueByName(context, "TblPtr", void **) = tables[number];
}

/* ---- the satellite ------------------------------------------------------------------------------------------------- */

void UT_Setup(void)
{
    static const ISL_Neighbour_t around[ISL_NEIGHBOUR_COUNT] = {{UT_IPV4(1, 2), UT_PORT, 1, 2, 1, 0},
                                                                {UT_IPV4(2, 3), UT_PORT, 2, 3, 1, 0},
                                                                {UT_IPV4(3, 2), UT_PORT, 3, 2, 1, 0},
                                                                {UT_IPV4(2, 1), UT_PORT, 2, 1, 1, 0}};

    UT_ResetState(0);
    memset(&ISL_Data, 0, sizeof(ISL_Data));
    memset(&UT_Links, 0, sizeof(UT_Links));
    memset(&UT_Keys, 0, sizeof(UT_Keys));
    memset(UT_Peers, 0, sizeof(UT_Peers));
    memset(&UT_Neighbours, 0, sizeof(UT_Neighbours));
    UT_Neighbours.SelfPlane      = 2;
    UT_Neighbours.SelfSlot       = 2;
    UT_Neighbours.Planes         = 3;
    UT_Neighbours.Slots          = 3;
    UT_Neighbours.LocalIpv4      = UT_IPV4(2, 2);
    UT_Neighbours.LocalPort      = UT_PORT;
    UT_Neighbours.PacketBytes    = 9000;
    UT_Neighbours.DownlinkMid[0] = ISL_HK_TLM_MID;
    memcpy(UT_Neighbours.Neighbour, around, sizeof(around));
    UT_LastEvent     = 0;
    UT_ReceivedBytes = 0;
    UT_SentBytes     = 0;
    UT_SentCount     = 0;
    UT_FromIpv4      = 0;
    UT_FromPort      = UT_GROUND;
    UT_IoTask        = NULL;
    UT_TlmTask       = NULL;
    UT_DeleteHandler = NULL;
    UT_Type          = CFE_MSG_Type_Tlm;
    UT_SetVaHandlerFunction(UT_KEY(CFE_EVS_SendEvent), OnEvent, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_ES_CreateChildTask), OnChildTask, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_TaskInstallDeleteHandler), OnDeleteHandler, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_SocketAddrFromString), OnAddress, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_SocketSendTo), OnSend, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_SocketRecvFrom), OnReceive, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_TBL_Register), OnRegister, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_TBL_GetAddress), OnGetAddress, NULL);
    UT_SetHandlerFunction(UT_KEY(OS_SocketAddrGetPort), OnGetPort, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_MSG_GetType), OnType, NULL);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
}

void UT_Start(void)
{
    UtAssert_INT32_EQ(ISL_Task_Open(), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Tlm_Open(), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Tbl_Init(), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Task_Start(ISL_Data.LocalIpv4, ISL_Data.LocalPort), CFE_SUCCESS);
    UtAssert_INT32_EQ(ISL_Tlm_Start(), CFE_SUCCESS);
    UtAssert_BOOL_TRUE(UT_IoTask != NULL && UT_TlmTask != NULL);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
}

ISL_Node_t *UT_Node(void)
{
    ISL_Node_t *const node = ISL_Task_Enter();

    ISL_Task_Leave();
    return node;
}

void UT_Send(uint32 mid, CFE_MSG_FcnCode_t code, size_t size, const void *bytes)
{
    union
    {
        CFE_SB_Buffer_t  buffer;
        ISL_SetLinkCmd_t set_link;
    } message;
    CFE_SB_MsgId_t id     = CFE_SB_ValueToMsgId(mid);
    CFE_MSG_Size_t length = size;

    memset(&message, 0, sizeof(message));
    if (bytes != NULL)
    {
        memcpy(&message, bytes, sizeof(message.set_link));
    }
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetMsgId), &id, sizeof(id), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetFcnCode), &code, sizeof(code), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetSize), &length, sizeof(length), true);
    ISL_TaskPipe(&message.buffer);
    UT_ResetState(UT_KEY(CFE_MSG_GetMsgId));
    UT_ResetState(UT_KEY(CFE_MSG_GetFcnCode));
    UT_ResetState(UT_KEY(CFE_MSG_GetSize));
}

/* ---- packets ------------------------------------------------------------------------------------------------------- */

SKY_Packet_t UT_Request(uint16_t apid, uint8_t op)
{
    SKY_Packet_t pkt;

    memset(&pkt, 0, sizeof(pkt));
    pkt.is_request = true;
    pkt.apid       = apid;
    pkt.seq_flags  = SKY_SEQ_WHOLE;
    pkt.op         = op;
    pkt.hop_limit  = 3;
    pkt.request_id = 77;
    pkt.src.slot   = UT_HOST;
    pkt.dst.plane  = 2;
    pkt.dst.slot   = 2;
    return pkt;
}

SKY_Packet_t UT_WithCookie(uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    const SKY_Security_t *const security = UT_Node()->node.security;
    SKY_Packet_t                with     = *pkt;

    if (security != NULL && pkt->src.plane == 0)
    {
        with.cookie = SKY_Security_CookieOf(security, now_us, endpoint); /* the host has asked for it before */
    }
    return with;
}

void UT_Input(uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint)
{
    static uint8_t     wire[UT_SENT_MAX];
    const SKY_Packet_t sent = UT_WithCookie(now_us, pkt, endpoint);
    const size_t       len  = SKY_Packet_Encode(&sent, wire, sizeof(wire));

    UtAssert_BOOL_TRUE(len > 0);
    UT_SentBytes = 0;
    UT_SentCount = 0;
    ISL_Node_Input(UT_Node(), now_us, wire, (uint32_t)len, endpoint);
}

SKY_Packet_t UT_Answer(void)
{
    SKY_Packet_t answer;

    memset(&answer, 0, sizeof(answer));
    UtAssert_UINT32_EQ(SKY_Packet_Decode(UT_Sent, UT_SentBytes, &answer), SKY_STATUS_OK);
    return answer;
}

uint64_t UT_Neighbour(SKY_LinkId_t link)
{
    return UT_Node()->node.links[link].endpoint;
}

void UT_SetModel(SKY_LinkId_t link, uint32_t delay_us, uint32_t loss_ppm, bool is_cut)
{
    const SKY_LinkModel_t model = {delay_us, 0, 0, loss_ppm, is_cut};

    ISL_Line_SetModel(UT_Node(), link, &model);
    SKY_Node_SetModel(&UT_Node()->node, 0, link, &model);
}

void UT_SendParts(uint64_t now_us, SKY_LinkId_t link, const SKY_PacketParts_t *parts)
{
    SKY_Node_t *const node = &UT_Node()->node;

    (void)node->shell.Send(node->shell.context, now_us, link, node->links[link].endpoint, parts);
}
