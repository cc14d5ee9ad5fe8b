/**
 * @file
 * Satellite as a library: executive, isl and kvc inside the calling process, for skymemory.fsw (ctypes).
 *
 * One satellite per process. Functions with a `why` return 0, or -1 with the reason; the others return a cFE status. An app of the
 * host is a name under which threads of the host use the Software Bus; several threads may use one app, but a pipe only one at
 * a time.
 */
#ifndef SKYX_H
#define SKYX_H

#include <stddef.h>
#include <stdint.h>

#define SKYX_API __attribute__((visibility("default")))

/** Start the services, but no app: pipes can be made before the first event. @p argv as skysat's, argv[0] is ignored. */
SKYX_API int skyx_init(int argc, const char *const *argv, int quiet, char *why, size_t why_size);
/** Start kvc and isl, and return when they run. */
SKYX_API int skyx_start(char *why, size_t why_size);
/** Stop the apps and forget everything; skyx_init may follow. @return 0, or -1 if an app had to be ended by force */
SKYX_API int skyx_stop(void);

SKYX_API int32_t skyx_app_open(const char *name, uint32_t *app);
/** Close an app. A thread that waits on one of its pipes gets CFE_SB_PIPE_RD_ERR. */
SKYX_API int32_t skyx_app_close(uint32_t app);
SKYX_API int32_t skyx_pipe_open(uint32_t app, const char *name, uint16_t depth, uint32_t *pipe);
SKYX_API int32_t skyx_pipe_close(uint32_t app, uint32_t pipe);
/** Subscribe to a message id. @param limit  messages of this id that may wait on the pipe */
SKYX_API int32_t skyx_subscribe(uint32_t app, uint32_t pipe, uint32_t mid, uint16_t limit);
SKYX_API int32_t skyx_unsubscribe(uint32_t app, uint32_t pipe, uint32_t mid);
/** Receive a message. @param buffer  32,768 bytes. @param timeout_ms  -1: wait, 0: do not. @param size  its bytes with headers */
SKYX_API int32_t skyx_receive(uint32_t app, uint32_t pipe, int32_t timeout_ms, uint8_t *buffer, size_t *size);
/** Send a message, with a new sequence count, time (telemetry) and checksum (command). */
SKYX_API int32_t skyx_transmit(uint32_t app, const uint8_t *message, size_t size);
SKYX_API int32_t skyx_event(uint32_t app, uint16_t event_id, uint16_t type, const char *text);
/** Load a table from the ground: the owner's next CFE_TBL_Manage, at its next wake-up, takes it over. */
SKYX_API int32_t skyx_table_load(const char *name, const uint8_t *data, size_t size);
/** Dump the current contents of a table to the ground. */
SKYX_API int32_t skyx_table_read(const char *name, uint8_t *data, size_t size);
/** Write four counters: no subscribers, message limit, pipe overflow, pool empty. */
SKYX_API void skyx_bus_counters(uint32_t *counters);

#endif
