/**
 * @file
 * Many blocks over many satellites: which shares run, what leaves, what came, when it is over. Private to the library.
 */
#ifndef SKYC_TRANSFER_H
#define SKYC_TRANSFER_H

#include "skyc_socket.h"
#include "sky_defaults.h"
#include "sky_transfer.h"

#define SKYC_NO_JOB    UINT32_MAX
#define SKYC_NO_PEER   UINT32_MAX
#define SKYC_LANES     SKY_HOST_LANES /* shares of one satellite that run at a time, at most */
#define SKYC_LANES_MAX 65536u         /* of all satellites: a lane has 16 bits of the request id */

/** Chunks on their way through one satellite to or from several. Its links hold so many packets of a chunk each, and not many
 *  more; smaller packets need less room there. */
#define SKYC_WAY_CHUNKS 480u

/** A way in, and who shares it in this call. */
typedef struct
{
    SKYC_Endpoint_t endpoint;
    uint32_t        peers; /* that have something to do, as of the last sending */
    uint32_t        room;  /* chunks, as of then */
} SKYC_Way_t;

/** A satellite that was ever used; its window and round trip are remembered from call to call. */
typedef struct
{
    SKY_Peer_t      peer;
    SKY_Addr_t      entry;
    SKYC_Endpoint_t endpoint;
    uint32_t        way;
    uint32_t        call;                /* in which it was used last */
    uint32_t        at;                  /* of the active peers of that call */
    uint32_t        job_first, job_last; /* queue of this call */
    uint32_t        lanes_busy;          /* bits */
    uint64_t        heard_us;            /* when it last answered */
    bool            silent;              /* it was passed over in this call, and has said nothing since */
    SKYC_Served_t   served;              /* in this call; its times are those of the clock, and the last is heard_us */
} SKYC_Peer_t;

/** A piece of what one server has to do for one block: at most SKY_LIMIT_CHUNK_SET chunks. It is in the queue of the satellite
 *  that is asked for it next, or in a lane of that. */
typedef struct
{
    uint32_t   block, server;
    uint32_t   from;  /* chunks of the share that lie in the pieces before it */
    uint32_t   count; /* chunks */
    uint32_t   round; /* 0: at the server's own place, 1: at its first fallback, ... */
    uint32_t   next;  /* job of this satellite */
    SKY_Addr_t doubt; /* the first place that did not just deny the rest; {0,0}: none */
    uint8_t    doubt_state, doubt_status;
} SKYC_Job_t;

/** A piece that runs. */
typedef struct
{
    union
    {
        SKY_Fetch_t fetch;
        SKY_Push_t  push;
    } u;
    uint16_t asked_by[SKY_LIMIT_CHUNK_SET]; /* of the push */
    uint64_t request_id;                    /* its low 16 bits are 0; 0: the lane is free */
    uint32_t job;
    uint32_t left_begun;  /* chunks that were missing when it began */
    uint32_t left_seen;   /* chunks that were missing when last looked */
    uint64_t asked_us;    /* when it first asked; 0: not yet */
    uint64_t patience_us; /* silence after which the next place is asked; 0: there is none */
} SKYC_Lane_t;

typedef struct
{
    SKYC_Block_t *block;
    uint32_t      jobs_left;
    uint8_t      *have; /* chunks that lanes which passed on had received, a bit each; NULL: there are no fallbacks */
} SKYC_Work_t;

typedef struct
{
    SKYC_Config_t   config;
    SKY_PeerCfg_t   peer_cfg;
    SKYC_Socket_t  *sock;
    SKYC_Counters_t counters;
    SKYC_Progress_t progress;
    SKY_Addr_t      self;
    bool            is_put;
    uint64_t        cancel; /* atomic: number of the call to end */
    uint64_t        now_us, started_us;
    uint64_t        empty_us; /* when there was last nothing left to read */
    uint64_t        lanes_begun;
    uint32_t        redraws; /* of the host number, in this call */
    uint16_t        seq_count;
    uint32_t        call;
    uint32_t        budget; /* chunks that the receive buffer holds */
    uint32_t        blocks_left;
    SKYC_Work_t    *work;
    uint32_t        work_count;
    uint8_t        *have; /* of all blocks of this call */
    SKYC_Job_t     *jobs;
    SKYC_Peer_t    *peers; /* all ever used */
    uint32_t        peer_count, peer_room;
    uint32_t       *active; /* peers of this call */
    uint32_t        active_count, busy_count;
    SKYC_Way_t     *ways; /* of this call */
    uint32_t        way_count;
    uint32_t        turn;  /* which peer goes first */
    SKYC_Lane_t    *lanes; /* SKYC_LANES for each active peer */
    uint32_t        lane_room;
} SKYC_Engine_t;

/** @return 0, EINVAL or ENOMEM */
int  SKYC_Engine_Run(SKYC_Engine_t *engine, bool is_put, SKYC_Block_t *blocks, uint32_t count);
void SKYC_Engine_Free(SKYC_Engine_t *engine);
/** Who did what in the call that ended last: SKYC_Served. */
uint32_t SKYC_Engine_Served(const SKYC_Engine_t *engine, SKYC_Served_t *served, uint32_t room);

uint64_t SKYC_NowUs(void);

/* ---- skyc_plan.c -------------------------------------------------------------------------------------------------- */

/** Make the jobs of a call. @return 0, EINVAL or ENOMEM */
int SKYC_Engine_Prepare(SKYC_Engine_t *engine, SKYC_Block_t *blocks, uint32_t count);
/** When a block's time is over. */
uint64_t SKYC_Engine_DeadlineUs(const SKYC_Engine_t *engine, const SKYC_Block_t *block);
/** The @p count chunks from @p base on that lie on one satellite. */
void SKYC_Engine_Share(const SKYC_Engine_t *engine, const SKYC_Block_t *block, uint32_t base, uint32_t count,
                       SKY_ShareCfg_t *cfg);
/** The round after @p round in which a server has a place. @return 0: none */
uint32_t SKYC_Engine_NextRound(const SKYC_Engine_t *engine, const SKYC_Block_t *block, uint32_t server, uint32_t round);
/** Put a job into the queue of the satellite that has its server's place in its round. */
void SKYC_Engine_Queue(SKYC_Engine_t *engine, uint32_t job);

/* ---- skyc_lanes.c ------------------------------------------------------------------------------------------------- */

/** Give each free lane of active peer @p at the next piece. A block whose time is over does not begin any more.
 *  @return true: one began, here or at another satellite */
bool SKYC_Lanes_Begin(SKYC_Engine_t *engine, uint32_t at);
/** Let the timers of a lane act. @return when something is due at the latest */
uint64_t SKYC_Lane_OnTime(SKYC_Engine_t *engine, uint32_t index);
/** A packet for a lane has come from its satellite. */
void SKYC_Lane_OnPacket(SKYC_Engine_t *engine, uint32_t index, const SKY_Packet_t *pkt);
/** A lane whose share has ended leaves; if it did not end well and there is no other place, neither does its block.
 *  @return false: it still runs */
bool SKYC_Lane_Reap(SKYC_Engine_t *engine, uint32_t index);
/** End a block that runs. @param status  what became of it */
void SKYC_Block_Stop(SKYC_Engine_t *engine, uint32_t work, SKY_Status_t status);
/** A word that nobody can guess who does not see our packets. If the system has none, at least one that was not used lately. */
uint32_t SKYC_RandomWord(SKYC_Engine_t *engine);

#endif
