/**
 * @file
 * Event services.
 */
#ifndef CFE_EVS_H
#define CFE_EVS_H

#include "cfe_error.h"
#include "cfe_evs_extern_typedefs.h"

/* Masks of binary filters: an event is sent when (its count so far & mask) is 0. */
#define CFE_EVS_NO_FILTER        0x0000
#define CFE_EVS_FIRST_ONE_STOP   0xFFFF
#define CFE_EVS_FIRST_TWO_STOP   0xFFFE
#define CFE_EVS_FIRST_4_STOP     0xFFFC
#define CFE_EVS_FIRST_8_STOP     0xFFF8
#define CFE_EVS_FIRST_16_STOP    0xFFF0
#define CFE_EVS_FIRST_32_STOP    0xFFE0
#define CFE_EVS_FIRST_64_STOP    0xFFC0
#define CFE_EVS_EVERY_OTHER_ONE  0x0001
#define CFE_EVS_EVERY_OTHER_TWO  0x0002
#define CFE_EVS_EVERY_FOURTH_ONE 0x0003

typedef struct CFE_EVS_BinFilter
{
    uint16 EventID;
    uint16 Mask;
} CFE_EVS_BinFilter_t;

CFE_Status_t CFE_EVS_Register(const void *Filters, uint16 NumEventFilters, uint16 FilterScheme);
CFE_Status_t CFE_EVS_SendEvent(uint16 EventID, CFE_EVS_EventType_Enum_t EventType, const char *Spec, ...) OS_PRINTF(3, 4);

#endif
