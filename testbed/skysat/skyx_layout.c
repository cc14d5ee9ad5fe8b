/**
 * @file
 * Sizes and offsets of the structures that skymemory.fsw mirrors: a Python test holds its ctypes structures against them.
 */
#include "cfe_evs_msg.h"
#include "isl_msg.h"
#include "isl_tbl.h"
#include "kvc_msg.h"
#include "kvc_tbl.h"
#include "skyx.h"

#define WHOLE(type)                \
    {                              \
#type, "", 0, sizeof(type) \
    }
#define FIELD(type, field)                                               \
    {                                                                    \
#type, #field, offsetof(type, field), sizeof(((type *)0)->field) \
    }

static const skyx_layout_t layouts[] = {
    WHOLE(CFE_MSG_CommandHeader_t),
    WHOLE(CFE_MSG_TelemetryHeader_t),

    WHOLE(CFE_EVS_LongEventTlm_Payload_t),
    FIELD(CFE_EVS_LongEventTlm_Payload_t, PacketID),
    FIELD(CFE_EVS_LongEventTlm_Payload_t, Message),
    WHOLE(CFE_EVS_PacketID_t),
    FIELD(CFE_EVS_PacketID_t, AppName),
    FIELD(CFE_EVS_PacketID_t, EventID),
    FIELD(CFE_EVS_PacketID_t, EventType),
    FIELD(CFE_EVS_PacketID_t, SpacecraftID),
    FIELD(CFE_EVS_PacketID_t, ProcessorID),

    WHOLE(KVC_PurgeBlock_Payload_t),
    FIELD(KVC_PurgeBlock_Payload_t, Tenant),
    FIELD(KVC_PurgeBlock_Payload_t, Key),

    WHOLE(KVC_ScheduleRow_t),
    FIELD(KVC_ScheduleRow_t, TimeMs),
    FIELD(KVC_ScheduleRow_t, Plane),
    FIELD(KVC_ScheduleRow_t, Slot),

    WHOLE(KVC_ScheduleBegin_Payload_t),
    FIELD(KVC_ScheduleBegin_Payload_t, Id),
    FIELD(KVC_ScheduleBegin_Payload_t, AgeMs),
    FIELD(KVC_ScheduleBegin_Payload_t, Planes),
    FIELD(KVC_ScheduleBegin_Payload_t, Slots),
    FIELD(KVC_ScheduleBegin_Payload_t, Layout),
    FIELD(KVC_ScheduleBegin_Payload_t, Servers),
    FIELD(KVC_ScheduleBegin_Payload_t, TotalRows),

    WHOLE(KVC_ScheduleRows_Payload_t),
    FIELD(KVC_ScheduleRows_Payload_t, Id),
    FIELD(KVC_ScheduleRows_Payload_t, FirstRow),
    FIELD(KVC_ScheduleRows_Payload_t, RowCount),
    FIELD(KVC_ScheduleRows_Payload_t, Row),

    WHOLE(KVC_ScheduleCommit_Payload_t),
    FIELD(KVC_ScheduleCommit_Payload_t, Id),
    FIELD(KVC_ScheduleCommit_Payload_t, RowsCrc),

    WHOLE(KVC_Handover_Payload_t),
    FIELD(KVC_Handover_Payload_t, Plane),
    FIELD(KVC_Handover_Payload_t, Slot),

    WHOLE(KVC_HkTlm_Payload_t),
    FIELD(KVC_HkTlm_Payload_t, CommandCounter),
    FIELD(KVC_HkTlm_Payload_t, CommandErrorCounter),
    FIELD(KVC_HkTlm_Payload_t, Serving),
    FIELD(KVC_HkTlm_Payload_t, Spare),
    FIELD(KVC_HkTlm_Payload_t, Slots),
    FIELD(KVC_HkTlm_Payload_t, SlotBytes),
    FIELD(KVC_HkTlm_Payload_t, SlotsUsed),
    FIELD(KVC_HkTlm_Payload_t, SlotsPartial),
    FIELD(KVC_HkTlm_Payload_t, Blocks),
    FIELD(KVC_HkTlm_Payload_t, Row),
    FIELD(KVC_HkTlm_Payload_t, Rows),
    FIELD(KVC_HkTlm_Payload_t, StoreBytes),
    FIELD(KVC_HkTlm_Payload_t, Bytes),
    FIELD(KVC_HkTlm_Payload_t, Requests),
    FIELD(KVC_HkTlm_Payload_t, Puts),
    FIELD(KVC_HkTlm_Payload_t, Gets),
    FIELD(KVC_HkTlm_Payload_t, Hits),
    FIELD(KVC_HkTlm_Payload_t, Misses),
    FIELD(KVC_HkTlm_Payload_t, EvictedChunks),
    FIELD(KVC_HkTlm_Payload_t, ExpiredParts),
    FIELD(KVC_HkTlm_Payload_t, MigratedOut),
    FIELD(KVC_HkTlm_Payload_t, MigratedIn),
    FIELD(KVC_HkTlm_Payload_t, Handovers),
    FIELD(KVC_HkTlm_Payload_t, Errors),

    WHOLE(KVC_LimitsTable_t),
    FIELD(KVC_LimitsTable_t, StoreBytes),
    FIELD(KVC_LimitsTable_t, SlotBytes),
    FIELD(KVC_LimitsTable_t, BlockCount),
    FIELD(KVC_LimitsTable_t, Credit),
    FIELD(KVC_LimitsTable_t, PartLifetimeMs),
    FIELD(KVC_LimitsTable_t, MigrateAllFromGround),
    FIELD(KVC_LimitsTable_t, Gossip),
    FIELD(KVC_LimitsTable_t, ScrubPeriodMs),
    FIELD(KVC_LimitsTable_t, HandoverMs),

    WHOLE(KVC_ScheduleTable_t),
    FIELD(KVC_ScheduleTable_t, EpochS),
    FIELD(KVC_ScheduleTable_t, EpochMs),
    FIELD(KVC_ScheduleTable_t, Clock),
    FIELD(KVC_ScheduleTable_t, Planes),
    FIELD(KVC_ScheduleTable_t, Slots),
    FIELD(KVC_ScheduleTable_t, Layout),
    FIELD(KVC_ScheduleTable_t, Servers),
    FIELD(KVC_ScheduleTable_t, FirstRow),
    FIELD(KVC_ScheduleTable_t, RowCount),
    FIELD(KVC_ScheduleTable_t, TotalRows),
    FIELD(KVC_ScheduleTable_t, RowsCrc),
    FIELD(KVC_ScheduleTable_t, Row),

    WHOLE(ISL_SetLink_Payload_t),
    FIELD(ISL_SetLink_Payload_t, Link),
    FIELD(ISL_SetLink_Payload_t, CutS),

    WHOLE(ISL_HkLink_t),
    FIELD(ISL_HkLink_t, Present),
    FIELD(ISL_HkLink_t, Up),
    FIELD(ISL_HkLink_t, Plane),
    FIELD(ISL_HkLink_t, Slot),
    FIELD(ISL_HkLink_t, QueueDepth),
    FIELD(ISL_HkLink_t, LastHeardMs),
    FIELD(ISL_HkLink_t, DelayRequestedUs),
    FIELD(ISL_HkLink_t, DelayMeanUs),
    FIELD(ISL_HkLink_t, DelayMinUs),
    FIELD(ISL_HkLink_t, TxPackets),
    FIELD(ISL_HkLink_t, TxBytes),
    FIELD(ISL_HkLink_t, RxPackets),
    FIELD(ISL_HkLink_t, RxBytes),
    FIELD(ISL_HkLink_t, DropQueue),
    FIELD(ISL_HkLink_t, DropLoss),
    FIELD(ISL_HkLink_t, DropCut),
    FIELD(ISL_HkLink_t, DropError),

    WHOLE(ISL_HkTlm_Payload_t),
    FIELD(ISL_HkTlm_Payload_t, CommandCounter),
    FIELD(ISL_HkTlm_Payload_t, CommandErrorCounter),
    FIELD(ISL_HkTlm_Payload_t, Listeners),
    FIELD(ISL_HkTlm_Payload_t, Spare),
    FIELD(ISL_HkTlm_Payload_t, Plane),
    FIELD(ISL_HkTlm_Payload_t, Slot),
    FIELD(ISL_HkTlm_Payload_t, RelayedUp),
    FIELD(ISL_HkTlm_Payload_t, RelayedDown),
    FIELD(ISL_HkTlm_Payload_t, RelayErrors),
    FIELD(ISL_HkTlm_Payload_t, IoErrors),
    FIELD(ISL_HkTlm_Payload_t, Delivered),
    FIELD(ISL_HkTlm_Payload_t, Forwarded),
    FIELD(ISL_HkTlm_Payload_t, ToGround),
    FIELD(ISL_HkTlm_Payload_t, Dropped),
    FIELD(ISL_HkTlm_Payload_t, Link),

    WHOLE(ISL_LinkEntry_t),
    FIELD(ISL_LinkEntry_t, DelayUs),
    FIELD(ISL_LinkEntry_t, JitterUs),
    FIELD(ISL_LinkEntry_t, RateKbps),
    FIELD(ISL_LinkEntry_t, LossPpm),
    FIELD(ISL_LinkEntry_t, Cut),
    FIELD(ISL_LinkEntry_t, Spare),

    WHOLE(ISL_LinksTable_t),
    FIELD(ISL_LinksTable_t, Link),
};

const skyx_layout_t *skyx_layouts(size_t *count)
{
    *count = sizeof layouts / sizeof layouts[0];
    return layouts;
}
