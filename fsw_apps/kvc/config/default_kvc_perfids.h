/**
 * @file
 * Performance ids of KVC.
 */
#ifndef KVC_PERFIDS_H
#define KVC_PERFIDS_H

#define KVC_PERF_ID 96

#endif
