/**
 * @file
 * Private to sky_code*.c: what the files of one processor family offer to the dispatch in sky_code.c.
 */
#ifndef SKY_CODE_ACCEL_H
#define SKY_CODE_ACCEL_H

#include "sky_code_table.h"

/* No family has a file: the dispatch finds nothing better than the tables. */
#define SKY_CodeAccel_Count()       0u
#define SKY_CodeAccel_Kernel(which) (&SKY_CodeTable_Kernel)

#endif
