/**
 * @file
 * The ground's engine: transfers many blocks at once, each striped over many satellites, through one UDP socket. Questions have a ground
 * of their own (skyc_ground.h), which is to take the place of this.
 *
 * A transfer runs in the calling thread until every block has an end: done, missed, expired, refused or cancelled. Loss, a dead
 * satellite or a bad answer never makes a call fail; the block says what happened. Only arguments that contradict each other make
 * a call fail. Several threads may use a client: their calls follow one another. SKYC_Cancel and SKYC_Progress do not wait.
 */
#ifndef SKYC_H
#define SKYC_H

#include "sky_host.h"

/** Settings of a client; 0 is the default of each. */
typedef struct
{
    uint32_t           packet_bytes;  /**< largest packet of the path; default: what fits a UDP datagram */
    uint32_t           window_max;    /**< chunks on their way to or from one satellite; default 256 */
    uint32_t           burst;         /**< chunks of one GET, or of a PUT before a HAS asks for them; default 20 */
    uint32_t           receive_bytes; /**< receive buffer to ask for; default 8 MiB. The windows follow what the system gives */
    SKY_HostPatience_t patience;      /**< patience with answers to questions */
    uint32_t           bind_ipv4;     /**< local address, host order; default: any */
    uint16_t           host_number;   /**< ground address (0, number); default: random, and drawn again if another host has it */
    uint16_t           no_offload;    /**< 1: one datagram a packet even where the system could bundle them (for comparisons) */
    uint16_t           asks_all; /**< 1: GET asks for parity at once; 0: only when a satellite is slow, or has lost a chunk */
    uint16_t may_fragment;       /**< 1: IP may cut a packet that is larger than the path takes; else such a packet is an error */
    /* The keyring; without one satellites are asked for cookies alone. */
    const uint8_t *credential; /**< SKY_CREDENTIAL_BYTES; NULL: there is no keyring */
    const uint8_t *pair_keys;  /**< keys of SKY_CRYPTO_KEY_BYTES for all satellites, plane after plane; they are copied */
    uint16_t       planes, slots;
    uint8_t suite; /**< SKY_SUITE_* to ask for; default: GMAC of headers where the library has it, else BLAKE2b of headers */
} SKYC_Config_t;

/** Counters since SKYC_Open. */
typedef struct
{
    uint64_t tx_packets, tx_bytes, tx_calls, tx_failed;
    uint64_t rx_packets, rx_bytes, rx_calls;
    uint64_t rx_bad;   /**< packets that did not decode */
    uint64_t rx_stale; /**< packets that decoded, but that nobody waits for from their sender */
    uint64_t receive_buffer_bytes;
    uint64_t tx_offload, rx_offload; /**< 1: the system bundles datagrams */
    uint64_t host_number;
    uint64_t port;         /**< port of the socket */
    uint64_t repeats;      /**< questions that were sent again */
    uint64_t rx_untrusted; /**< packets without the tag that they need */
    uint64_t suites;       /**< mask of the security suites that the library can do: bit 1 << SKY_SUITE_* */
    uint64_t suites_used;  /**< mask of the security suites of the associations that there are */
    uint64_t no_random;    /**< handshakes that were not sent, because the system gave no random bytes */
} SKYC_Counters_t;

typedef struct
{
    uint64_t chunks_done, chunks_total; /**< chunks of the running call, or of the last one */
    uint64_t calls;                     /**< calls that have ended; also the number of the running one */
} SKYC_Progress_t;

typedef struct SKYC_Client SKYC_Client_t;
typedef struct SKYC_Stream SKYC_Stream_t;

/**
 * Open a client.
 * @param error  receives an errno if the result is NULL; may be NULL. EINVAL: a number of @p config is out of range
 */
SKYC_Client_t *SKYC_Open(const SKYC_Config_t *config, int *error);
void           SKYC_Close(SKYC_Client_t *client);
/**
 * Store or fetch blocks. Endpoints of places are ipv4 << 16 | port, both in host order. The library sets `kind` and `have`.
 * @return 0 when every block has an end; otherwise nothing was sent and it is EINVAL (a block's numbers contradict each other: the
 *         first such block has last_status BAD_CHUNK) or ENOMEM
 */
int SKYC_Put(SKYC_Client_t *client, SKY_HostBlock_t *blocks, uint32_t count);
int SKYC_Get(SKYC_Client_t *client, SKY_HostBlock_t *blocks, uint32_t count);
/**
 * Make a stream: a get whose blocks begin one after another, as soon as they are allowed, and have their ends one after another. The
 * deadline and the duration of each count from its own beginning. One thread runs it, another one allows blocks and waits for them.
 * @param blocks  their `data` need not be set; they stay in place as long as the stream runs
 * @return NULL if there is no memory
 */
SKYC_Stream_t *SKYC_Stream_New(SKY_HostBlock_t *blocks, uint32_t count);
/** End a stream that does not run. NULL is none. */
void SKYC_Stream_Free(SKYC_Stream_t *stream);
/**
 * Run a stream, once. It is over when all blocks that were allowed have an end, or when it is stopped. Blocks that were not allowed by then have
 * status RUNNING.
 * @return as SKYC_Get; EINVAL also if it has run before
 */
int SKYC_Stream_Run(SKYC_Client_t *client, SKYC_Stream_t *stream);
/** Let the next block begin, with this memory. @return false if there is none, or the stream is over; the block does not begin then */
bool SKYC_Stream_Allow(SKYC_Stream_t *stream, uint8_t *data);
/** Have the stream end: what runs is CANCELLED. */
void SKYC_Stream_Stop(SKYC_Stream_t *stream);
/**
 * Wait until the first @p count blocks have an end, or the stream is over, or the time.
 * @param is_over  receives true if the stream is over
 * @return blocks, from the first, that have an end: what is said of them does not change any more
 */
uint32_t SKYC_Stream_Await(SKYC_Stream_t *stream, uint32_t count, uint64_t duration_us, bool *is_over);
/**
 * End a call, from another thread or a signal handler.
 * @param call  SKYC_Progress_t.calls while the call runs, or just before; nothing happens if it has ended already
 */
void SKYC_Cancel(SKYC_Client_t *client, uint64_t call);
/**
 * Get what each satellite did in the call that ended last. Times are from the start of that call. No other thread may call the
 * client in between.
 * @param served  receives the first @p room of them; NULL if @p room is 0
 * @return number of satellites
 */
uint32_t SKYC_Served(SKYC_Client_t *client, SKY_HostServed_t *served, uint32_t room);
void     SKYC_Progress(const SKYC_Client_t *client, SKYC_Progress_t *progress);
void     SKYC_Counters(SKYC_Client_t *client, SKYC_Counters_t *counters);

#endif
