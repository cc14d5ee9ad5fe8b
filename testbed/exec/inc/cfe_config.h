/**
 * @file
 * Version strings.
 */
#ifndef CFE_CONFIG_H
#define CFE_CONFIG_H

#include "common_types.h"

void CFE_Config_GetVersionString(char *Buf, size_t Size, const char *Component, const char *SrcVersion, const char *CodeName,
                                 const char *LastOffcRel);

#endif
