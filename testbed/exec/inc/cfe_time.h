/**
 * @file
 * Time services.
 */
#ifndef CFE_TIME_H
#define CFE_TIME_H

#include "cfe_error.h"
#include "cfe_time_extern_typedefs.h"

CFE_TIME_SysTime_t CFE_TIME_GetTime(void);
uint32             CFE_TIME_Sub2MicroSecs(uint32 SubSeconds);

#endif
