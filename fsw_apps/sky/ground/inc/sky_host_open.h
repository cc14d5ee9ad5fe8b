/**
 * @file
 * Openings: what a satellite asks of a ground host before it serves it. Types only: the host opens satellites by itself (sky_host_open.c).
 *
 * Without a keyring that is a cookie, which shows that the host's address can be reached. With one it is an association. What goes
 * through another satellite needs the cookie of that one, too, and with a keyring an association with both: a keyed satellite gives this cookie
 * only under an association, so it is asked for once there is one. What goes to a keyed satellite itself needs none. A host with a keyring takes
 * no answer without the tag of the satellite that it asked, but for reasons why a packet did not get there.
 *
 * Anybody can say `unauthenticated`. So a handshake that is answered with it goes on being waited for, until its round trip is over: an answer
 * with a right tag proves the word wrong. An association that is there is not given up before several handshakes, with longer and longer
 * pauses, came to nothing else.
 *
 * A cookie lives for a minute at least. It is asked for anew before, while the old one goes on being used.
 */
#ifndef SKY_HOST_OPEN_H
#define SKY_HOST_OPEN_H

#include "sky_cookie.h"
#include "sky_replay.h"
#include "sky_session.h"
#include "sky_tag.h"

#define SKY_HOST_COOKIE_FRESH_US UINT64_C(40000000) /**< age at which a cookie is asked for anew */

typedef struct
{
    bool                is_on;    /**< satellites are opened before they are asked */
    bool                is_keyed; /**< there is a keyring, and nothing is believed without a tag */
    uint8_t             wanted;   /**< suite to ask for */
    uint32_t            accepted; /**< mask of other suites to take */
    const SKY_Crypto_t *crypto;   /**< with two places for each satellite that the host knows; NULL without a keyring */
    SKY_Credential_t    credential;
    /** Find the key that this host shares with a satellite. @return false if the keyring has none */
    bool (*PairKey)(void *context, SKY_Addr_t satellite, uint8_t key[SKY_CRYPTO_KEY_BYTES]);
    void *context;
} SKY_HostSecurity_t;

/** What the host knows of one satellite in this respect. */
typedef struct
{
    SKY_Session_t session;
    bool          is_open;    /**< the satellite has given a cookie for what goes through it, or wants none */
    uint64_t      cookie;     /**< of a satellite that is not open: the one for handshakes */
    uint64_t      cookie_us;  /**< time at which it was given */
    uint64_t      request_id; /**< that of the opening on its way; 0: none */
    uint64_t      endpoint;   /**< endpoint through which that is asked */
    SKY_Addr_t    entry;      /**< satellite that listens there */
    uint64_t      asked_us;   /**< time at which that left last */
    uint64_t      next_us;    /**< nothing more is sent before */
    uint64_t      keep_us;    /**< the satellite is not forgotten before: it is being opened, or another one is through it */
    uint64_t      believe_us; /**< time at which a word of `unauthenticated` about it, without a tag, is believed; 0: none came */
    uint32_t      tries;      /**< sendings of it */
} SKY_HostOpening_t;

#endif
