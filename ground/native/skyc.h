/**
 * @file
 * Settings and counters of the ground's socket, which skyc_ground.h uses.
 */
#ifndef SKYC_H
#define SKYC_H

#include "sky_host.h"

/** Settings of a socket and its host; 0 is the default of each. */
typedef struct
{
    uint32_t           packet_bytes;  /**< largest packet of the path; default: what fits a UDP datagram */
    uint32_t           window_max;    /**< chunks on their way to or from one satellite; default 256 */
    uint32_t           burst;         /**< chunks of one GET, or of a PUT before a HAS asks for them; default 20 */
    uint32_t           receive_bytes; /**< receive buffer to ask for; default 8 MiB. The windows follow what the system gives */
    SKY_HostPatience_t patience;      /**< patience with answers to questions */
    uint32_t           bind_ipv4;     /**< local address, host order; default: any */
    uint16_t           host_number;   /**< ground address (0, number); default: random, and drawn again if another host has it */
    uint16_t           asks_all; /**< 1: GET asks for parity at once; 0: only when a satellite is slow, or has lost a chunk */
    /* The keyring; without one satellites are asked for cookies alone. */
    const uint8_t *credential; /**< SKY_CREDENTIAL_BYTES; NULL: there is no keyring */
    const uint8_t *pair_keys;  /**< keys of SKY_CRYPTO_KEY_BYTES for all satellites, plane after plane; they are copied */
    uint16_t       planes, slots;
    uint8_t suite; /**< SKY_SUITE_* to ask for; default: GMAC of headers where the library has it, else BLAKE2b of headers */
} SKYC_Config_t;

/** Counters since the socket was opened. */
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

#endif
