/**
 * @file
 * Configuration inside KVC. A mission sets other values in kvc_internal_cfg_values.h.
 */
#ifndef KVC_INTERNAL_CFG_H
#define KVC_INTERNAL_CFG_H

#include "kvc_internal_cfg_values.h"

/** Memory for chunks, index included. The table KVC.Limits says how much of it is used; the rest is never touched.
 *  The compiler's command line may set it, too. */
#ifndef KVC_PLATFORM_STORE_BYTES
#define KVC_PLATFORM_STORE_BYTES         KVC_PLATFORM_CFGVAL(STORE_BYTES)
#define DEFAULT_KVC_PLATFORM_STORE_BYTES (8 * 1024 * 1024)
#endif

/** Tables of the rotation schedule that are used, 1 .. 4: each has KVC_SEGMENT_ROWS rows. */
#define KVC_PLATFORM_SCHEDULE_SEGMENTS         KVC_PLATFORM_CFGVAL(SCHEDULE_SEGMENTS)
#define DEFAULT_KVC_PLATFORM_SCHEDULE_SEGMENTS 4

/** Depth of the command pipe. */
#define KVC_PLATFORM_PIPE_DEPTH         KVC_PLATFORM_CFGVAL(PIPE_DEPTH)
#define DEFAULT_KVC_PLATFORM_PIPE_DEPTH 16

/** Longest time that KVC's task sleeps: it has to see that the app ends, even if nobody sends it WAKEUP. */
#define KVC_PLATFORM_PIPE_WAIT_MS         KVC_PLATFORM_CFGVAL(PIPE_WAIT_MS)
#define DEFAULT_KVC_PLATFORM_PIPE_WAIT_MS 2000

/** Least time between two events about refused packets of one cause. */
#define KVC_PLATFORM_EVENT_PERIOD_S         KVC_PLATFORM_CFGVAL(EVENT_PERIOD_S)
#define DEFAULT_KVC_PLATFORM_EVENT_PERIOD_S 60

/** Slots in which one WAKEUP looks for parts of chunks whose time is over. */
#define KVC_PLATFORM_EXPIRE_SLOTS         KVC_PLATFORM_CFGVAL(EXPIRE_SLOTS)
#define DEFAULT_KVC_PLATFORM_EXPIRE_SLOTS 1024

#endif
