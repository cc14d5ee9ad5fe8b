/* Checksums: published check values, a bitwise reference, and every join. Each test runs with the tables and with the best. */
#include "sky_crc.h"

#include <string.h>

#include "check.h"

#define BYTES 70000u

static uint8_t data[BYTES];

static uint64_t Next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

/* The definitions, bit by bit. */
static uint16_t Reference16(uint16_t crc, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; ++i)
    {
        crc = (uint16_t)(crc ^ (bytes[i] << 8));
        for (int bit = 0; bit < 8; ++bit)
        {
            crc = (uint16_t)((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
        }
    }
    return crc;
}

static uint32_t Reference32c(uint32_t crc, const uint8_t *bytes, size_t len)
{
    crc = ~crc;
    for (size_t i = 0; i < len; ++i)
    {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; ++bit)
        {
            crc = (crc & 1u) != 0u ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
        }
    }
    return ~crc;
}

static void CheckValues(void)
{
    uint8_t zeros[32] = {0};
    uint8_t ones[32];

    (void)memset(ones, 0xFF, sizeof(ones));
    CHECK_EQ(SKY_Crc16(SKY_CRC16_INIT, "123456789", 9), 0x29B1);
    CHECK_EQ(SKY_Crc32c(0, "123456789", 9), 0xE3069283);
    CHECK_EQ(SKY_Crc32c(0, zeros, sizeof(zeros)), 0x8A9136AA); /* RFC 3720, B.4 */
    CHECK_EQ(SKY_Crc32c(0, ones, sizeof(ones)), 0x62A8AB43);
    CHECK_EQ(SKY_Crc16(0x1234, zeros, 0), 0x1234);
    CHECK_EQ(SKY_Crc32c(0x12345678, zeros, 0), 0x12345678);
}

static void EveryLengthAndAlignment(void)
{
    uint64_t random = 1;

    for (size_t len = 0; len < 400; ++len)
    {
        const size_t   at   = (size_t)(Next(&random) % 64u);
        const uint32_t from = (uint32_t)Next(&random);

        CHECK_EQ(SKY_Crc16((uint16_t)(from & 0xFFFFu), data + at, len), Reference16((uint16_t)(from & 0xFFFFu), data + at, len));
        CHECK_EQ(SKY_Crc32c(from, data + at, len), Reference32c(from, data + at, len));
    }
    CHECK_EQ(SKY_Crc16(SKY_CRC16_INIT, data, BYTES), Reference16(SKY_CRC16_INIT, data, BYTES));
    CHECK_EQ(SKY_Crc32c(0, data, BYTES), Reference32c(0, data, BYTES));
}

static void Continues(void)
{
    for (size_t cut = 0; cut <= 300; ++cut)
    {
        CHECK_EQ(SKY_Crc16(SKY_Crc16(SKY_CRC16_INIT, data, cut), data + cut, 300 - cut), Reference16(SKY_CRC16_INIT, data, 300));
        CHECK_EQ(SKY_Crc32c(SKY_Crc32c(0, data, cut), data + cut, 300 - cut), Reference32c(0, data, 300));
        CHECK_EQ(SKY_Xor8(SKY_Xor8(0x5A, data, cut), data + cut, 300 - cut), SKY_Xor8(0x5A, data, 300));
    }
}

static void Joins(void)
{
    static const size_t lens[] = {0, 1, 15, 16, 17, 255, 256, 4095, 4096, 6000, 6144, 32766, 32767, 32768, 61440, 65507};

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); ++i)
    {
        const size_t   len  = lens[i];
        const size_t   head = BYTES - len < 116 ? BYTES - len : 116;
        const uint16_t a    = SKY_Crc16(SKY_CRC16_INIT, data, head);
        const uint16_t b    = SKY_Crc16(0, data + head, len);

        CHECK_EQ(SKY_Crc16_Join(a, b, len), Reference16(SKY_CRC16_INIT, data, head + len));
    }
    for (size_t len = 0; len < 3000; ++len)
    {
        CHECK_EQ(SKY_Crc16_Join(0xABCD, Reference16(0, data, 7), len + 7),
                 SKY_Crc16_Join(SKY_Crc16_Join(0xABCD, 0, len), Reference16(0, data, 7), 7));
    }
}

static void Xors(void)
{
    for (size_t len = 0; len < 200; ++len)
    {
        uint8_t expected = 0xFF;

        for (size_t i = 0; i < len; ++i)
        {
            expected = (uint8_t)(expected ^ data[3 + i]);
        }
        CHECK_EQ(SKY_Xor8(0xFF, data + 3, len), expected);
    }
}

static void Chooses(void)
{
    SKY_Crc_ForcePortable(1);
    CHECK(strcmp(SKY_Crc_Implementation(), "table") == 0);
    SKY_Crc_ForcePortable(0);
    (void)printf("  best here: %s\n", SKY_Crc_Implementation());
    CHECK(SKY_Crc_Implementation()[0] != '\0');
}

int main(void)
{
    uint64_t random = 42;

    for (size_t i = 0; i < BYTES; ++i)
    {
        data[i] = (uint8_t)(Next(&random) & 0xFFu);
    }
    RUN(Chooses);
    for (int portable = 0; portable < 2; ++portable)
    {
        SKY_Crc_ForcePortable(portable);
        RUN(CheckValues);
        RUN(EveryLengthAndAlignment);
        RUN(Continues);
        RUN(Joins);
        RUN(Xors);
    }
    return CHECK_RESULT();
}
