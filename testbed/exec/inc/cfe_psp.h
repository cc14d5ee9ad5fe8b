/**
 * @file
 * Who this processor is.
 */
#ifndef CFE_PSP_H
#define CFE_PSP_H

#include "common_types.h"

uint32 CFE_PSP_GetProcessorId(void);
uint32 CFE_PSP_GetSpacecraftId(void);

#endif
