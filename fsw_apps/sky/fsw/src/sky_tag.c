/**
 * @file
 * Tags of packets: see sky_tag.h.
 */
#include "sky_tag.h"

#include "sky_assert.h"

#define PARTS 2u /* head and payload */

/* Find what a tag covers. @return the number of parts */
static uint32_t Cover(const SKY_Packet_t *pkt, const uint8_t *head, size_t head_len, SKY_CryptoPart_t *parts)
{
    SKY_ASSERT(pkt->security != SKY_SUITE_NONE);
    SKY_ASSERT(head_len >= SKY_REQUEST_HEAD);
    parts[0] = (SKY_CryptoPart_t){head, head_len};
    parts[1] = (SKY_CryptoPart_t){pkt->payload, pkt->length};
    return pkt->length > 0u && SKY_Packet_TagCoversPayload(pkt) ? PARTS : PARTS - 1u;
}

size_t SKY_Tag_EncodeAround(const SKY_Packet_t *pkt, const SKY_TagKey_t *key, const uint16_t *payload_crc16, uint8_t *head,
                            uint8_t *tail)
{
    const size_t     head_len = SKY_Packet_EncodeHead(pkt, head);
    SKY_CryptoPart_t parts[PARTS];
    uint8_t          tag[SKY_TAG_BYTES];
    uint32_t         count;

    SKY_ASSERT((key != NULL) == (pkt->security != SKY_SUITE_NONE));
    SKY_ASSERT(key == NULL || (key->pair != NULL) == (pkt->security == SKY_SUITE_HANDSHAKE));
    if (head_len == 0u || key == NULL)
    {
        if (head_len > 0u)
        {
            SKY_Packet_Finish(pkt, payload_crc16, NULL, head, tail);
        }
        return head_len;
    }
    count = Cover(pkt, head, head_len, parts);
    if (key->pair != NULL)
    {
        SKY_Handshake_Tag(key->crypto, key->pair, parts, count, key->word, tag);
    }
    else if (!key->crypto->Tag(key->crypto->context, key->place, pkt->sequence, parts, count, tag))
    {
        return 0;
    }
    SKY_Packet_Finish(pkt, payload_crc16, tag, head, tail);
    return head_len;
}

bool SKY_Tag_IsRight(const SKY_Packet_t *pkt, const SKY_TagKey_t *key)
{
    uint8_t          head[SKY_HEAD_MAX];
    const size_t     head_len = SKY_Packet_Authenticated(pkt, head);
    SKY_CryptoPart_t parts[PARTS];
    const uint32_t   count = Cover(pkt, head, head_len, parts);

    SKY_ASSERT(pkt->tag != NULL);
    SKY_ASSERT((key->pair != NULL) == (pkt->security == SKY_SUITE_HANDSHAKE));
    return key->pair != NULL ? SKY_Handshake_IsTag(key->crypto, key->pair, parts, count, key->word, pkt->tag)
                             : SKY_Crypto_IsTag(key->crypto, key->place, pkt->sequence, parts, count, pkt->tag);
}
