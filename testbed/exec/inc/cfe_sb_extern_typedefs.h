/**
 * @file
 * Types of the Software Bus that appear in other interfaces.
 */
#ifndef CFE_SB_EXTERN_TYPEDEFS_H
#define CFE_SB_EXTERN_TYPEDEFS_H

#include "cfe_mission_cfg.h"
#include "cfe_resourceid.h"

typedef uint32 CFE_SB_MsgId_Atom_t;

/** Message id. It is a structure, so that a number does not pass for one: CFE_SB_ValueToMsgId, CFE_SB_MSGID_WRAP_VALUE. */
typedef struct
{
    CFE_SB_MsgId_Atom_t Value;
} CFE_SB_MsgId_t;

typedef CFE_RESOURCEID_BASE_TYPE CFE_SB_PipeId_t;

typedef struct
{
    uint8 Priority;
    uint8 Reliability;
} CFE_SB_Qos_t;

#endif
