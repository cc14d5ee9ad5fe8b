/**
 * @file
 * Performance ids of ISL.
 */
#ifndef ISL_PERFIDS_H
#define ISL_PERFIDS_H

#define ISL_PERF_ID    97
#define ISL_IO_PERF_ID 0x62 /**< the task that owns the socket */

#endif
