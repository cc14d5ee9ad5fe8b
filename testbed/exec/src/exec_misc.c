/**
 * @file
 * Small services: system log, checksums, performance marks, versions, processor and spacecraft ids, time.
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
    EXEC_Print(SpecStringPtr, arguments);
    va_end(arguments);
    return CFE_SUCCESS;
}

void OS_printf(const char *string, ...)
{
    va_list arguments;
    va_start(arguments, string);
    EXEC_Print(string, arguments);
    va_end(arguments);
}

/* CRC-16/ARC is the only one that cFE implements; the others give 0 there too. */
uint32 CFE_ES_CalculateCRC(const void *DataPtr, size_t DataLength, uint32 InputCRC, CFE_ES_CrcType_Enum_t TypeCRC)
{
    if (TypeCRC != CFE_ES_CrcType_16_ARC || DataPtr == NULL)
    {
        return 0;
    }
    const uint8 *bytes = DataPtr;
    uint32       crc   = InputCRC & 0xFFFFu;
    for (size_t i = 0; i < DataLength; ++i)
    {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit)
        {
            crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xA001u : 0u);
        }
    }
    return crc;
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

CFE_TIME_SysTime_t CFE_TIME_Subtract(CFE_TIME_SysTime_t Time1, CFE_TIME_SysTime_t Time2)
{
    const uint64       a          = ((uint64)Time1.Seconds << 32) | Time1.Subseconds;
    const uint64       b          = ((uint64)Time2.Seconds << 32) | Time2.Subseconds;
    const uint64       difference = a - b;
    CFE_TIME_SysTime_t time;
    time.Seconds    = (uint32)(difference >> 32);
    time.Subseconds = (uint32)difference;
    return time;
}

CFE_TIME_Compare_t CFE_TIME_Compare(CFE_TIME_SysTime_t TimeA, CFE_TIME_SysTime_t TimeB)
{
    const uint32 ahead = TimeA.Seconds - TimeB.Seconds;
    if (ahead == 0)
    {
        return TimeA.Subseconds == TimeB.Subseconds ? CFE_TIME_EQUAL
                                                    : (TimeA.Subseconds > TimeB.Subseconds ? CFE_TIME_A_GT_B : CFE_TIME_A_LT_B);
    }
    const bool half = ahead == 0x80000000u && TimeA.Seconds > TimeB.Seconds; /* half way round the numbers decide */
    return ahead < 0x80000000u || half ? CFE_TIME_A_GT_B : CFE_TIME_A_LT_B;
}

uint32 CFE_TIME_Sub2MicroSecs(uint32 SubSeconds)
{
    return (uint32)(((uint64)SubSeconds * 1000000u) >> 32);
}
