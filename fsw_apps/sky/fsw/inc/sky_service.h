/**
 * @file
 * The hashtable service: requests in, responses out, on top of the chunk store. Sans I/O: packets, time and randomness come in
 * as arguments; responses are pulled one by one, as head + body + tail, where the body of a GET lies in the store itself.
 */
#ifndef SKY_SERVICE_H
#define SKY_SERVICE_H

#include "sky_store.h"
#include "sky_torus.h"
#include "sky_transfer.h"

#define SKY_SERVICE_MIGRATIONS 4u   /**< at a time */
#define SKY_SERVICE_SCRATCH_BYTES 512u

/** One packet to send. @c body is valid until the next call into the service. */
typedef struct
{
    SKY_Addr_t     dst;     /**< of the packet; the router decides over which link */
    SKY_Addr_t     gateway; /**< when dst is a ground host */
    uint8_t        head[SKY_HEAD_MAX];
    uint32_t       head_len;
    const uint8_t *body;
    uint32_t       body_len;
    uint8_t        tail[SKY_PEC_BYTES];
} SKY_Out_t;

typedef struct
{
    SKY_Addr_t self;
    SKY_Torus_t torus;        /**< MIGRATE targets are checked against it */
    uint32_t   packet_bytes;  /**< largest packet of the links */
    uint32_t   credit;        /**< chunks that a PUT burst may have; largest GET burst */
    uint32_t   part_lifetime_ms; /**< of an incomplete chunk when a PUT has no deadline */
} SKY_ServiceCfg_t;

/** Counters in the order of `stats.kvc` of the ICD are made from these and the store's. */
typedef struct
{
    uint64_t requests, puts, gets, hits, misses, purges, migrated_out, migrated_in;
    uint64_t errors[SKY_STATUS_SHORT + 1u]; /**< by status */
} SKY_ServiceCounters_t;

typedef struct
{
    bool       active;
    bool       keep;
    bool       all_blocks;
    uint32_t   cursor;      /**< of SKY_Store_NextBlock */
    SKY_Addr_t target;
    SKY_Peer_t peer;
    SKY_Push_t push;
    bool       pushing;
    uint64_t   deadline_us;
} SKY_Migration_t;

typedef struct
{
    SKY_ServiceCfg_t      cfg;
    SKY_Store_t *         store;
    SKY_ServiceCounters_t counters;
    uint64_t              started_us;
    uint64_t              next_request_id;
    uint16_t              seq_count;
    SKY_Migration_t       migrations[SKY_SERVICE_MIGRATIONS];
    /* the response at hand */
    SKY_Packet_t          reply;
    SKY_ChunkSet_t        set;
    uint32_t              set_index;
    uint32_t              burst_left;
    uint32_t              part_offset;
    int                   stage;
    uint8_t               scratch[SKY_SERVICE_SCRATCH_BYTES];
} SKY_Service_t;

bool SKY_Service_Init(SKY_Service_t *svc, const SKY_ServiceCfg_t *cfg, SKY_Store_t *store, uint64_t now_us, uint64_t random);
/**
 * Act on one packet for this satellite at APID kvc (request, or response to one of our migrations). Responses to it are then
 * pulled by SKY_Service_Next until that returns false; what is not pulled is dropped by the next call of Begin.
 */
void SKY_Service_Begin(SKY_Service_t *svc, uint64_t now_us, const SKY_Packet_t *pkt);
bool SKY_Service_Next(SKY_Service_t *svc, uint64_t now_us, SKY_Out_t *out);
/** Work that nobody asked for just now: migrations go on, parts expire. Call Next until false, then again at *next_us. */
void SKY_Service_Poll(SKY_Service_t *svc, uint64_t now_us, uint64_t *next_us);
/** Count a packet that never became a request (SKY_Packet_Decode failed). */
void SKY_Service_CountError(SKY_Service_t *svc, SKY_Status_t status);
/** The counters of `stats.kvc`, SKY_STATS_KVC_COUNT of them. */
void SKY_Service_Stats(const SKY_Service_t *svc, uint64_t now_us, uint64_t *out);
void SKY_Service_ResetCounters(SKY_Service_t *svc);

#endif
