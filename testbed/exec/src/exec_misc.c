/**
 * @file
 * Small services: system log, performance marks, versions, processor and spacecraft ids, time.
 */
#include <string.h>

#include "cfe_config.h"
#include "exec_priv.h"

/* Seconds from 1970-01-01 to cFE's default epoch, 1980-01-06. */
#define EPOCH_UNIX_S 315964800

CFE_Status_t CFE_ES_WriteToSysLog(const char *SpecStringPtr, ...)
{
    va_list arguments;
    if (SpecStringPtr == NULL)
    {
        return CFE_ES_BAD_ARGUMENT;
    }
    va_start(arguments, SpecStringPtr);
    EXEC_Print(CFE_EVS_EventType_ERROR, "ES", SpecStringPtr, arguments); /* apps and executive write nothing else there */
    va_end(arguments);
    return CFE_SUCCESS;
}

void OS_printf(const char *string, ...)
{
    va_list arguments;
    va_start(arguments, string);
    EXEC_Print(CFE_EVS_EventType_INFORMATION, "OS", string, arguments);
    va_end(arguments);
}

void CFE_ES_PerfLogAdd(uint32 Marker, uint32 EntryExit)
{
    (void)Marker;
    (void)EntryExit;
}

void CFE_Config_GetVersionString(char *Buf, size_t Size, const char *Component, const char *SrcVersion, const char *CodeName,
                                 const char *LastOffcRel)
{
    (void)snprintf(Buf, Size, "%s %s (%s), last release %s", Component, SrcVersion, CodeName, LastOffcRel);
}

uint32 CFE_PSP_GetProcessorId(void)
{
    return EXEC_Config.processor_id;
}

uint32 CFE_PSP_GetSpacecraftId(void)
{
    return EXEC_Config.spacecraft_id;
}

CFE_TIME_SysTime_t CFE_TIME_GetTime(void)
{
    struct timespec    now = {0, 0};
    CFE_TIME_SysTime_t time;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    time.Seconds    = (uint32)(now.tv_sec - EPOCH_UNIX_S);
    time.Subseconds = (uint32)(((uint64)now.tv_nsec << 32) / 1000000000u);
    return time;
}

uint32 CFE_TIME_Sub2MicroSecs(uint32 SubSeconds)
{
    return (uint32)(((uint64)SubSeconds * 1000000u) >> 32);
}
