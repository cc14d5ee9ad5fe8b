/**
 * @file
 * Types of the interface of the Software Bus.
 */
#ifndef CFE_SB_API_TYPEDEFS_H
#define CFE_SB_API_TYPEDEFS_H

#include "cfe_msg_hdr.h"
#include "cfe_sb_extern_typedefs.h"

#define CFE_SB_POLL         0
#define CFE_SB_PEND_FOREVER (-1)

#define CFE_SB_MSGID_WRAP_VALUE(val) \
    {                                \
        val                          \
    }
#define CFE_SB_MSGID_C(val)            ((CFE_SB_MsgId_t)CFE_SB_MSGID_WRAP_VALUE(val))
#define CFE_SB_MSGID_UNWRAP_VALUE(mid) ((mid).Value)
#define CFE_SB_MSGID_RESERVED          CFE_SB_MSGID_WRAP_VALUE(0)
#define CFE_SB_INVALID_MSG_ID          CFE_SB_MSGID_C(0)

#define CFE_SB_PIPEID_C(val) ((CFE_SB_PipeId_t)CFE_RESOURCEID_WRAP(val))
#define CFE_SB_INVALID_PIPE  CFE_SB_PIPEID_C(CFE_RESOURCEID_UNDEFINED)

#define CFE_SB_DEFAULT_QOS ((CFE_SB_Qos_t){0, 0})

/** A message, aligned for whatever it may hold. */
typedef union CFE_SB_Msg
{
    CFE_MSG_Message_t Msg;
    long long int     LongInt;
    long double       LongDouble;
} CFE_SB_Buffer_t;

#endif
