/**
 * @file
 * Payloads of the commands and telemetry of KVC. Fields are naturally aligned, without implicit padding.
 */
#ifndef KVC_MSGDEFS_H
#define KVC_MSGDEFS_H

#include "common_types.h"
#include "kvc_fcncodes.h"
#include "kvc_interface_cfg.h"

typedef struct KVC_PurgeBlock_Payload
{
    uint32 Tenant;
    uint8  Key[KVC_KEY_BYTES];
} KVC_PurgeBlock_Payload_t;

typedef struct KVC_HkTlm_Payload
{
    uint8  CommandCounter;
    uint8  CommandErrorCounter;
    uint8  Serving; /**< 1: the satellite is known and the service runs */
    uint8  Spare;
    uint32 Slots; /**< of the store */
    uint32 SlotBytes;
    uint32 SlotsUsed;
    uint32 SlotsPartial; /**< chunks of which parts are missing */
    uint32 Blocks;
    uint64 StoreBytes; /**< memory of the store */
    uint64 Bytes;      /**< of chunks held */
    uint64 Requests;
    uint64 Puts; /**< chunks */
    uint64 Gets; /**< chunks asked for */
    uint64 Hits;
    uint64 Misses;
    uint64 EvictedChunks;
    uint64 ExpiredParts;
    uint64 MigratedOut;
    uint64 MigratedIn;
    uint64 Errors; /**< packets answered with an error, all causes */
} KVC_HkTlm_Payload_t;

#endif
