/**
 * @file
 * The `sky` cFS library: the registry through which `isl` finds the services of other apps by the APID of a packet.
 *
 * An app that serves an APID registers a table of functions; `isl` calls them in its own task, so a chunk goes from socket to
 * store and back without crossing the Software Bus.
 *
 * Locks: the registry stays locked from SKY_LIB_Acquire to SKY_LIB_Release, so that an app which leaves cannot vanish in the
 * middle of a call; a service stays locked from its Lock to its Unlock, because the body of an outgoing packet lies in the
 * service's own memory until it is sent. Everybody locks in this order: isl's node, registry, service. A service must not call the
 * registry while it is locked.
 */
#ifndef SKY_LIB_H
#define SKY_LIB_H

#include "common_types.h"
#include "sky.h"

#define SKY_LIB_SERVICES  SKY_NODE_SERVICES  /**< services that can be registered at a time */
#define SKY_LIB_BURST_MAX SKY_NODE_BURST_MAX /**< packets that one Begin or Poll may cause; the rest is cut off and counted */

/** Facts of the satellite that a service needs. */
typedef struct
{
    SKY_Addr_t  self;
    SKY_Torus_t torus;
    uint32_t    packet_bytes; /**< largest packet of the links */
} SKY_LIB_Node_t;

/** A service. All functions but Attach and Lock are called between Lock and Unlock. */
typedef struct
{
    /** Take in a new or changed satellite. Locks the service by itself. @return false: the service cannot serve it */
    bool (*Attach)(const SKY_LIB_Node_t *node);
    /** @return false if the service is not ready; then it is not locked either */
    bool (*Lock)(void);
    void (*Unlock)(void);
    /** Act on a packet for this satellite at the service's APID. Pull the responses with Next until that returns false. */
    void (*Begin)(uint64_t now_us, const SKY_Packet_t *pkt);
    /** Get the next packet to send. Its body stays in place until the next Begin or Poll, or until Unlock. */
    bool (*Next)(uint64_t now_us, SKY_Out_t *out);
    /** Let time act; pull with Next afterwards. *next_us: time of the next Poll, UINT64_MAX if never. */
    void (*Poll)(uint64_t now_us, uint64_t *next_us);
    /** Count a packet for this APID that did not decode. */
    void (*Reject)(SKY_Status_t status);
    /** Note that no way leads from here to @p dst, to which the service sent. Not called between two calls of Next of one pull. */
    void (*Unreachable)(SKY_Addr_t dst);
} SKY_LIB_Service_t;

/** Failed assertions of the core. */
typedef struct
{
    uint64_t    failed;
    const char *file; /**< file of the first one, without a path; NULL: none failed */
    int         line;
} SKY_LIB_Asserts_t;

/** Entry point of the library (startup script). */
int32 SKY_LibInit(void);

/**
 * Offer a service. @p service stays in place until SKY_LIB_Unregister. If the satellite is known, Attach is called at once.
 * @return CFE_SUCCESS, CFE_STATUS_EXTERNAL_RESOURCE_FAIL: registry full, APID taken, a function missing, or no lock
 */
int32 SKY_LIB_Register(uint16_t apid, const SKY_LIB_Service_t *service);
/** Withdraw a service; wait until no one is in it. Nothing happens if it was not registered. */
void SKY_LIB_Unregister(uint16_t apid);

/** Tell all services, now and later, which satellite this is. @return number of services that cannot serve it */
uint32_t SKY_LIB_SetNode(const SKY_LIB_Node_t *node);

/** Lock the registry and find a service. @return NULL if there is none; then the registry is not locked */
const SKY_LIB_Service_t *SKY_LIB_Acquire(uint16_t apid);
/** Do as SKY_LIB_Acquire by place, 0 .. SKY_LIB_SERVICES - 1. @p apid receives the APID. */
const SKY_LIB_Service_t *SKY_LIB_AcquireAt(uint32_t place, uint16_t *apid);
void                     SKY_LIB_Release(void);

/** Return the monotonic time in microseconds: the clock of the core. */
uint64_t SKY_LIB_NowUs(void);
/** Return the offset from SKY_LIB_NowUs to cFE's time, which packets carry; add it modulo 2^64. */
uint64_t SKY_LIB_ClockOffsetUs(void);
/** Return the ICD's word for a status, for events. */
const char *SKY_LIB_StatusName(uint32_t status);
/** Return a number that differs from run to run; it is not secret enough for keys. */
uint64_t SKY_LIB_Seed(void);

/** Count a failed assertion, in any task. The first one goes into the system log of ES, which outlives a reset. */
void SKY_LIB_CountAssert(const char *file, int line);
/** Return the assertions that failed since the start, or since SKY_LIB_ResetAsserts. */
SKY_LIB_Asserts_t SKY_LIB_Asserts(void);
void              SKY_LIB_ResetAsserts(void);

#endif
