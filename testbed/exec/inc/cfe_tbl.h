/**
 * @file
 * Table services.
 */
#ifndef CFE_TBL_H
#define CFE_TBL_H

#include "cfe_error.h"
#include "cfe_mission_cfg.h"
#include "cfe_resourceid.h"

#define CFE_TBL_OPT_SNGL_BUFFER  (0x0000)
#define CFE_TBL_OPT_DBL_BUFFER   (0x0001)
#define CFE_TBL_OPT_LOAD_DUMP    (0x0000)
#define CFE_TBL_OPT_DUMP_ONLY    (0x0002)
#define CFE_TBL_OPT_NOT_USR_DEF  (0x0000)
#define CFE_TBL_OPT_USR_DEF_ADDR (0x0006)
#define CFE_TBL_OPT_NOT_CRITICAL (0x0000)
#define CFE_TBL_OPT_CRITICAL     (0x0008)
#define CFE_TBL_OPT_DEFAULT      (CFE_TBL_OPT_SNGL_BUFFER | CFE_TBL_OPT_LOAD_DUMP)

typedef CFE_RESOURCEID_BASE_TYPE CFE_TBL_HandleId_t;
typedef CFE_TBL_HandleId_t       CFE_TBL_Handle_t;

#define CFE_TBL_BAD_TABLE_HANDLE   ((CFE_TBL_Handle_t)CFE_RESOURCEID_WRAP(CFE_RESOURCEID_UNDEFINED))
#define CFE_TBL_HANDLE_EQ(x, y)    CFE_RESOURCEID_TEST_EQUAL(x, y)
#define CFE_TBL_HANDLE_INT(x)      CFE_RESOURCEID_TO_ULONG(x)
#define CFE_TBL_HANDLE_IS_VALID(x) CFE_RESOURCEID_TEST_DEFINED(x)

/** Validate a table image before it becomes the table. @return CFE_SUCCESS, or a negative value of the app's choice */
typedef int32 (*CFE_TBL_CallbackFuncPtr_t)(void *TblPtr);

typedef enum CFE_TBL_SrcEnum
{
    CFE_TBL_SRC_FILE = 0,
    CFE_TBL_SRC_ADDRESS
} CFE_TBL_SrcEnum_t;

CFE_Status_t CFE_TBL_Register(CFE_TBL_Handle_t *TblHandlePtr, const char *Name, size_t Size, uint16 TblOptionFlags,
                              CFE_TBL_CallbackFuncPtr_t TblValidationFuncPtr);
CFE_Status_t CFE_TBL_Load(CFE_TBL_Handle_t TblHandle, CFE_TBL_SrcEnum_t SrcType, const void *SrcDataPtr);
CFE_Status_t CFE_TBL_Manage(CFE_TBL_Handle_t TblHandle);
/** Let table services act. @return CFE_SUCCESS, CFE_TBL_INFO_UPDATED the first time after a load, or an error */
CFE_Status_t CFE_TBL_GetAddress(void **TblPtr, CFE_TBL_Handle_t TblHandle);
CFE_Status_t CFE_TBL_ReleaseAddress(CFE_TBL_Handle_t TblHandle);

#endif
