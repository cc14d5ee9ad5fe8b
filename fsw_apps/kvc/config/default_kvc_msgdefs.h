/**
 * @file
 * Payloads of the commands and telemetry of KVC. Fields are naturally aligned, without implicit padding.
 */
#ifndef KVC_MSGDEFS_H
#define KVC_MSGDEFS_H

#include "common_types.h"
#include "kvc_fcncodes.h"
#include "kvc_interface_cfg.h"
#include "kvc_tbldefs.h"

typedef struct KVC_PurgeBlock_Payload
{
    uint32 Tenant;
    uint8  Key[KVC_KEY_BYTES];
} KVC_PurgeBlock_Payload_t;

/** Fields as in KVC_ScheduleTable_t. */
typedef struct KVC_ScheduleBegin_Payload
{
    uint32 Id;    /**< of this upload, any number; BEGIN with another one begins a new upload */
    int32  AgeMs; /**< age of the schedule's epoch; negative: it is to come. So the sender need not know this clock */
    uint32 Planes;
    uint32 Slots;
    uint32 Layout;
    uint32 Servers;
    uint32 TotalRows; /**< rows of all segments; 0: follow no schedule any more */
} KVC_ScheduleBegin_Payload_t;

typedef struct KVC_ScheduleRows_Payload
{
    uint32            Id;
    uint32            FirstRow; /**< number of the first row here, from 1 */
    uint32            RowCount; /**< 1 .. KVC_COMMAND_ROWS */
    KVC_ScheduleRow_t Row[KVC_COMMAND_ROWS];
} KVC_ScheduleRows_Payload_t;

typedef struct KVC_ScheduleCommit_Payload
{
    uint32 Id;
    uint32 RowsCrc;
} KVC_ScheduleCommit_Payload_t;

typedef struct KVC_Handover_Payload
{
    uint16 Plane; /**< plane of the satellite that is to hold the chunks */
    uint16 Slot;
} KVC_Handover_Payload_t;

typedef struct KVC_HkTlm_Payload
{
    uint8  CommandCounter;
    uint8  CommandErrorCounter;
    uint8  Serving; /**< 1: the satellite is known and the service runs */
    uint8  Spare;
    uint32 SlotBytes;     /**< largest chunk: one slot of the store has room for it */
    uint32 ChunksPartial; /**< chunks of which parts are missing */
    uint32 Blocks;
    uint32 Row;        /**< current row of the schedule, from 1; 0: no schedule */
    uint32 Rows;       /**< rows of the schedule */
    uint64 StoreBytes; /**< memory of the store for chunks and entries of blocks, without its index */
    uint64 UsedBytes;  /**< of these, those of slots with something in them */
    uint64 Chunks;     /**< chunks held, those of which parts are missing included */
    uint64 Bytes;      /**< bytes of chunks held */
    uint64 Requests;
    uint64 Puts; /**< chunks put */
    uint64 Gets; /**< chunks asked for */
    uint64 Hits;
    uint64 Misses;
    uint64 EvictedChunks;
    uint64 ExpiredParts;
    uint64 MigratedOut;
    uint64 MigratedIn;
    uint64 Handovers; /**< rows in which something had to be handed over */
    uint64 Errors;    /**< packets answered with an error, all causes */
} KVC_HkTlm_Payload_t;

#endif
