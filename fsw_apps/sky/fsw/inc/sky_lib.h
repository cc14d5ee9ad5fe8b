/**
 * @file
 * The `sky` cFS library: the registry through which `isl` finds the services of other apps by the APID of a packet.
 *
 * An app that serves an APID registers a table of functions; `isl` calls them in its own task, so a chunk goes from socket to
 * store and back without crossing the Software Bus.
 *
 * Locks. The registry stays locked from SKY_LIB_Acquire to SKY_LIB_Release, so that an app which leaves cannot vanish in the
 * middle of a call; a service stays locked from its Lock to its Unlock, because the body of an outgoing packet lies in the
 * service's own memory until it is sent. Order, for everybody: isl's node, registry, service. A service must not call the
 * registry while it is locked.
 */
#ifndef SKY_LIB_H
#define SKY_LIB_H

#include "common_types.h"
#include "sky.h"

#define SKY_LIB_SERVICES  SKY_NODE_SERVICES  /**< services that can be registered at a time */
#define SKY_LIB_BURST_MAX SKY_NODE_BURST_MAX /**< packets that one Begin or Poll may cause; the rest is cut off and counted */

/** What a service has to know of the satellite. */
typedef struct
{
    SKY_Addr_t  self;
    SKY_Torus_t torus;
    uint32_t    packet_bytes; /**< largest packet of the links */
} SKY_LIB_Node_t;

/** A service. All functions but Attach and Lock are called between Lock and Unlock. */
typedef struct
{
    /** The satellite is known, or has changed. Locks the service by itself. @return false: not able to serve */
    bool (*Attach)(const SKY_LIB_Node_t *node);
    /** @return false if the service is not ready; then it is not locked either */
    bool (*Lock)(void);
    void (*Unlock)(void);
    /** A packet for this satellite at the service's APID. Responses are pulled with Next until that returns false. */
    void (*Begin)(uint64_t now_us, const SKY_Packet_t *pkt);
    /** The next packet to send. Its body stays in place until the next Begin or Poll, or until Unlock. */
    bool (*Next)(uint64_t now_us, SKY_Out_t *out);
    /** Let time act; pull with Next afterwards. *next_us: when to come again, UINT64_MAX if never. */
    void (*Poll)(uint64_t now_us, uint64_t *next_us);
    /** A packet for this APID did not decode: count it. */
    void (*Reject)(SKY_Status_t status);
    /** What the service had to say to @p dst found no way from here. Not called between two calls of Next of one pull. */
    void (*Unreachable)(SKY_Addr_t dst);
} SKY_LIB_Service_t;

/** Assertions of the core that failed. */
typedef struct
{
    uint64_t    failed;
    const char *file; /**< of the first, without a path; NULL: none failed */
    int         line;
} SKY_LIB_Asserts_t;

/** Entry point of the library (startup script). */
int32 SKY_LibInit(void);

/**
 * Offer a service. @p service stays in place until SKY_LIB_Unregister. If the satellite is known, Attach is called at once.
 * @return CFE_SUCCESS, CFE_STATUS_EXTERNAL_RESOURCE_FAIL: registry full, APID taken, a function missing, or no lock
 */
int32 SKY_LIB_Register(uint16_t apid, const SKY_LIB_Service_t *service);
/** Take a service back; waits until no one is in it. Harmless if it was not registered. */
void SKY_LIB_Unregister(uint16_t apid);

/** Tell all services, now and later, which satellite this is. @return services that cannot serve it */
uint32_t SKY_LIB_SetNode(const SKY_LIB_Node_t *node);

/** Lock the registry and find a service. @return NULL if there is none; then the registry is not locked */
const SKY_LIB_Service_t *SKY_LIB_Acquire(uint16_t apid);
/** As SKY_LIB_Acquire, by place: 0 .. SKY_LIB_SERVICES - 1. @p apid receives the APID. */
const SKY_LIB_Service_t *SKY_LIB_AcquireAt(uint32_t place, uint16_t *apid);
void                     SKY_LIB_Release(void);

/** Monotonic time in microseconds: the clock of the core. */
uint64_t SKY_LIB_NowUs(void);
/** From SKY_LIB_NowUs to cFE's time, which packets carry: add it (modulo 2^64). */
uint64_t SKY_LIB_ClockOffsetUs(void);
/** The ICD's word for a status, for events. */
const char *SKY_LIB_StatusName(uint32_t status);
/** A number that differs from run to run; not secret enough for keys. */
uint64_t SKY_LIB_Seed(void);

/** Count an assertion that failed, in whatever task. The first one goes into the system log of ES, which outlives a reset. */
void SKY_LIB_CountAssert(const char *file, int line);
/** Return which assertions failed since the start, or since SKY_LIB_ResetAsserts. */
SKY_LIB_Asserts_t SKY_LIB_Asserts(void);
void              SKY_LIB_ResetAsserts(void);

#endif
