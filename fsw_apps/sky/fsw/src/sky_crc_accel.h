/**
 * @file
 * Private to sky_crc*.c: what the file of one processor family offers to the dispatch in sky_crc.c.
 */
#ifndef SKY_CRC_ACCEL_H
#define SKY_CRC_ACCEL_H

#include "sky_crc_table.h"

#if defined(__GNUC__) && (defined(__x86_64__) || (defined(__aarch64__) && defined(__AARCH64EL__)))

/** 1 if the processor that runs this has the instructions, else 0. */
int         SKY_CrcAccel_Available(void);
const char *SKY_CrcAccel_Name(void);
uint16_t    SKY_CrcAccel_16(uint16_t crc, const uint8_t *data, size_t len);
uint32_t    SKY_CrcAccel_32c(uint32_t crc, const uint8_t *data, size_t len);

#else

/* This family has no file: the dispatch finds nothing better than the tables. */
#define SKY_CrcAccel_Available() 0
#define SKY_CrcAccel_Name()      "table"
#define SKY_CrcAccel_16          SKY_Crc16_Table
#define SKY_CrcAccel_32c         SKY_Crc32c_Table

#endif

#endif
