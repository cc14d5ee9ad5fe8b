/**
 * @file
 * The ground's transfer engine: many blocks at once, each striped over many satellites, through one UDP socket.
 *
 * A call runs in the calling thread until every block has an end: done, missed, expired, refused or cancelled. Loss, a dead
 * satellite or a bad answer never makes a call fail; the block says what happened. Only arguments that contradict each other do.
 * A client may be used by several threads: their calls follow one another. SKYC_Cancel and SKYC_Progress need not wait.
 */
#ifndef SKYC_H
#define SKYC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKYC_KEY_BYTES 32u

/** Everything 0 is the default. */
typedef struct
{
    uint32_t packet_bytes;  /**< largest packet of the path; default: what fits a UDP datagram */
    uint32_t window_max;    /**< chunks on their way to or from one satellite; default 256 */
    uint32_t burst;         /**< chunks of one GET, or of PUT before a HAS asks for them; default 20 */
    uint32_t receive_bytes; /**< receive buffer to ask of the system; default 8 MiB. Less is fine, the windows follow */
    uint32_t bind_ipv4;     /**< local address, host order; default: any */
    uint16_t host_number;   /**< ground address (0, number); default: random, and drawn again if another host has it */
    uint16_t no_offload;    /**< 1: one datagram a packet even where the system could bundle them (for comparisons) */
} SKYC_Config_t;

/** A satellite, and the endpoint through which it is reached: answers are taken from there only. */
typedef struct
{
    uint16_t plane, slot;
    uint16_t entry_plane, entry_slot; /**< satellite that listens there */
    uint32_t entry_ipv4;              /**< host order */
    uint16_t entry_port;
    uint16_t reserved;
} SKYC_Satellite_t;

/**
 * One block. Chunk i is at server i mod server_count.
 *
 * While the sky turns a server's chunks move from one satellite to another, one by one. A GET asks for a server's share at its
 * place in `servers` first; what that does not hold is asked for at its place in the first round of `fallbacks`, and so on. A chunk is in
 * one of its places always and only moves forward, so places asked in the order of time find every chunk. A satellite that cannot be
 * reached, or that has been silent for its part of the time that is left, is passed over in the same way.
 */
typedef struct
{
    uint8_t                 key[SKYC_KEY_BYTES];
    uint32_t                tenant;
    uint32_t                epoch;
    uint32_t                block_len;
    uint32_t                chunk_len;
    uint32_t                chunk_total;
    uint32_t                deadline_ms; /**< from the start of the call; at least 1 */
    uint8_t                *data;        /**< block_len bytes: read by put, written by get */
    const SKYC_Satellite_t *servers;
    const SKYC_Satellite_t
            *fallbacks; /**< rounds x server_count; plane 0: none for this server. GET only; may be NULL without rounds */
    uint32_t server_count;
    uint32_t rounds; /**< at most SKY_HOST_ROUNDS */
    /* what became of it */
    /**
     * SKY_STATUS_*. RUNNING until the block has an end; then DONE, MISS, EXPIRED (the deadline has passed; or a place is silent, and
     * the others do not hold what is missing), CANCELLED, or what a satellite said, REFUSED if that is no status of the wire.
     */
    uint32_t status;
    uint32_t last_status;               /**< of the last error response, 0: none */
    uint32_t failed_plane, failed_slot; /**< satellite on which it failed, of several places the last one; 0: none */
    uint32_t chunks;                    /**< received, respectively acknowledged */
    uint32_t requests, repeats, duplicates, corrupt;
    uint64_t bytes;       /**< of these chunks */
    uint64_t duration_us; /**< from the start of the call to the block's end */
} SKYC_Block_t;

/** Since SKYC_Open. */
typedef struct
{
    uint64_t tx_packets, tx_bytes, tx_calls, tx_failed;
    uint64_t rx_packets, rx_bytes, rx_calls;
    uint64_t rx_bad;   /**< did not decode */
    uint64_t rx_stale; /**< decoded, but nobody waits for it, or not from whom it is waited for */
    uint64_t receive_buffer_bytes;
    uint64_t tx_offload, rx_offload; /**< 1: the system bundles datagrams */
    uint64_t host_number;
} SKYC_Counters_t;

/** What one satellite did in a call. Times are from the start of the call, 0: that did not happen. */
typedef struct
{
    uint16_t plane, slot;
    uint16_t entry_plane, entry_slot;
    uint32_t srtt_us; /**< smoothed round trip, over all calls so far; 0: none was measured */
    uint32_t chunks;  /**< received from it, respectively acknowledged by it, also of blocks that did not come whole */
    uint32_t requests, repeats;
    uint64_t bytes;             /**< of these chunks */
    uint64_t asked_us;          /**< when the first request (PUT: chunk) left */
    uint64_t first_us, last_us; /**< when it first and last answered */
} SKYC_Served_t;

typedef struct
{
    uint64_t chunks_done, chunks_total; /**< of the call that runs, or of the last one */
    uint64_t calls;                     /**< that have ended: the number of the one that runs */
} SKYC_Progress_t;

typedef struct SKYC_Client SKYC_Client_t;

/** @param error  receives an errno if the result is NULL; may be NULL. EINVAL: a number of @p config is out of range */
SKYC_Client_t *SKYC_Open(const SKYC_Config_t *config, int *error);
void           SKYC_Close(SKYC_Client_t *client);
/**
 * @return 0 when every block has an end; otherwise nothing was sent and it is EINVAL (a block's numbers contradict each other: the
 *         first such block has last_status BAD_CHUNK) or ENOMEM
 */
int SKYC_Put(SKYC_Client_t *client, SKYC_Block_t *blocks, uint32_t count);
int SKYC_Get(SKYC_Client_t *client, SKYC_Block_t *blocks, uint32_t count);
/**
 * End a call, from another thread or a signal handler.
 * @param call  SKYC_Progress_t.calls while it runs, or just before. If that call has ended already, nothing happens
 */
void SKYC_Cancel(SKYC_Client_t *client, uint64_t call);
/**
 * Who did what in the call that ended last. Threads that share a client keep each other from calls in between.
 * @param served  receives the first @p room of them; NULL if @p room is 0
 * @return how many there are
 */
uint32_t SKYC_Served(SKYC_Client_t *client, SKYC_Served_t *served, uint32_t room);
void     SKYC_Progress(const SKYC_Client_t *client, SKYC_Progress_t *progress);
void     SKYC_Counters(SKYC_Client_t *client, SKYC_Counters_t *counters);

#endif
