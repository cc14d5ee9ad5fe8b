/**
 * @file
 * Types of the executive services that appear in other interfaces.
 */
#ifndef CFE_ES_EXTERN_TYPEDEFS_H
#define CFE_ES_EXTERN_TYPEDEFS_H

#include "cfe_mission_cfg.h"
#include "cfe_resourceid.h"

enum CFE_ES_RunStatus
{
    CFE_ES_RunStatus_UNDEFINED              = 0,
    CFE_ES_RunStatus_APP_RUN                = 1,
    CFE_ES_RunStatus_APP_EXIT               = 2,
    CFE_ES_RunStatus_APP_ERROR              = 3,
    CFE_ES_RunStatus_SYS_EXCEPTION          = 4,
    CFE_ES_RunStatus_SYS_RESTART            = 5,
    CFE_ES_RunStatus_SYS_RELOAD             = 6,
    CFE_ES_RunStatus_SYS_DELETE             = 7,
    CFE_ES_RunStatus_CORE_APP_INIT_ERROR    = 8,
    CFE_ES_RunStatus_CORE_APP_RUNTIME_ERROR = 9,
    CFE_ES_RunStatus_MAX
};
typedef uint32 CFE_ES_RunStatus_Enum_t;

typedef CFE_RESOURCEID_BASE_TYPE CFE_ES_AppId_t;
typedef CFE_RESOURCEID_BASE_TYPE CFE_ES_TaskId_t;
typedef CFE_RESOURCEID_BASE_TYPE CFE_ES_MemHandle_t;

typedef uint16 CFE_ES_TaskPriority_Atom_t;

#endif
