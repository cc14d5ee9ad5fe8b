/**
 * @file
 * Private to sky_crc*.c: CRCs by tables. The fast code uses them for what is left over.
 */
#ifndef SKY_CRC_TABLE_H
#define SKY_CRC_TABLE_H

#include "sky_crc.h"

uint16_t SKY_Crc16_Table(uint16_t crc, const uint8_t *data, size_t len);
/** @p crc is the register itself, without the inversions at start and end. */
uint32_t SKY_Crc32c_Table(uint32_t crc, const uint8_t *data, size_t len);

#endif
