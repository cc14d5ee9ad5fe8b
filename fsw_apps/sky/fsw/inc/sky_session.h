/**
 * @file
 * An association from the side of who asked for it: a host with a satellite, or a satellite with another.
 *
 *     SKY_Session_IsDue        is a handshake to be sent now?
 *     SKY_Session_Ask          what is in it; the caller puts a tag on it (SKY_Handshake_Tag)
 *     SKY_Handshake_IsTag      is the response right? It answers the request id, and its tag covers session.word
 *     SKY_Session_Take         take it
 *     SKY_Session_NextSequence for each packet: tag with place_there, check answers with place_back
 *     SKY_Session_Doubt        somebody says `unauthenticated`, without a tag: ask anew, once a round trip at most. Until the answer, whose tag
 *                              is right, the old keys go on being used, so a forged word stops nothing
 *     SKY_Session_Confirm      an answer under the old keys has come: the word was wrong, or old
 *
 * Sans I/O: time, random words and the round trip come in as arguments. The pair key is the caller's and not kept here.
 */
#ifndef SKY_SESSION_H
#define SKY_SESSION_H

#include "sky_handshake.h"

typedef enum
{
    SKY_SESSION_NONE = 0,
    SKY_SESSION_ASKING,
    SKY_SESSION_ESTABLISHED,
    SKY_SESSION_DOUBTED /**< established, and asked for anew */
} SKY_SessionState_t;

typedef struct
{
    uint8_t  state;                /**< SKY_SessionState_t */
    uint8_t  wanted;               /**< suite to ask for */
    uint8_t  suite;                /**< the granted one, once established */
    uint8_t  word[SKY_WORD_BYTES]; /**< of the request; new for each association */
    uint32_t accepted;             /**< mask of suites to take: SKY_SUITE_BIT */
    uint32_t tries;                /**< requests sent with this word */
    uint32_t spi;                  /**< once established */
    uint32_t place_there;          /**< key of what is sent */
    uint32_t place_back;           /**< key of what is answered */
    uint64_t next_us;              /**< nothing is asked before */
    uint64_t sequence;             /**< last one that was sent */
    uint64_t answered;             /**< highest one of an answer: see SKY_Session_Confirm */
    uint64_t heard;                /**< highest one of an answer that SKY_Session_IsNewest was asked about */
} SKY_Session_t;

/**
 * Make a session that is not established.
 * @param wanted       SKY_SUITE_GMAC_HEADER .. SKY_SUITE_BLAKE2B_PACKET
 * @param accepted     mask of the suites to take; @p wanted is always among them
 * @param place_there  two different places of the caller's library, which are used by no other session
 */
void SKY_Session_Init(SKY_Session_t *session, uint8_t wanted, uint32_t accepted, uint32_t place_there, uint32_t place_back);
/** Return true if packets can be sent under it, and answers checked. */
static inline bool SKY_Session_IsUsable(const SKY_Session_t *session)
{
    return session->state >= SKY_SESSION_ESTABLISHED;
}
/** Return true if a handshake is to be sent now: there is no association, or one in doubt, and the last request is a round trip ago. */
bool SKY_Session_IsDue(const SKY_Session_t *session, uint64_t now_us);
/**
 * Write the payload of the handshake that is due. A request that was not answered is repeated with the same word.
 * @param random         16 random bytes; the word, if this is a new association
 * @param round_trip_us  the next request is not due before
 * @param payload        SKY_HANDSHAKE_REQUEST_BYTES
 * @return bytes written; 0 if none is due
 */
size_t SKY_Session_Ask(SKY_Session_t *session, const SKY_Credential_t *credential, const uint8_t random[SKY_WORD_BYTES],
                       uint64_t now_us, uint64_t round_trip_us, uint8_t *payload);
/**
 * Take a response whose tag was right; the session is established.
 * @param spi  from the header
 * @return false, and nothing changed, if the session does not ask, or the response is not one, or grants a suite that is not accepted. Also
 *         false if the library cannot do it; then a doubted session has ended
 */
bool SKY_Session_Take(SKY_Session_t *session, const SKY_Crypto_t *crypto, const uint8_t pair[SKY_CRYPTO_KEY_BYTES], uint32_t spi,
                      const uint8_t *payload, size_t bytes);
/** Return the next sequence number to send under; 0 if the session is not established or none is left. */
uint64_t SKY_Session_NextSequence(SKY_Session_t *session);
/**
 * Doubt an association after `unauthenticated`. One that was asked for less than a round trip ago is not doubted: the answer may be to a packet
 * of the one before.
 * @return true if it is doubted now, so that a handshake is due
 */
bool SKY_Session_Doubt(SKY_Session_t *session, uint64_t now_us);
/**
 * Note an answer with a right tag, by its sequence number. It ends a doubt if it was sent after all answers of before; one that somebody sends
 * again, after the other side has begun anew, does not.
 * @return true if it ended a doubt
 */
bool SKY_Session_Confirm(SKY_Session_t *session, uint64_t sequence);
/**
 * Return true if an answer with a right tag, by its sequence number, was sent after all those of before, and note it. One that was sent
 * again never is: so it is no sign of life, and no news.
 */
bool SKY_Session_IsNewest(SKY_Session_t *session, uint64_t sequence);
/** Erase the keys. */
void SKY_Session_End(SKY_Session_t *session, const SKY_Crypto_t *crypto);

#endif
