/**
 * @file
 * What the unit tests of KVC share.
 */
#include "kvc_ut.h"

#include "kvc_dispatch.h"
#include "kvc_eventids.h"
#include "kvc_msgids.h"

UT_Table_t               UT_Table;
uint16                   UT_LastEvent;
uint32                   UT_Events;
const SKY_LIB_Service_t *UT_Service;

static void OnEvent(void *user, UT_EntryKey_t key, const UT_StubContext_t *context, va_list va)
{
    (void)user;
    (void)key;
    (void)va;
    UT_LastEvent = UT_Hook_GetArgValueByName(context, "EventID", uint16);
    ++UT_Events;
}

static void OnGetAddress(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    *UT_Hook_GetArgValueByName(context, "TblPtr", void **) = &UT_Table;
}

static void OnRegister(void *user, UT_EntryKey_t key, const UT_StubContext_t *context)
{
    (void)user;
    (void)key;
    UT_Service = UT_Hook_GetArgValueByName(context, "service", const SKY_LIB_Service_t *);
}

void UT_Setup(void)
{
    UT_ResetState(0);
    memset(&KVC_Data, 0, sizeof(KVC_Data));
    memset(&UT_Table, 0, sizeof(UT_Table));
    UT_Table.limits.SlotBytes      = 6144;
    UT_Table.limits.Credit         = 20;
    UT_Table.limits.PartLifetimeMs = 1000;
    UT_LastEvent                   = 0;
    UT_Service                     = NULL;
    UT_Events                      = 0;
    UT_SetVaHandlerFunction(UT_KEY(CFE_EVS_SendEvent), OnEvent, NULL);
    UT_SetHandlerFunction(UT_KEY(CFE_TBL_GetAddress), OnGetAddress, NULL);
    UT_SetHandlerFunction(UT_KEY(SKY_LIB_Register), OnRegister, NULL);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_TBL_INFO_UPDATED);
}

void UT_Start(void)
{
    KVC_AppMain();
    UtAssert_UINT32_EQ(KVC_Data.RunStatus, CFE_ES_RunStatus_APP_RUN);
    UtAssert_UINT32_EQ(UT_LastEvent, KVC_INIT_INF_EID);
    UT_SetDefaultReturnValue(UT_KEY(CFE_TBL_GetAddress), CFE_SUCCESS);
}

void UT_Send(uint32 mid, CFE_MSG_FcnCode_t code, size_t size, const void *bytes)
{
    union
    {
        CFE_SB_Buffer_t       buffer;
        KVC_PurgeBlockCmd_t   purge;
        KVC_ScheduleRowsCmd_t rows;
    } message;
    CFE_SB_MsgId_t id     = CFE_SB_ValueToMsgId(mid);
    CFE_MSG_Size_t length = size;

    memset(&message, 0, sizeof(message));
    if (bytes != NULL)
    {
        memcpy(&message, bytes, size);
    }
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetMsgId), &id, sizeof(id), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetFcnCode), &code, sizeof(code), true);
    UT_SetDataBuffer(UT_KEY(CFE_MSG_GetSize), &length, sizeof(length), true);
    KVC_TaskPipe(&message.buffer);
    UT_ResetState(UT_KEY(CFE_MSG_GetMsgId));
    UT_ResetState(UT_KEY(CFE_MSG_GetFcnCode));
    UT_ResetState(UT_KEY(CFE_MSG_GetSize));
}

SKY_LIB_Node_t UT_Satellite(uint32_t packet_bytes)
{
    SKY_LIB_Node_t node;

    memset(&node, 0, sizeof(node));
    node.self.plane   = 1;
    node.self.slot    = 1;
    node.packet_bytes = packet_bytes;
    UtAssert_BOOL_TRUE(SKY_Torus_Init(&node.torus, 3, 3, false));
    return node;
}

void UT_MakeSchedule(uint32 total)
{
    KVC_ScheduleTable_t *const table = &UT_Table.schedule;
    uint32                     i;

    memset(&UT_Table, 0, sizeof(UT_Table));
    table->Planes    = 3;
    table->Slots     = 3;
    table->Layout    = SKY_LAYOUT_ROTATION;
    table->Servers   = 4;
    table->FirstRow  = 1;
    table->TotalRows = total;
    table->RowCount  = KVC_Schedule_RowsOf(0, total);
    for (i = 0; i < table->RowCount; ++i)
    {
        table->Row[i].TimeMs = i;
    }
    table->RowsCrc = SKY_Crc32c(0, table->Row, table->RowCount * sizeof(table->Row[0]));
}
