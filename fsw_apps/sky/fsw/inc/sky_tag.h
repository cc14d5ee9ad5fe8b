/**
 * @file
 * Tags of packets: what a tag covers, how one is made, and whether one is right. After CCSDS 355.0-B-2 (SDLS), applied to Space Packets.
 *
 * A tag covers primary header, secondary header and SkyMemory header, with zeros in what changes on the way, and the payload. Suites of
 * headers leave out bytes of a chunk, which length and chunk_crc in the header bind.
 */
#ifndef SKY_TAG_H
#define SKY_TAG_H

#include "sky_handshake.h"
#include "sky_packet.h"

/** Key of a tag. */
typedef struct
{
    const SKY_Crypto_t *crypto;
    uint32_t            place; /**< place of the session key; not used by a handshake */
    const uint8_t      *pair;  /**< handshake: the pair key; else NULL */
    const uint8_t      *word;  /**< handshake: word of the request that is answered; NULL: the packet is the request */
} SKY_TagKey_t;

/**
 * Write a packet around its payload: as SKY_Packet_EncodeAround, with the tag that the packet's security suite asks for.
 * @param key   NULL for a packet without a security suite
 * @param tail  SKY_Packet_TailBytes
 * @return bytes written to @p head; 0 if the packet would be too large, or there is no key at the place
 */
size_t SKY_Tag_EncodeAround(const SKY_Packet_t *pkt, const SKY_TagKey_t *key, const uint16_t *payload_crc16, uint8_t *head,
                            uint8_t *tail);
/** Return true if the tag of a decoded packet, which has one, is the one that the key makes. */
bool SKY_Tag_IsRight(const SKY_Packet_t *pkt, const SKY_TagKey_t *key);

#endif
