/**
 * @file
 * ISL: links and routing of a satellite, as a cFS app. The main task serves the Software Bus: commands, tables, housekeeping.
 * A child task handles packets (isl_task.h), another one telemetry for ground hosts (isl_tlm.h).
 */
#ifndef ISL_APP_H
#define ISL_APP_H

#include "cfe.h"
#include "isl_msg.h"
#include "isl_platform_cfg.h"
#include "isl_tbl.h"
#include "sky_lib.h"

#define ISL_CAUSES  SKY_STATUS_COUNT /**< causes of drops, by status */
#define ISL_REASONS 12u              /**< reasons for which security acts upon nothing: ISL_Security_Reasons */

typedef struct
{
    uint8            CommandCounter;
    uint8            CommandErrorCounter;
    uint32           RunStatus;
    CFE_SB_PipeId_t  Pipe;    /**< pipe of commands */
    CFE_SB_PipeId_t  TlmPipe; /**< pipe of telemetry for ground hosts */
    CFE_TBL_Handle_t NeighboursHandle;
    CFE_TBL_Handle_t LinksHandle;
    uint32           LocalIpv4; /**< address of the socket */
    uint16           LocalPort;
    uint32           DownlinkMid[ISL_DOWNLINK_MIDS]; /**< subscribed ids; 0: entry not used */
    uint64_t         Reported[ISL_CAUSES];           /**< drops at the last event of a cause */
    uint64_t         ReportedUs[ISL_CAUSES];
    uint64_t         Refused[ISL_REASONS]; /**< counts at the last event of a reason */
    uint64_t         RefusedUs[ISL_REASONS];
    uint32           LinksUp;     /**< bits of links that were up at the last event */
    bool             AssertsTold; /**< an event has told of the first failed assertion */
    ISL_HkTlm_t      Hk;
} ISL_Data_t;

extern ISL_Data_t ISL_Data;

/** Entry point (startup script). */
void ISL_AppMain(void);

#endif
