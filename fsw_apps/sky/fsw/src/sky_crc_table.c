/**
 * @file
 * CRCs by tables, on any processor, and the arithmetic to join them.
 */
#include "sky_crc_table.h"

#include "sky_assert.h"

#define SLICES      8u     /* one step takes in a byte of each table */
#define CRC16_ORDER 32767u /* x^32767 = 1 modulo the polynomial of the CRC-16 */

/*
 * Both CRCs are linear: the table's entry for a byte is the XOR of the entries of its bits. So eight constants make 256
 * entries, here at compile time, and the program has no table that is written while it runs.
 */
#define BIT(byte, bit, value) ((((byte) >> (bit)) & 1u) != 0u ? (value) : 0u)
#define ENTRY(byte, b0, b1, b2, b3, b4, b5, b6, b7)                                                                    \
    (BIT(byte, 0, b0) ^ BIT(byte, 1, b1) ^ BIT(byte, 2, b2) ^ BIT(byte, 3, b3) ^ BIT(byte, 4, b4) ^ BIT(byte, 5, b5) ^ \
     BIT(byte, 6, b6) ^ BIT(byte, 7, b7))
#define ENTRY4(byte, ...) \
    ENTRY(byte, __VA_ARGS__), ENTRY((byte) + 1u, __VA_ARGS__), ENTRY((byte) + 2u, __VA_ARGS__), ENTRY((byte) + 3u, __VA_ARGS__)
#define ENTRY16(byte, ...)                                                                         \
    ENTRY4(byte, __VA_ARGS__), ENTRY4((byte) + 4u, __VA_ARGS__), ENTRY4((byte) + 8u, __VA_ARGS__), \
        ENTRY4((byte) + 12u, __VA_ARGS__)
#define ENTRY64(byte, ...)                                                                              \
    ENTRY16(byte, __VA_ARGS__), ENTRY16((byte) + 16u, __VA_ARGS__), ENTRY16((byte) + 32u, __VA_ARGS__), \
        ENTRY16((byte) + 48u, __VA_ARGS__)
#define TABLE(...)                                                                                                  \
    {                                                                                                               \
        ENTRY64(0u, __VA_ARGS__), ENTRY64(64u, __VA_ARGS__), ENTRY64(128u, __VA_ARGS__), ENTRY64(192u, __VA_ARGS__) \
    }

/* Slice s, bit b: x^(32 + 8 s + 7 - b) modulo 0x1EDC6F41, reflected. */
static const uint32_t crc32c_table[SLICES][256] = {
    TABLE(0xF26B8303u, 0xE13B70F7u, 0xC79A971Fu, 0x8AD958CFu, 0x105EC76Fu, 0x20BD8EDEu, 0x417B1DBCu, 0x82F63B78u),
    TABLE(0x13A29877u, 0x274530EEu, 0x4E8A61DCu, 0x9D14C3B8u, 0x3FC5F181u, 0x7F8BE302u, 0xFF17C604u, 0xFBC3FAF9u),
    TABLE(0xA541927Eu, 0x4F6F520Du, 0x9EDEA41Au, 0x38513EC5u, 0x70A27D8Au, 0xE144FB14u, 0xC76580D9u, 0x8B277743u),
    TABLE(0xDD45AAB8u, 0xBF672381u, 0x7B2231F3u, 0xF64463E6u, 0xE964B13Du, 0xD725148Bu, 0xABA65FE7u, 0x52A0C93Fu),
    TABLE(0x38116FACu, 0x7022DF58u, 0xE045BEB0u, 0xC5670B91u, 0x8F2261D3u, 0x1BA8B557u, 0x37516AAEu, 0x6EA2D55Cu),
    TABLE(0xEF306B19u, 0xDB8CA0C3u, 0xB2F53777u, 0x6006181Fu, 0xC00C303Eu, 0x85F4168Du, 0x0E045BEBu, 0x1C08B7D6u),
    TABLE(0x68032CC8u, 0xD0065990u, 0xA5E0C5D1u, 0x4E2DFD53u, 0x9C5BFAA6u, 0x3D5B83BDu, 0x7AB7077Au, 0xF56E0EF4u),
    TABLE(0x493C7D27u, 0x9278FA4Eu, 0x211D826Du, 0x423B04DAu, 0x847609B4u, 0x0D006599u, 0x1A00CB32u, 0x34019664u),
};

/* Slice s, bit b: x^(16 + 8 s + b) modulo 0x1021. */
static const uint16_t crc16_table[SLICES][256] = {
    TABLE(0x1021u, 0x2042u, 0x4084u, 0x8108u, 0x1231u, 0x2462u, 0x48C4u, 0x9188u),
    TABLE(0x3331u, 0x6662u, 0xCCC4u, 0x89A9u, 0x0373u, 0x06E6u, 0x0DCCu, 0x1B98u),
    TABLE(0x3730u, 0x6E60u, 0xDCC0u, 0xA9A1u, 0x4363u, 0x86C6u, 0x1DADu, 0x3B5Au),
    TABLE(0x76B4u, 0xED68u, 0xCAF1u, 0x85C3u, 0x1BA7u, 0x374Eu, 0x6E9Cu, 0xDD38u),
    TABLE(0xAA51u, 0x4483u, 0x8906u, 0x022Du, 0x045Au, 0x08B4u, 0x1168u, 0x22D0u),
    TABLE(0x45A0u, 0x8B40u, 0x06A1u, 0x0D42u, 0x1A84u, 0x3508u, 0x6A10u, 0xD420u),
    TABLE(0xB861u, 0x60E3u, 0xC1C6u, 0x93ADu, 0x377Bu, 0x6EF6u, 0xDDECu, 0xABF9u),
    TABLE(0x47D3u, 0x8FA6u, 0x0F6Du, 0x1EDAu, 0x3DB4u, 0x7B68u, 0xF6D0u, 0xFD81u),
};

/* Row r, column n: x^(8 n 16^r) modulo 0x1021; the product of one of each row moves a CRC-16 over any number of bytes. */
static const uint16_t crc16_shift[4][16] = {
    {0x0001u, 0x0100u, 0x1021u, 0x3331u, 0x3730u, 0x76B4u, 0xAA51u, 0x45A0u, 0xB861u, 0x47D3u, 0xEB23u, 0x6F45u, 0xD849u, 0x0375u,
     0x4563u, 0x7B61u},
    {0x0001u, 0xAEFCu, 0x8E29u, 0xCDE2u, 0x13FCu, 0xDA35u, 0x106Fu, 0xCBC5u, 0x36C4u, 0x400Cu, 0x30DFu, 0x0A5Du, 0x2764u, 0x0224u,
     0x46CFu, 0x6D5Au},
    {0x0001u, 0xFD50u, 0xAA9Eu, 0x26BDu, 0x881Cu, 0x21ECu, 0xDB20u, 0x2473u, 0x4458u, 0x8807u, 0x88B5u, 0x385Cu, 0x21EFu, 0xCCF1u,
     0xCBF0u, 0x2F9Fu},
    {0x0001u, 0x0002u, 0x0004u, 0x0008u, 0x0010u, 0x0020u, 0x0040u, 0x0080u, 0x0100u, 0x0200u, 0x0400u, 0x0800u, 0x1000u, 0x2000u,
     0x4000u, 0x8000u},
};

uint16_t SKY_Crc16_Table(uint16_t crc, const uint8_t *data, size_t len)
{
    uint32_t c = crc;

    for (; len >= SLICES; data += SLICES, len -= SLICES)
    {
        c = (uint32_t)crc16_table[7][data[0] ^ (c >> 8)] ^ crc16_table[6][data[1] ^ (c & 0xFFu)] ^ crc16_table[5][data[2]] ^
            crc16_table[4][data[3]] ^ crc16_table[3][data[4]] ^ crc16_table[2][data[5]] ^ crc16_table[1][data[6]] ^
            crc16_table[0][data[7]];
    }
    if (len > 1u) /* the remaining bytes do not wait for each other either */
    {
        c = (uint32_t)crc16_table[len - 1u][data[0] ^ (c >> 8)] ^ crc16_table[len - 2u][data[1] ^ (c & 0xFFu)];
        for (size_t i = 2; i < len; ++i)
        {
            c ^= crc16_table[len - 1u - i][data[i]];
        }
    }
    else if (len == 1u)
    {
        c = ((c << 8) & 0xFFFFu) ^ crc16_table[0][(c >> 8) ^ data[0]];
    }
    return (uint16_t)c;
}

uint32_t SKY_Crc32c_Table(uint32_t crc, const uint8_t *data, size_t len)
{
    for (; len >= SLICES; data += SLICES, len -= SLICES)
    {
        crc = crc32c_table[7][data[0] ^ (crc & 0xFFu)] ^ crc32c_table[6][data[1] ^ ((crc >> 8) & 0xFFu)] ^
              crc32c_table[5][data[2] ^ ((crc >> 16) & 0xFFu)] ^ crc32c_table[4][data[3] ^ (crc >> 24)] ^
              crc32c_table[3][data[4]] ^ crc32c_table[2][data[5]] ^ crc32c_table[1][data[6]] ^ crc32c_table[0][data[7]];
    }
    for (; len > 0u; ++data, --len)
    {
        crc = (crc >> 8) ^ crc32c_table[0][(crc ^ data[0]) & 0xFFu];
    }
    return crc;
}

/* Return a * b modulo the polynomial of the CRC-16. There are no branches, so the sixteen steps overlap. */
static uint32_t Crc16_Multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (uint32_t bit = 0; bit < 16u; ++bit)
    {
        product ^= (a << bit) & (0u - ((b >> bit) & 1u));
    }
    return (product & 0xFFFFu) ^ crc16_table[0][(product >> 16) & 0xFFu] ^ crc16_table[1][product >> 24];
}

uint16_t SKY_Crc16_Join(uint16_t crc_a, uint16_t crc_b_from_zero, size_t len_b)
{
    const uint32_t shift = (uint32_t)(len_b % CRC16_ORDER);
    /* two and two are multiplied, so that the products do not wait for each other */
    const uint32_t low  = Crc16_Multiply(crc_a, crc16_shift[0][shift & 15u]);
    const uint32_t high = Crc16_Multiply(crc16_shift[2][(shift >> 8) & 15u], crc16_shift[3][shift >> 12]);
    SKY_ASSERT(shift < CRC16_ORDER);
    SKY_ASSERT(low <= UINT16_MAX);
    SKY_ASSERT(high <= UINT16_MAX);

    return (uint16_t)(Crc16_Multiply(Crc16_Multiply(low, crc16_shift[1][(shift >> 4) & 15u]), high) ^ crc_b_from_zero);
}
