/**
 * @file
 * A table image in a C file. In cFS the object file is turned into a table file; here it is linked in, and CFE_TBL_Load finds it
 * under the name of that file.
 */
#ifndef CFE_TBL_FILEDEF_H
#define CFE_TBL_FILEDEF_H

#include "cfe_mission_cfg.h"
#include "common_types.h"

typedef struct CFE_TBL_FileDef
{
    const char *TableName; /**< "APP.Table" */
    const char *Description;
    const char *TgtFilename;
    const void *Object;
    uint32      ObjectSize;
} CFE_TBL_FileDef_t;

/* The build renames the variable CFE_TBL_FileDef for each table file: see cmake/cfe_apps.cmake. */
#define CFE_TBL_FILEDEF(ObjName, TblName, Desc, Filename) \
    extern const CFE_TBL_FileDef_t CFE_TBL_FileDef;       \
    const CFE_TBL_FileDef_t        CFE_TBL_FileDef = {#TblName, #Desc, #Filename, &(ObjName), sizeof(ObjName)};

#endif
