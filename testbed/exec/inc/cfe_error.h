/**
 * @file
 * Results of the cFE functions that the executive offers. Negative values are errors, positive ones information.
 */
#ifndef CFE_ERROR_H
#define CFE_ERROR_H

#include "osapi.h"

typedef int32 CFE_Status_t;

#define CFE_STATUS_C(x) ((CFE_Status_t)(x))

#define CFE_SUCCESS ((CFE_Status_t)0)

#define CFE_STATUS_NO_COUNTER_INCREMENT   ((CFE_Status_t)0x48000001)
#define CFE_STATUS_WRONG_MSG_LENGTH       ((CFE_Status_t)0xc8000002)
#define CFE_STATUS_UNKNOWN_MSG_ID         ((CFE_Status_t)0xc8000003)
#define CFE_STATUS_BAD_COMMAND_CODE       ((CFE_Status_t)0xc8000004)
#define CFE_STATUS_EXTERNAL_RESOURCE_FAIL ((CFE_Status_t)0xc8000005)
#define CFE_STATUS_VALIDATION_FAILURE     ((CFE_Status_t)0xc8000007)
#define CFE_STATUS_RANGE_ERROR            ((CFE_Status_t)0xc8000008)
#define CFE_STATUS_INCORRECT_STATE        ((CFE_Status_t)0xc8000009)
#define CFE_STATUS_NOT_IMPLEMENTED        ((CFE_Status_t)0xc800ffff)

#define CFE_EVS_UNKNOWN_FILTER     ((CFE_Status_t)0xc2000001)
#define CFE_EVS_APP_NOT_REGISTERED ((CFE_Status_t)0xc2000002)
#define CFE_EVS_APP_ILLEGAL_APP_ID ((CFE_Status_t)0xc2000003)
#define CFE_EVS_INVALID_PARAMETER  ((CFE_Status_t)0xc2000008)
#define CFE_EVS_APP_SQUELCHED      ((CFE_Status_t)0xc2000009)

#define CFE_ES_ERR_RESOURCEID_NOT_VALID        ((CFE_Status_t)0xc4000001)
#define CFE_ES_ERR_APP_CREATE                  ((CFE_Status_t)0xc4000004)
#define CFE_ES_ERR_CHILD_TASK_CREATE           ((CFE_Status_t)0xc4000005)
#define CFE_ES_ERR_MEM_BLOCK_SIZE              ((CFE_Status_t)0xc4000008)
#define CFE_ES_BAD_ARGUMENT                    ((CFE_Status_t)0xc400000a)
#define CFE_ES_ERR_CHILD_TASK_DELETE           ((CFE_Status_t)0xc4000018)
#define CFE_ES_ERR_CHILD_TASK_DELETE_MAIN_TASK ((CFE_Status_t)0xc4000019)
#define CFE_ES_BUFFER_NOT_IN_POOL              ((CFE_Status_t)0xc4000025)
#define CFE_ES_OPERATION_TIMED_OUT             ((CFE_Status_t)0xc4000027)
#define CFE_ES_NO_RESOURCE_IDS_AVAILABLE       ((CFE_Status_t)0xc400002B)
#define CFE_ES_POOL_BLOCK_INVALID              ((CFE_Status_t)0xc400002C)
#define CFE_ES_ERR_DUPLICATE_NAME              ((CFE_Status_t)0xc400002E)
#define CFE_ES_NOT_IMPLEMENTED                 ((CFE_Status_t)0xc400ffff)

#define CFE_SB_TIME_OUT       ((CFE_Status_t)0xca000001)
#define CFE_SB_NO_MESSAGE     ((CFE_Status_t)0xca000002)
#define CFE_SB_BAD_ARGUMENT   ((CFE_Status_t)0xca000003)
#define CFE_SB_MAX_PIPES_MET  ((CFE_Status_t)0xca000004)
#define CFE_SB_PIPE_CR_ERR    ((CFE_Status_t)0xca000005)
#define CFE_SB_PIPE_RD_ERR    ((CFE_Status_t)0xca000006)
#define CFE_SB_MSG_TOO_BIG    ((CFE_Status_t)0xca000007)
#define CFE_SB_BUF_ALOC_ERR   ((CFE_Status_t)0xca000008)
#define CFE_SB_MAX_MSGS_MET   ((CFE_Status_t)0xca000009)
#define CFE_SB_MAX_DESTS_MET  ((CFE_Status_t)0xca00000a)
#define CFE_SB_WRONG_MSG_TYPE ((CFE_Status_t)0xca00000d)
#define CFE_SB_BUFFER_INVALID ((CFE_Status_t)0xca00000e)

#define CFE_TBL_ERR_INVALID_HANDLE       ((CFE_Status_t)0xcc000001)
#define CFE_TBL_ERR_INVALID_NAME         ((CFE_Status_t)0xcc000002)
#define CFE_TBL_ERR_INVALID_SIZE         ((CFE_Status_t)0xcc000003)
#define CFE_TBL_INFO_UPDATE_PENDING      ((CFE_Status_t)0x4c000004)
#define CFE_TBL_ERR_NEVER_LOADED         ((CFE_Status_t)0xcc000005)
#define CFE_TBL_ERR_REGISTRY_FULL        ((CFE_Status_t)0xcc000006)
#define CFE_TBL_WARN_DUPLICATE           ((CFE_Status_t)0x4c000007)
#define CFE_TBL_ERR_NO_ACCESS            ((CFE_Status_t)0xcc000008)
#define CFE_TBL_ERR_DUPLICATE_DIFF_SIZE  ((CFE_Status_t)0xcc00000C)
#define CFE_TBL_ERR_DUPLICATE_NOT_OWNED  ((CFE_Status_t)0xcc00000D)
#define CFE_TBL_INFO_UPDATED             ((CFE_Status_t)0x4c00000E)
#define CFE_TBL_ERR_DUMP_ONLY            ((CFE_Status_t)0xcc000010)
#define CFE_TBL_ERR_ILLEGAL_SRC_TYPE     ((CFE_Status_t)0xcc000011)
#define CFE_TBL_ERR_FILE_TOO_LARGE       ((CFE_Status_t)0xcc000014)
#define CFE_TBL_INFO_TABLE_LOCKED        ((CFE_Status_t)0x4c000018)
#define CFE_TBL_ERR_FILENAME_TOO_LONG    ((CFE_Status_t)0xcc00001F)
#define CFE_TBL_ERR_FILE_FOR_WRONG_TABLE ((CFE_Status_t)0xcc000020)
#define CFE_TBL_WARN_PARTIAL_LOAD        ((CFE_Status_t)0x4c000022)
#define CFE_TBL_ERR_PARTIAL_LOAD         ((CFE_Status_t)0xcc000023)
#define CFE_TBL_ERR_INVALID_OPTIONS      ((CFE_Status_t)0xcc000025)
#define CFE_TBL_WARN_NOT_CRITICAL        ((CFE_Status_t)0x4c000026)
#define CFE_TBL_ERR_ACCESS               ((CFE_Status_t)0xcc00002c)
#define CFE_TBL_BAD_ARGUMENT             ((CFE_Status_t)0xcc00002d)

#endif
