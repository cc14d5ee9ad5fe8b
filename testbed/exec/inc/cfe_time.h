/**
 * @file
 * Time services.
 */
#ifndef CFE_TIME_H
#define CFE_TIME_H

#include "cfe_error.h"
#include "cfe_time_extern_typedefs.h"

typedef enum CFE_TIME_Compare
{
    CFE_TIME_A_LT_B = -1,
    CFE_TIME_EQUAL  = 0,
    CFE_TIME_A_GT_B = 1
} CFE_TIME_Compare_t;

CFE_TIME_SysTime_t CFE_TIME_GetTime(void);
CFE_TIME_SysTime_t CFE_TIME_Subtract(CFE_TIME_SysTime_t Time1, CFE_TIME_SysTime_t Time2);
/** Compare two times. Times more than 2^31 s apart are taken to have rolled over. */
CFE_TIME_Compare_t CFE_TIME_Compare(CFE_TIME_SysTime_t TimeA, CFE_TIME_SysTime_t TimeB);
uint32             CFE_TIME_Sub2MicroSecs(uint32 SubSeconds);

#endif
