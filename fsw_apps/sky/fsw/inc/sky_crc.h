/**
 * @file
 * Checksums of the wire: CRC-16 as packet error control, CRC-32C over chunks, and the arithmetic to join them.
 *
 * Both CRCs are linear, so the CRC of two byte strings joined follows from theirs and the second's length. That is why a
 * satellite can answer a GET without touching the chunk: it joins the CRC of the header it just wrote with the CRC that it
 * verified when the chunk arrived. A bit that flips in memory meanwhile is then seen by the receiver.
 */
#ifndef SKY_CRC_H
#define SKY_CRC_H

#include <stddef.h>
#include <stdint.h>

#define SKY_CRC16_INIT 0xFFFFu /**< CRC-16/CCITT-FALSE: poly 0x1021, not reflected, no final xor (CCSDS 132.0-B, 4.1.6.2) */

/** Continue a CRC-16/CCITT-FALSE over @p len bytes; start with SKY_CRC16_INIT. */
uint16_t SKY_Crc16(uint16_t crc, const void *data, size_t len);

/** Return the CRC-16 of "A then B" from the running value after A, the CRC of B started from zero, and B's length. */
uint16_t SKY_Crc16_Join(uint16_t crc_a, uint16_t crc_b_from_zero, size_t len_b);

/** Continue a CRC-32C (Castagnoli, RFC 3720 B.4) over @p len bytes; start with 0. */
uint32_t SKY_Crc32c(uint32_t crc, const void *data, size_t len);

/** Continue an XOR over @p len bytes (cFS command checksum; a whole command XORs with 0xFF to 0). */
uint8_t SKY_Xor8(uint8_t acc, const void *data, size_t len);

/** Return the implementation in use: "pclmul+sse4.2", "pmull+crc32" or "table". The first call chooses the best that the processor
 *  has. All give the same values, so this word of state, the only one of the core, changes nothing. */
const char *SKY_Crc_Implementation(void);

/** Use the portable tables from now on, everywhere in the program (tests and comparisons). 0: the best implementation again. */
void SKY_Crc_ForcePortable(int portable);

#endif
