/**
 * @file
 * Codec of one Space Packet (CCSDS 133.0-B-2) with the SkyMemory header: icd/skymemory.toml, docs/icd.md.
 *
 * Decoding trusts no length and no count of the packet. Encoding writes head and tail around a payload that stays where it
 * is, so that a chunk goes from the store to the socket without a copy.
 */
#ifndef SKY_PACKET_H
#define SKY_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sky_icd.h"

#define SKY_KEY_BYTES         SKY_LIMIT_KEY_BYTES
#define SKY_REQUEST_HEAD      (SKY_PRIMARY_BYTES + SKY_REQUEST_SECONDARY_BYTES + SKY_HEADER_BYTES)
#define SKY_RESPONSE_HEAD     (SKY_PRIMARY_BYTES + SKY_RESPONSE_SECONDARY_BYTES + SKY_HEADER_BYTES)
#define SKY_HEAD_MAX          SKY_RESPONSE_HEAD                   /**< bytes before the payload, at most */
#define SKY_TAIL_MAX          (SKY_TAG_BYTES + SKY_PEC_BYTES)     /**< bytes behind the payload, at most */
#define SKY_REQUEST_BYTES     (SKY_REQUEST_HEAD + SKY_PEC_BYTES)  /**< a request without payload and tag */
#define SKY_RESPONSE_BYTES    (SKY_RESPONSE_HEAD + SKY_PEC_BYTES) /**< a response without payload and tag */
#define SKY_REQUEST_OVERHEAD  (SKY_REQUEST_HEAD + SKY_TAIL_MAX)   /**< room for all but the payload, tag included */
#define SKY_RESPONSE_OVERHEAD (SKY_RESPONSE_HEAD + SKY_TAIL_MAX)
#define SKY_BASE_BYTES        (SKY_RESPONSE_BYTES - (SKY_HEADER_BYTES - SKY_BASE_HEADER_BYTES)) /**< SKY_Packet_EncodeBase */

/** Status codes are SKY_STATUS_*: the same on the wire and as results. */
typedef uint8_t SKY_Status_t;

/** A satellite (plane and slot from 1) or a ground host (plane 0, slot = host number). */
typedef struct
{
    uint16_t plane;
    uint16_t slot;
} SKY_Addr_t;

typedef enum
{
    SKY_SEQ_CONTINUE = 0,
    SKY_SEQ_FIRST    = 1,
    SKY_SEQ_LAST     = 2,
    SKY_SEQ_WHOLE    = 3
} SKY_SeqFlags_t;

/** All fields of a packet in host order. @c payload points into the datagram it was decoded from. */
typedef struct
{
    bool       is_request;
    uint16_t   apid;
    uint8_t    seq_flags; /**< SKY_SeqFlags_t */
    uint16_t   seq_count; /**< modulo 16384 */
    uint32_t   time_s;    /**< responses only */
    uint16_t   time_subs; /**< responses only: 1/65536 s */
    uint8_t    op;
    uint8_t    status;
    uint8_t    flags;
    uint8_t    hop_limit;
    uint8_t    security;
    uint16_t   credit;
    SKY_Addr_t src;
    SKY_Addr_t dst;
    SKY_Addr_t gateway;
    uint32_t   tenant;
    uint32_t   epoch;
    uint32_t   deadline_ms;
    uint64_t   request_id;
    uint8_t    key[SKY_KEY_BYTES];
    uint32_t   chunk_id;
    uint32_t   chunk_total;
    uint32_t   block_len;
    uint32_t   chunk_len;
    uint32_t   offset;
    uint32_t   length;
    uint32_t   chunk_crc;
    uint32_t   spi;
    uint64_t   sequence;
    uint8_t    code_k;
    uint8_t    code_m;
    uint8_t    code_scheme;
    uint8_t    track;
    uint32_t   content;
    uint64_t   block_version;
    uint64_t   cookie;
    SKY_Addr_t home; /**< PUT at a stand-in: whose share it is; all 0: the receiver's own */
    uint8_t    word; /**< SKY_WORD_* of the satellite that answers */

    const uint8_t *payload; /**< @c length bytes */
    const uint8_t *head;    /**< set by decoding: the datagram; not encoded */
    const uint8_t *tag;     /**< set by decoding: SKY_TAG_BYTES, NULL without a security suite; not encoded */
    uint16_t payload_crc16; /**< set by decoding: CRC-16 of the payload from zero, as SKY_Crc16_Join takes it; not encoded */
} SKY_Packet_t;

/**
 * Decode a datagram. Checks, in this order: size, primary header and its length against @p len, secondary header flag, PEC,
 * command checksum, function code against operation, header version and security suite, length, home, word and spare bytes, and
 * offset + length <= chunk_len <= SKY_LIMIT_CHUNK_BYTES when there is a chunk (PUT request, GET response with status ok). The tag is
 * not checked: that takes a key (SKY_Packet_Authenticated).
 *
 * The bytes are read once for the PEC (header and payload apart, which also gives payload_crc16) and, in requests, once
 * for the checksum. Nothing is copied.
 *
 * @return SKY_STATUS_OK, or why not: SHORT, BAD_HEADER, BAD_LENGTH, BAD_CRC, BAD_CHECKSUM, BAD_VERSION (also: an unknown
 *         security suite), BAD_CHUNK. If PEC and checksum are right, @p pkt is filled (after an error without payload), so that
 *         an answer can be addressed; else is_request is false, nothing else is set, and nobody is to be answered.
 */
SKY_Status_t SKY_Packet_Decode(const uint8_t *data, size_t len, SKY_Packet_t *pkt);

/** Return the bytes behind the payload: SKY_PEC_BYTES, or with a security suite SKY_TAIL_MAX. */
uint32_t SKY_Packet_TailBytes(const SKY_Packet_t *pkt);

/**
 * Write everything before the payload into @p head (SKY_HEAD_MAX bytes), with zeros in the fields that may change on the way: as a tag
 * covers it.
 * @return bytes written to @p head; 0 if the packet would exceed SKY_LIMIT_PACKET_BYTES
 */
size_t SKY_Packet_EncodeHead(const SKY_Packet_t *pkt, uint8_t *head);

/**
 * Complete a head of SKY_Packet_EncodeHead by the fields that may change on the way and the checksum, and write what stands behind the
 * payload into @p tail: the tag, if there is one, and the PEC.
 *
 * @param payload_crc16  CRC-16 of the payload started from zero, if the caller has it, else NULL: then the payload is read. The
 *                       checksum of a request needs the payload's XOR and therefore always reads the payload.
 * @param tag            SKY_TAG_BYTES with a security suite, else NULL
 * @param tail           SKY_Packet_TailBytes
 */
void SKY_Packet_Finish(const SKY_Packet_t *pkt, const uint16_t *payload_crc16, const uint8_t *tag, uint8_t *head, uint8_t *tail);

/** Write a packet without a security suite around its payload: SKY_Packet_EncodeHead and SKY_Packet_Finish. */
size_t SKY_Packet_EncodeAround(const SKY_Packet_t *pkt, const uint16_t *payload_crc16, uint8_t *head, uint8_t *tail);

/** Encode a whole packet without a security suite into @p out. @return its size, 0 if @p cap is too small. */
size_t SKY_Packet_Encode(const SKY_Packet_t *pkt, uint8_t *out, size_t cap);

/** Return true if a decoded packet, or one that was refused and can be answered, has a header of our version. */
bool SKY_Packet_IsOurs(const SKY_Packet_t *pkt);

/**
 * Write a response without payload and tag for who speaks another version: it has the fields that every version has, and no others.
 * @param out  SKY_BASE_BYTES
 */
void SKY_Packet_EncodeBase(const SKY_Packet_t *pkt, uint8_t *out);

/** Return true if the tag of a packet covers its payload: always, but for bytes of a chunk under a suite of headers alone. */
bool SKY_Packet_TagCoversPayload(const SKY_Packet_t *pkt);

/**
 * Write the head of a decoded packet as its tag covers it. @param head  SKY_HEAD_MAX bytes
 * @return bytes written
 */
size_t SKY_Packet_Authenticated(const SKY_Packet_t *pkt, uint8_t *head);

/**
 * Change the mutable fields of an encoded packet in place: hop limit and gateway; checksum and PEC follow by difference, so
 * that damage to anything else stays visible to the receiver. @p data must have passed SKY_Packet_Decode.
 */
void SKY_Packet_Relabel(uint8_t *data, size_t len, uint8_t hop_limit, SKY_Addr_t gateway);

/** Make @p reply the response to @p req: same operation, request id, tenant, key, chunk fields; src and dst exchanged.
 *  Version, content and word are 0, as those of an answer are of what the satellite holds, and of itself. */
void SKY_Packet_Reply(const SKY_Packet_t *req, SKY_Addr_t self, SKY_Status_t status, SKY_Packet_t *reply);

static inline bool SKY_Addr_Equal(SKY_Addr_t a, SKY_Addr_t b)
{
    return a.plane == b.plane && a.slot == b.slot;
}

/** Write the time of a response. @param time_us  satellite time, from whatever epoch the mission has */
void SKY_Packet_SetTime(SKY_Packet_t *pkt, uint64_t time_us);

#endif
