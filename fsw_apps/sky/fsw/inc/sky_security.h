/**
 * @file
 * Security of a satellite's links: who may ask it for what, and under which keys it sends.
 *
 * Without a master key (it is not *keyed*) anybody may ask, but a request from the ground needs a cookie first, which shows that its
 * sender's address can be reached. With one, every packet that is delivered here needs the right tag of an association, and a host may do
 * what its credential says:
 *
 *     role       may
 *     host       put, get, ask for, move and purge blocks of its tenants; ask for counters
 *     mission    all of that for any tenant, and send commands (RELAY, REKEY, MIGRATE of a whole tenant)
 *     satellite  what satellites ask each other: blocks of any tenant, HELLO, gossip
 *
 * A request is acted upon once: its sequence number has to be new, that of a command higher than all before. Responses to this satellite
 * are taken under the keys of its own sessions. A packet that is passed on is not looked into; but only from a host on the ground with a
 * cookie, which a keyed satellite gives only in answer to a request under an association with it. An answer to a handshake has another one,
 * which is good for handshakes alone: whoever has recorded a handshake can send it again.
 *
 * Sans I/O. Memory and entropy are handed in, time comes in as an argument. The node calls this for each packet (sky_node.c).
 */
#ifndef SKY_SECURITY_H
#define SKY_SECURITY_H

#include "sky_associations.h"
#include "sky_cookie.h"
#include "sky_rate.h"
#include "sky_rekey.h"
#include "sky_session.h"
#include "sky_tag.h"

#define SKY_SECURITY_ENTROPY_BYTES 80u /**< random bytes that a boot takes */
#define SKY_SECURITY_CHUNKS        16u /**< chunks of which the processes of a source may send parts in turn, each charged for once */

/** A session with another satellite, which this one asks. */
typedef struct
{
    SKY_Addr_t    satellite; /**< {0, 0}: the entry is free */
    SKY_Session_t session;
    uint8_t       generation; /**< of the key under which it began */
    uint64_t      key_mark;   /**< of that key */
    uint64_t      request_id; /**< that of the handshake on its way */
    uint64_t      used_us;    /**< time of the last packet to it */
} SKY_SecuritySession_t;

typedef struct
{
    const SKY_Crypto_t *crypto;
    uint32_t            suites;     /**< mask of the suites that hosts and satellites get */
    uint8_t             peer_suite; /**< suite to ask other satellites for; without it in @c crypto BLAKE2b of the same scope */
    uint32_t            established_max; /**< associations, from 1 */
    uint32_t            half_open_max;   /**< associations that have not been used yet, from 1 */
    uint32_t            session_max;     /**< sessions with other satellites, from 1 */
    uint32_t            retry_us;        /**< time after which a handshake is sent again, from 1 */
    SKY_PeerKey_t       peer_key;        /**< keys of the mission's tables; NULL: there are none */
    void               *peer_context;
    uint8_t            *rekey_peers;     /**< memory for keys between satellites that come over the air; NULL: none are taken */
    uint32_t            rekey_peers_max; /**< satellites; the memory has SKY_REKEY_BANKS x so many keys */
} SKY_SecurityCfg_t;

/** Packets that were not acted upon, by reason. */
typedef struct
{
    uint64_t unauthenticated; /**< all of the next three */
    uint64_t no_association;  /**< no association or session has its SPI */
    uint64_t wrong_tag;       /**< under an association or session, with a wrong tag or none */
    uint64_t handshakes;      /**< handshakes that were not answered, or whose answer was wrong */
    uint64_t replayed;        /**< a sequence number that was seen, or is too old */
    uint64_t no_cookie;       /**< from the ground, without a cookie of this satellite */
    uint64_t refused;         /**< all of the next two */
    uint64_t wrong_role;      /**< not allowed to the role of who sent it */
    uint64_t wrong_tenant;    /**< of a tenant that the credential does not list */
    uint64_t unsent;          /**< own packets to a satellite with which there is no session yet */
    uint64_t limited;         /**< too many from their source, or from all; not answered, or asked for a cookie first */
} SKY_SecurityCounters_t;

/** Chunks of which the sources of a bucket have sent parts last. */
typedef struct
{
    uint32_t digests[SKY_SECURITY_CHUNKS]; /**< 0: none */
    uint32_t next;                         /**< place that the next one takes */
} SKY_SecurityChunks_t;

/** What strangers and sources without a key may take: see sky_security_limits.c. */
typedef struct
{
    SKY_Rates_t
        answers; /**< answers to each address from which nothing was shown, but those to openings; rejections to each link */
    SKY_Rate_t           all_answers;    /**< those to all such addresses */
    SKY_Rates_t          openings;       /**< answers to openings of each such address, which give cookies */
    SKY_Rate_t           all_openings;   /**< those to all such addresses */
    SKY_Rates_t          handshakes;     /**< handshakes of each address with a cookie, and of each credential over links */
    SKY_Rate_t           all_handshakes; /**< those of all addresses without a cookie */
    SKY_Rates_t          bytes;          /**< bytes of requests of each address, where there are no keys */
    SKY_SecurityChunks_t chunks[SKY_RATE_BUCKETS]; /**< those whose memory was charged to a bucket of bytes last */
} SKY_SecurityRates_t;

typedef struct
{
    SKY_SecurityCfg_t      cfg;
    SKY_Addr_t             self;
    bool                   is_keyed;
    uint8_t                generation; /**< of the keys between satellites that this satellite asks with */
    SKY_Cookies_t          cookies;
    SKY_Associations_t     associations;
    SKY_RekeyState_t       rekey;
    SKY_SecuritySession_t *sessions;
    uint8_t                word_secret[SKY_CRYPTO_KEY_BYTES];
    uint64_t               words; /**< words drawn so far */
    SKY_SecurityCounters_t counters;
    SKY_SecurityRates_t    rates;
} SKY_Security_t;

typedef enum
{
    SKY_ADMIT_OK = 0,
    SKY_ADMIT_UNAUTHENTICATED, /**< answer so, without a tag */
    SKY_ADMIT_REFUSED,         /**< answer so, under the association */
    SKY_ADMIT_DROP             /**< say nothing */
} SKY_Admission_t;

/** Return the bytes of memory that go with a configuration; 0 if a number of it is out of range, or the library has too few places. */
size_t SKY_Security_MemoryBytes(const SKY_SecurityCfg_t *cfg);
/**
 * Begin without a master key.
 * @param memory   aligned for uint64_t; stays with @p security
 * @param entropy  SKY_SECURITY_ENTROPY_BYTES that nobody can guess, new in each boot
 * @return false as SKY_Security_MemoryBytes returns 0, if the memory is too small, or if the library gives wrong answers
 */
bool SKY_Security_Init(SKY_Security_t *security, const SKY_SecurityCfg_t *cfg, SKY_Addr_t self, void *memory, size_t memory_bytes,
                       const uint8_t *entropy);
/** Set all counters to 0, those of associations, too. */
void SKY_Security_ResetCounters(SKY_Security_t *security);
/** Make a master key valid; from the first one on the satellite is keyed. A generation that was not valid before is the newest, and that
 *  between satellites, too; one that was valid changes neither. @return false if two others are valid */
bool SKY_Security_SetMaster(SKY_Security_t *security, uint8_t generation, const uint8_t key[SKY_CRYPTO_KEY_BYTES]);

/** End all sessions with other satellites, after the keys of some have changed. New ones begin when they are needed. */
void SKY_Security_EndSessions(SKY_Security_t *security);

/* ---- new tables: sky_security_change.c ------------------------------------------------------------------------------- */

/**
 * Make these master keys the valid ones, the last one the newest. What follows from a key that stays goes on, all else ends. With satellites
 * all goes on whose key is still valid (SKY_Security_CheckPeers); new sessions begin under the newest.
 * @param masters  different generations; if none is set, nothing changes, as without a key anybody would be served
 */
void SKY_Security_TakeMasters(SKY_Security_t *security, const SKY_MasterKey_t masters[SKY_MASTER_KEYS]);
/**
 * End the sessions and associations with satellites that would not begin so any more, in both directions: their key is not valid now, or is
 * another one. To be called after the mission's tables of such keys have changed. New sessions begin when they are needed.
 */
void SKY_Security_CheckPeers(SKY_Security_t *security);
/** Be another satellite from now on, or that of another constellation: all sessions and associations end. Master keys stay. */
void SKY_Security_Move(SKY_Security_t *security, SKY_Addr_t self);
/** Change the suites of the configuration (SKY_SecurityCfg_t). Sessions and associations that would not be granted so now end. */
void SKY_Security_SetSuites(SKY_Security_t *security, uint32_t suites, uint8_t peer_suite);

/* ---- what comes ------------------------------------------------------------------------------------------------------ */

/**
 * Act on a command `rekey` of the mission. Sessions with satellites are asked for under the newest keys, and under older valid ones in turn, as
 * a satellite may not have the newest yet.
 * @param sender  generation of the credential under which it came
 * @param slots   of the constellation
 * @return as SKY_Rekey_Act and SKY_RekeyPeers_Load; BAD_OP: it is no command
 */
SKY_Status_t SKY_Security_Rekey(SKY_Security_t *security, uint8_t sender, uint16_t slots, const uint8_t *payload, size_t bytes);
/** Return true if a request from the ground, from @p endpoint, has the cookie that it needs. Counts it if not. */
bool SKY_Security_HasCookie(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint);
/**
 * Return true if a request of somebody with a cookie, where there are no keys, may be served. A PUT is charged for the memory of its chunk at least,
 * as it takes that whichever part of the chunk it is, unless its source has sent another part of that chunk just before. Counts it if not.
 */
bool SKY_Security_MayAsk(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint);
/**
 * Return true if a handshake of this origin may be answered, which costs much. Counts it if not. If its sender's address was not shown there has
 * to be a place for its association, too.
 */
bool SKY_Security_MayGreet(SKY_Security_t *security, uint64_t now_us, const SKY_HandshakeOrigin_t *origin);
/** Return true if a handshake with a wrong tag, which came over a link from this endpoint, may be answered so. Counts it if not. */
bool SKY_Security_MayBeRejected(SKY_Security_t *security, uint64_t now_us, uint64_t endpoint);
/** Return true if a request from the ground may be told why it is not served. Counts it if not. */
bool SKY_Security_MayBeTold(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint);
/** Return the cookie with which somebody at an endpoint that has shown nothing yet may come again. With keys it helps with a handshake alone:
 * the other one is asked for under an association. */
uint64_t SKY_Security_GreetingCookieOf(const SKY_Security_t *security, uint64_t now_us, uint64_t endpoint);
/** Return true if a request has either cookie of its endpoint, so that this can be reached. */
bool SKY_Security_IsReachable(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint);
/** Return the cookie that opens the way through this satellite to an endpoint. With keys only for one that has shown a right tag. */
uint64_t SKY_Security_CookieOf(const SKY_Security_t *security, uint64_t now_us, uint64_t endpoint);
/**
 * Decide about a request that is for this satellite, which is keyed. Not for handshakes.
 * @param endpoint     where it came from
 * @param association  receives the association under which it came; NULL: none
 */
SKY_Admission_t SKY_Security_Admit(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt, uint64_t endpoint,
                                   SKY_Association_t **association);
/**
 * Decide about a response that is for this satellite, which is keyed. Takes in what concerns sessions.
 * @return true if it is a satellite's own word, for the service that asked
 */
bool SKY_Security_AdmitResponse(SKY_Security_t *security, uint64_t now_us, const SKY_Packet_t *pkt);
/**
 * Return true if a response that SKY_Security_AdmitResponse has taken shows that its satellite is there: it was sent after all that have
 * shown that before.
 */
bool SKY_Security_IsSignOfLife(const SKY_Security_t *security, const SKY_Packet_t *pkt);
/** Return true if a session with @p satellite began by the last SKY_Security_AdmitResponse of its handshake, and is not used yet. */
bool SKY_Security_IsFresh(const SKY_Security_t *security, SKY_Addr_t satellite);

/** A handshake and what its answer is tagged with. */
typedef struct
{
    SKY_HandshakeRequest_t request;
    uint8_t                pair[SKY_CRYPTO_KEY_BYTES];
    uint8_t                payload[SKY_HANDSHAKE_RESPONSE_BYTES];
    uint64_t               key_mark; /**< of @c pair: it shows whose handshake this is, whichever way it came */
    SKY_TagKey_t           key;      /**< points into this structure */
} SKY_SecurityHandshake_t;

/**
 * Return true if a handshake has a right tag. Counts it if not.
 * @param handshake  receives request, key and mark; wipe it afterwards (SKY_Security_Wipe), whatever comes of it
 */
bool SKY_Security_IsHandshake(SKY_Security_t *security, const SKY_Packet_t *pkt, SKY_SecurityHandshake_t *handshake);
/**
 * Answer a handshake whose tag is right.
 * @param handshake  receives payload and key of the answer
 * @return the SPI of the association; SKY_SPI_NONE: the sender is to be told that it is unauthenticated
 */
uint32_t SKY_Security_Handshake(SKY_Security_t *security, uint64_t now_us, const SKY_HandshakeOrigin_t *origin,
                                SKY_SecurityHandshake_t *handshake);
void     SKY_Security_Wipe(const SKY_Security_t *security, void *secret, size_t bytes);

/* ---- what goes ------------------------------------------------------------------------------------------------------- */

/**
 * Put suite, index and sequence number into an own packet that goes to a satellite or, under an association, back to who asked.
 * @param association  that of the request which @p pkt answers; NULL: @p pkt is a request, or goes without a tag
 * @param key          receives the key of its tag
 * @return 1: the packet has a tag; 0: it goes without one; -1: it cannot go now, as there is no session yet
 */
int SKY_Security_Prepare(SKY_Security_t *security, uint64_t now_us, SKY_Packet_t *pkt, SKY_Association_t *association,
                         SKY_TagKey_t *key);
/** A handshake that this satellite sends. */
typedef struct
{
    SKY_Packet_t pkt; /**< its payload lies in @c payload */
    uint8_t      payload[SKY_HANDSHAKE_REQUEST_BYTES];
    uint8_t      pair[SKY_CRYPTO_KEY_BYTES];
    SKY_TagKey_t key; /**< points into this structure */
} SKY_SecurityAsk_t;

/** Get the next handshake that is due. @return false if there is none now */
bool SKY_Security_NextAsk(SKY_Security_t *security, uint64_t now_us, SKY_SecurityAsk_t *ask);
/** Return the time at which the next handshake is due; UINT64_MAX: none is on its way. */
uint64_t SKY_Security_NextDue(const SKY_Security_t *security);

#endif
