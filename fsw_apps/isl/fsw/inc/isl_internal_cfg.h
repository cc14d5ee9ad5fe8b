/**
 * @file
 * Configuration inside ISL. A mission sets other values in isl_internal_cfg_values.h.
 */
#ifndef ISL_INTERNAL_CFG_H
#define ISL_INTERNAL_CFG_H

#include "isl_internal_cfg_values.h"

/** Memory of the delay lines of emulated links, all together; not touched while links are ideal. The compiler's
 *  command line may set it, too. */
#ifndef ISL_PLATFORM_LINK_POOL_BYTES
#define ISL_PLATFORM_LINK_POOL_BYTES         ISL_PLATFORM_CFGVAL(LINK_POOL_BYTES)
#define DEFAULT_ISL_PLATFORM_LINK_POOL_BYTES (4 * 1024 * 1024)
#endif

/** Depth of the command pipe; more than the default limits of its subscriptions add up to. */
#define ISL_PLATFORM_PIPE_DEPTH         ISL_PLATFORM_CFGVAL(PIPE_DEPTH)
#define DEFAULT_ISL_PLATFORM_PIPE_DEPTH 16

/** Depth of the pipe of telemetry for ground hosts. */
#define ISL_PLATFORM_TLM_PIPE_DEPTH         ISL_PLATFORM_CFGVAL(TLM_PIPE_DEPTH)
#define DEFAULT_ISL_PLATFORM_TLM_PIPE_DEPTH 32

/** Messages of one telemetry id that may wait; an upload ends in 5 events at once. */
#define ISL_PLATFORM_DOWNLINK_LIMIT         ISL_PLATFORM_CFGVAL(DOWNLINK_LIMIT)
#define DEFAULT_ISL_PLATFORM_DOWNLINK_LIMIT 8

#define ISL_PLATFORM_TLM_STACK_BYTES         ISL_PLATFORM_CFGVAL(TLM_STACK_BYTES)
#define DEFAULT_ISL_PLATFORM_TLM_STACK_BYTES 16384

#define ISL_PLATFORM_TLM_PRIORITY         ISL_PLATFORM_CFGVAL(TLM_PRIORITY)
#define DEFAULT_ISL_PLATFORM_TLM_PRIORITY 70

#define ISL_PLATFORM_IO_STACK_BYTES         ISL_PLATFORM_CFGVAL(IO_STACK_BYTES)
#define DEFAULT_ISL_PLATFORM_IO_STACK_BYTES 32768

#define ISL_PLATFORM_IO_PRIORITY         ISL_PLATFORM_CFGVAL(IO_PRIORITY)
#define DEFAULT_ISL_PLATFORM_IO_PRIORITY 60

/** Longest time that the I/O task sleeps: it has to see that the app ends. */
#define ISL_PLATFORM_IO_WAIT_MS         ISL_PLATFORM_CFGVAL(IO_WAIT_MS)
#define DEFAULT_ISL_PLATFORM_IO_WAIT_MS 1000

/** Longest time that the main task and the telemetry task sleep: each has to see that the app ends. */
#define ISL_PLATFORM_PIPE_WAIT_MS         ISL_PLATFORM_CFGVAL(PIPE_WAIT_MS)
#define DEFAULT_ISL_PLATFORM_PIPE_WAIT_MS 2000

/** Longest time that one turn of the I/O task waits for room in the send buffer; meanwhile the service is locked. Packets that
 *  find no room are dropped and counted. */
#define ISL_PLATFORM_SEND_WAIT_MS         ISL_PLATFORM_CFGVAL(SEND_WAIT_MS)
#define DEFAULT_ISL_PLATFORM_SEND_WAIT_MS 20

/** Duration of a lease of relayed telemetry, and number of ground hosts that can have one. */
#define ISL_PLATFORM_LISTENER_LEASE_S         ISL_PLATFORM_CFGVAL(LISTENER_LEASE_S)
#define DEFAULT_ISL_PLATFORM_LISTENER_LEASE_S 30

#define ISL_PLATFORM_LISTENERS         ISL_PLATFORM_CFGVAL(LISTENERS)
#define DEFAULT_ISL_PLATFORM_LISTENERS 4

/** Last commands put on the bus that are recognised when a ground host repeats them: their answers may be lost. */
#define ISL_PLATFORM_RELAYED         ISL_PLATFORM_CFGVAL(RELAYED)
#define DEFAULT_ISL_PLATFORM_RELAYED 16

/** Least time between two events about dropped packets of one cause. */
#define ISL_PLATFORM_EVENT_PERIOD_S         ISL_PLATFORM_CFGVAL(EVENT_PERIOD_S)
#define DEFAULT_ISL_PLATFORM_EVENT_PERIOD_S 60

/** Satellites that the map of links has room for, 12 bytes each; used as far as the constellation needs. In a larger one a
 *  satellite routes packets around its own links only. */
#define ISL_PLATFORM_MAP_SATELLITES         ISL_PLATFORM_CFGVAL(MAP_SATELLITES)
#define DEFAULT_ISL_PLATFORM_MAP_SATELLITES 16384

/** Associations with hosts and satellites that have been used, and that have not been used yet; about 2.2 kB each. */
#define ISL_PLATFORM_ASSOCIATIONS         ISL_PLATFORM_CFGVAL(ASSOCIATIONS)
#define DEFAULT_ISL_PLATFORM_ASSOCIATIONS 128
#define ISL_PLATFORM_HALF_OPEN            ISL_PLATFORM_CFGVAL(HALF_OPEN)
#define DEFAULT_ISL_PLATFORM_HALF_OPEN    16

/** Sessions with satellites that this one asks. */
#define ISL_PLATFORM_SESSIONS         ISL_PLATFORM_CFGVAL(SESSIONS)
#define DEFAULT_ISL_PLATFORM_SESSIONS 64

/** Time after which a handshake with another satellite is sent again. */
#define ISL_PLATFORM_HANDSHAKE_RETRY_MS         ISL_PLATFORM_CFGVAL(HANDSHAKE_RETRY_MS)
#define DEFAULT_ISL_PLATFORM_HANDSHAKE_RETRY_MS 500

/** Session keys: two for each association and session. */
#define ISL_PLATFORM_KEYS (2u * (ISL_PLATFORM_ASSOCIATIONS + ISL_PLATFORM_HALF_OPEN + ISL_PLATFORM_SESSIONS))

/** Memory of associations and sessions, 384 KiB; SKY_Security_MemoryBytes has to fit. */
#define ISL_PLATFORM_SECURITY_BYTES         ISL_PLATFORM_CFGVAL(SECURITY_BYTES)
#define DEFAULT_ISL_PLATFORM_SECURITY_BYTES 393216

/** Sizes of socket buffers to ask for; the system may give less. */
#define ISL_PLATFORM_SOCKET_BYTES         ISL_PLATFORM_CFGVAL(SOCKET_BYTES)
#define DEFAULT_ISL_PLATFORM_SOCKET_BYTES (4 * 1024 * 1024)

#endif
