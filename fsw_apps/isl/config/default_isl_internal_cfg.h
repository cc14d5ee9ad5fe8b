/**
 * @file
 * Configuration inside ISL. A build may also set the values on the command line.
 */
#ifndef ISL_INTERNAL_CFG_H
#define ISL_INTERNAL_CFG_H

/** Memory of the delay lines of emulated links, all together; not touched while links are ideal. */
#ifndef ISL_PLATFORM_LINK_POOL_BYTES
#define ISL_PLATFORM_LINK_POOL_BYTES (4 * 1024 * 1024)
#endif

#define ISL_PLATFORM_PIPE_DEPTH     32 /**< commands and telemetry to relay */
#define ISL_PLATFORM_DOWNLINK_LIMIT 8  /**< messages of one telemetry id that may wait; an upload ends in 5 events at once */

#define ISL_PLATFORM_IO_STACK_BYTES 32768
#define ISL_PLATFORM_IO_PRIORITY    60

/** Longest time that the I/O task sleeps; bounds how late it sees that the app ends. */
#define ISL_PLATFORM_IO_WAIT_MS 1000

/** Longest time that the main task sleeps: it has to see that the app ends, also if nobody sends it WAKEUP. */
#define ISL_PLATFORM_PIPE_WAIT_MS 2000

/** How long one turn of the I/O task may wait, in all, for room in the send buffer; meanwhile the service is locked. What
 *  finds no room is dropped and counted. */
#define ISL_PLATFORM_SEND_WAIT_MS 20

/** A lease of relayed telemetry, and how many ground hosts can have one. */
#define ISL_PLATFORM_LISTENER_LEASE_S 30
#define ISL_PLATFORM_LISTENERS        4

/** Commands that were put on the bus last and are known again when a ground host repeats them: their answers may be lost. */
#define ISL_PLATFORM_RELAYED 16

/** An event about dropped packets, for one cause: at the first, then at most once in this time. */
#define ISL_PLATFORM_EVENT_PERIOD_S 60

/** Probes in a row that a neighbour may leave unanswered before its link counts as down. */
#define ISL_PLATFORM_PROBES_LOST 3

/** Socket buffers asked for; the system may give less. */
#define ISL_PLATFORM_SOCKET_BYTES (4 * 1024 * 1024)

#endif
