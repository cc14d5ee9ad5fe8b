/**
 * @file
 * Checksums: the choice between the portable tables and the processor's own instructions.
 */
#include "sky_crc_accel.h"

#include <string.h>

#include "sky_crc_table.h"

/*
 * The choice of the implementation is the one exception to "no mutable globals". Every thread that finds it unknown works out the
 * same answer, and loads and stores are atomic, so races do no harm.
 */
enum
{
    CHOICE_UNKNOWN = 0,
    CHOICE_TABLE   = 1,
    CHOICE_ACCEL   = 2
};

#if defined(__GNUC__)
static int choice = CHOICE_UNKNOWN;
#define CHOICE_LOAD()       __atomic_load_n(&choice, __ATOMIC_RELAXED)
#define CHOICE_STORE(value) __atomic_store_n(&choice, (value), __ATOMIC_RELAXED)
#else
static volatile int choice = CHOICE_UNKNOWN;
#define CHOICE_LOAD()       (choice)
#define CHOICE_STORE(value) (choice = (value))
#endif

static int Accelerated(void)
{
    int now = CHOICE_LOAD();

    if (now == CHOICE_UNKNOWN)
    {
        now = CHOICE_TABLE + SKY_CrcAccel_Available();
        CHOICE_STORE(now);
    }
    return now == CHOICE_ACCEL;
}

void SKY_Crc_ForcePortable(int portable)
{
    CHOICE_STORE(portable != 0 ? CHOICE_TABLE : CHOICE_UNKNOWN);
}

const char *SKY_Crc_Implementation(void)
{
    return Accelerated() ? SKY_CrcAccel_Name() : "table";
}

uint16_t SKY_Crc16(uint16_t crc, const void *data, size_t len)
{
    return Accelerated() ? SKY_CrcAccel_16(crc, data, len) : SKY_Crc16_Table(crc, data, len);
}

uint32_t SKY_Crc32c(uint32_t crc, const void *data, size_t len)
{
    return ~(Accelerated() ? SKY_CrcAccel_32c(~crc, data, len) : SKY_Crc32c_Table(~crc, data, len));
}

uint8_t SKY_Xor8(uint8_t acc, const void *data, size_t len)
{
    const uint8_t *bytes   = data;
    uint64_t       lane[4] = {0, 0, 0, 0};

    for (; len >= sizeof(lane); bytes += sizeof(lane), len -= sizeof(lane))
    {
        uint64_t word[4];

        (void)memcpy(word, bytes, sizeof(word));
        lane[0] ^= word[0];
        lane[1] ^= word[1];
        lane[2] ^= word[2];
        lane[3] ^= word[3];
    }
    for (; len >= sizeof(lane[0]); bytes += sizeof(lane[0]), len -= sizeof(lane[0]))
    {
        uint64_t word;

        (void)memcpy(&word, bytes, sizeof(word));
        lane[0] ^= word;
    }
    lane[0] ^= lane[1] ^ lane[2] ^ lane[3];
    lane[0] ^= lane[0] >> 32;
    lane[0] ^= lane[0] >> 16;
    lane[0] ^= lane[0] >> 8;
    acc = (uint8_t)(acc ^ (lane[0] & 0xFFu));
    for (; len > 0u; ++bytes, --len)
    {
        acc = (uint8_t)(acc ^ bytes[0]);
    }
    return acc;
}
