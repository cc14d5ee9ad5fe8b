/**
 * @file
 * The initiator's side of an association: see sky_session.h.
 */
#include "sky_session.h"

#include <string.h>

#include "sky_assert.h"

void SKY_Session_Init(SKY_Session_t *session, uint8_t wanted, uint32_t accepted, uint32_t place_there, uint32_t place_back)
{
    SKY_ASSERT(wanted >= SKY_SUITE_GMAC_HEADER);
    SKY_ASSERT(wanted <= SKY_SUITE_BLAKE2B_PACKET);
    SKY_ASSERT(place_there != place_back);
    (void)memset(session, 0, sizeof(*session));
    session->wanted      = wanted;
    session->accepted    = accepted | SKY_SUITE_BIT(wanted);
    session->place_there = place_there;
    session->place_back  = place_back;
}

bool SKY_Session_IsDue(const SKY_Session_t *session, uint64_t now_us)
{
    SKY_ASSERT(session->state <= SKY_SESSION_DOUBTED);
    SKY_ASSERT(session->place_there != session->place_back);
    return session->state != SKY_SESSION_ESTABLISHED && now_us >= session->next_us;
}

size_t SKY_Session_Ask(SKY_Session_t *session, const SKY_Credential_t *credential, const uint8_t random[SKY_WORD_BYTES],
                       uint64_t now_us, uint64_t round_trip_us, uint8_t *payload)
{
    SKY_HandshakeRequest_t request;

    SKY_ASSERT(credential != NULL);
    SKY_ASSERT(random != NULL);
    if (!SKY_Session_IsDue(session, now_us))
    {
        return 0;
    }
    if (session->state == SKY_SESSION_NONE)
    {
        session->state = SKY_SESSION_ASKING;
        session->tries = 0;
    }
    if (session->tries == 0u)
    {
        (void)memcpy(session->word, random, SKY_WORD_BYTES);
    }
    request.credential = *credential;
    request.wanted     = session->wanted;
    (void)memcpy(request.word, session->word, SKY_WORD_BYTES);
    SKY_Handshake_EncodeRequest(&request, payload);
    session->tries += 1u;
    session->next_us = now_us + round_trip_us;
    SKY_ASSERT(session->state != SKY_SESSION_ESTABLISHED);
    return SKY_HANDSHAKE_REQUEST_BYTES;
}

/* Load both session keys. Return false, with both places empty, if the library cannot. */
static bool load(SKY_Session_t *session, const SKY_Crypto_t *crypto, const SKY_SessionKeys_t *keys, uint8_t suite)
{
    SKY_ASSERT(session->tries > 0u);
    SKY_ASSERT(session->place_there != session->place_back);
    if (crypto->LoadKey(crypto->context, session->place_there, suite, keys->there) &&
        crypto->LoadKey(crypto->context, session->place_back, suite, keys->back))
    {
        return true;
    }
    crypto->EraseKey(crypto->context, session->place_there);
    crypto->EraseKey(crypto->context, session->place_back);
    return false;
}

bool SKY_Session_Take(SKY_Session_t *session, const SKY_Crypto_t *crypto, const uint8_t pair[SKY_CRYPTO_KEY_BYTES], uint32_t spi,
                      const uint8_t *payload, size_t bytes)
{
    SKY_HandshakeResponse_t response;
    SKY_SessionKeys_t       keys;

    SKY_ASSERT(crypto != NULL);
    SKY_ASSERT(pair != NULL);
    const bool asks = session->tries > 0u && session->state != SKY_SESSION_ESTABLISHED;

    if (!asks || spi == SKY_SPI_NONE || !SKY_Handshake_DecodeResponse(payload, bytes, &response) ||
        (session->accepted & SKY_SUITE_BIT(response.granted)) == 0)
    {
        return false;
    }
    SKY_Keys_Session(crypto, pair, session->word, response.salt, spi, response.granted, &keys);
    const bool is_loaded = load(session, crypto, &keys, response.granted);

    crypto->Wipe(crypto->context, &keys, sizeof(keys));
    if (is_loaded)
    {
        session->state    = SKY_SESSION_ESTABLISHED;
        session->suite    = response.granted;
        session->spi      = spi;
        session->sequence = 0; /* the keys are new */
        session->answered = 0;
        session->heard    = 0;
    }
    else if (session->state == SKY_SESSION_DOUBTED)
    {
        SKY_Session_End(session, crypto); /* the old keys are gone, too */
    }
    return is_loaded;
}

uint64_t SKY_Session_NextSequence(SKY_Session_t *session)
{
    SKY_ASSERT(session->state <= SKY_SESSION_DOUBTED);
    SKY_ASSERT(session->sequence < UINT64_MAX);
    if (!SKY_Session_IsUsable(session) || session->sequence == UINT64_MAX - 1u)
    {
        return 0;
    }
    session->sequence += 1u;
    return session->sequence;
}

bool SKY_Session_Doubt(SKY_Session_t *session, uint64_t now_us)
{
    SKY_ASSERT(session->state <= SKY_SESSION_DOUBTED);
    if (session->state != SKY_SESSION_ESTABLISHED || now_us < session->next_us)
    {
        return false;
    }
    session->state = SKY_SESSION_DOUBTED;
    session->tries = 0;
    SKY_ASSERT(SKY_Session_IsDue(session, now_us));
    return true;
}

bool SKY_Session_Confirm(SKY_Session_t *session, uint64_t sequence)
{
    const bool ends_doubt = session->state == SKY_SESSION_DOUBTED && sequence > session->answered;

    SKY_ASSERT(session->state <= SKY_SESSION_DOUBTED);
    SKY_ASSERT(session->place_there != session->place_back);
    session->answered = sequence > session->answered ? sequence : session->answered;
    session->state    = ends_doubt ? SKY_SESSION_ESTABLISHED : session->state;
    return ends_doubt;
}

bool SKY_Session_IsNewest(SKY_Session_t *session, uint64_t sequence)
{
    const bool is_newest = sequence > session->heard;

    SKY_ASSERT(SKY_Session_IsUsable(session));
    session->heard = is_newest ? sequence : session->heard;
    SKY_ASSERT(session->heard >= sequence);
    return is_newest;
}

void SKY_Session_End(SKY_Session_t *session, const SKY_Crypto_t *crypto)
{
    SKY_ASSERT(crypto != NULL);
    SKY_ASSERT(session->place_there != session->place_back);
    crypto->EraseKey(crypto->context, session->place_there);
    crypto->EraseKey(crypto->context, session->place_back);
    session->state    = SKY_SESSION_NONE;
    session->suite    = SKY_SUITE_NONE;
    session->spi      = SKY_SPI_NONE;
    session->sequence = 0;
    session->answered = 0;
    session->heard    = 0;
    session->tries    = 0;
}
