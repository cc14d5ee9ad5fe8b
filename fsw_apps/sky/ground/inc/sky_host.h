/**
 * @file
 * The ground's side of a transfer: decides which satellite is asked for which chunks, when, and what becomes of a block. Part of the
 * host: missions do not compile it.
 *
 * Sans I/O. Time comes in as an argument, memory is handed in. The shell around it moves bytes: it begins blocks, calls
 * SKY_Host_Receive for each datagram and SKY_Host_Run when it is due, and offers a table of functions (SKY_HostShell_t) through
 * which the host sends packets. Its shell is the ground (sky_ground.h).
 *
 * A block is striped over servers: chunk i is of *share* i mod server_count, which is at one server (sky_spread.h). All that this header says of
 * the servers of a block is in the order of its shares. A share is cut into *pieces* of at most SKY_LIMIT_CHUNK_SET chunks. Each satellite has a queue of pieces, and a few *lanes* in which
 * they run. *Small* blocks, of one data chunk, have a queue of their own, which goes ahead, and their packets are sent first.
 *
 * A block with an erasure code (sky_stripe.h) ends with the first chunks that suffice. A GET asks for its data chunks, and for parity once it
 * has a use for it: when a data chunk is lost, or when a satellite is silent for longer than most take (hedging), or at once for a while
 * after links lost many packets. Parity chunks of a PUT are made here. A chunk is lost if all places of its server deny it, or the last one is silent; a PUT that has lost no more than its
 * code bears is done, but degraded.
 */
#ifndef SKY_HOST_H
#define SKY_HOST_H

#include "sky_defaults.h"
#include "sky_host_ask.h"
#include "sky_host_open.h"
#include "sky_index.h"
#include "sky_quantile.h"
#include "sky_fetch.h"

#define SKY_HOST_NONE      UINT32_MAX
#define SKY_HOST_QUERIES   16u    /**< queries of a lane whose round trips are measured at a time */
#define SKY_HOST_LANES_MAX 65536u /**< of all satellites: a lane has 16 bits of the request id */
/** Number of the lane that has sent a request. It stands above the bits that count its requests. */
#define SKY_HOST_LANE_OF(request_id) ((uint32_t)((request_id) / SKY_REQUEST_IDS) & (SKY_HOST_LANES_MAX - 1u))

typedef enum
{
    SKY_HOST_GET = 0,
    SKY_HOST_PUT
} SKY_HostKind_t;

/** Chunks of a row. */
typedef struct
{
    uint32_t here;    /**< GET: chunks that have come; PUT: all, once their parity is made */
    uint32_t denied;  /**< chunks that all their places deny */
    uint32_t gone;    /**< those of them that nobody has: no place was at a stand-in */
    uint32_t doubted; /**< other chunks that were not to be had */
} SKY_HostRow_t;

/** Work of one satellite in a block. Times are those of the clock; 0: that did not happen. */
typedef struct
{
    uint16_t plane, slot;
    uint16_t entry_plane, entry_slot;
    uint32_t srtt_us; /**< smoothed round trip, over all time; 0: none was measured */
    uint32_t chunks;  /**< chunks received from it, or acknowledged by it, also those of blocks that did not come whole */
    uint32_t requests, repeats;
    uint64_t bytes;             /**< bytes of these chunks */
    uint64_t asked_us;          /**< time at which the first request (PUT: chunk) left */
    uint64_t first_us, last_us; /**< times of its first and last answer */
} SKY_HostServed_t;

/**
 * One block and its transfer. It stays in place until it has an end.
 *
 * While the sky turns a share's chunks move from one satellite to another, one by one. A GET asks for a share at its server's place
 * in `servers` first. Chunks that are not there are asked for at its place in the first round of `fallbacks`, and so on. A chunk is in
 * one of its places always and only moves forward, so places asked in the order of time find every chunk. A satellite that cannot be
 * reached, or that has been silent for its part of the time that is left, is passed over in the same way. A PUT goes to `servers`
 * only, unless the shell names another place for a share while it runs: SKY_Host_Replace.
 */
typedef struct SKY_HostBlock
{
    uint8_t        key[SKY_KEY_BYTES];
    uint32_t       kind; /**< SKY_HostKind_t */
    uint32_t       tenant;
    uint32_t       epoch;
    uint32_t       content;       /**< content instance: GET takes chunks of no other. 0: it has none */
    uint64_t       block_version; /**< version under the key: GET takes chunks of no other. 0: it has none */
    SKY_Stripe_t   stripe;
    uint32_t       deadline_ms; /**< time from the beginning; at least 1 */
    uint8_t       *data;        /**< stripe.block_len bytes: read by put, written by get */
    uint8_t       *parity;      /**< SKY_Stripe_ParityBytes for the host's own use; may be NULL without an erasure code */
    uint8_t       *have; /**< (stripe.chunk_total + 7) / 8 bytes for the host's own use; GET with fallbacks or a code only */
    SKY_HostRow_t *rows; /**< SKY_Stripe_Rows, likewise; may be NULL without a code */
    const SKY_HostPlace_t *servers;   /**< the servers of shares 0, 1, ... */
    const SKY_HostPlace_t *fallbacks; /**< rounds x server_count; plane 0: none for this server. May be NULL without rounds */
    bool                   needs_all; /**< PUT: no chunk may be lost, whatever the code bears */
    const bool *holders; /**< PUT: of each share, its server holds it, so nothing is sent there; not all do. NULL: none does */
    uint32_t    server_count; /**< with a code: code_k + code_m */
    uint32_t    rounds;       /**< at most SKY_HOST_ROUNDS */
    SKY_HostServed_t
            *served; /**< receives what each satellite did in it, in the order in which they ended; NULL: nobody wants to know */
    uint32_t served_room; /**< satellites for which there is room; others are not told of */
    /* outcome */
    /**
     * SKY_STATUS_*. RUNNING until the block has an end; then DONE, MISS, EXPIRED (the deadline has passed; or a place is silent, and
     * the others do not hold what is missing), CANCELLED, or what a satellite said, REFUSED if that is no status of the wire.
     */
    uint32_t status;
    uint32_t last_status;               /**< status of the last error response, 0: none */
    uint32_t failed_plane, failed_slot; /**< satellite on which the block failed, the last one of several places; 0: none */
    uint32_t failed_chunk;              /**< after a MISS: a chunk that nobody holds */
    bool     at_stand_in;               /**< after a MISS: it would be none if lost satellites had what their stand-ins deny */
    bool     is_unsettled;              /**< GET: a satellite that is not settled denied chunks: they may be on their way to it */
    uint64_t held_version; /**< PUT that ended with OLD_VERSION or BAD_KEY: the largest version that a satellite holds */
    uint32_t passes;       /**< pieces that went on to a later place */
    uint32_t chunks;       /**< chunks received, or acknowledged */
    uint32_t lost;         /**< chunks that were not to be had, or that nobody took; a PUT that is done with some is degraded */
    uint32_t decoded;      /**< GET: data chunks that were made of others */
    uint32_t requests, repeats, duplicates, corrupt;
    uint64_t bytes;       /**< bytes of these chunks */
    uint64_t duration_us; /**< time from the beginning to the block's end */
    uint64_t asked_us;    /**< time at which its first request (PUT: chunk) left; 0: none has */
    uint64_t heard_us;    /**< time of the last answer to one; 0: there was none */
    uint32_t moved;       /**< while it runs: chunks that have come, or were acknowledged, so far */
    uint32_t
        served_count; /**< satellites in `served`: those of an earlier transfer, if it is not 0 at first, and those of this one */
    uint32_t              row_next;   /**< the host's own: rows before this one have all their data */
    struct SKY_HostBlock *ended_next; /**< the host's own */
} SKY_HostBlock_t;

/** A way in: an endpoint through which satellites are reached. */
typedef struct
{
    uint64_t endpoint;
    uint32_t peers; /**< peers with work, as of the last sending */
    uint32_t room;  /**< room for chunks, as of then */
} SKY_HostWay_t;

/** Pace of PUTs to a satellite: sky_host_pace.c. */
typedef struct
{
    uint32_t window;                  /**< chunks that may be on their way; 0: none were measured yet */
    uint64_t age_us;                  /**< the last round trip behind a burst; 0: none */
    uint64_t least_us, forget_us;     /**< the least of them, and when it is forgotten */
    uint32_t ages;                    /**< round trips since the window changed, */
    uint64_t shortest_us, longest_us; /**< and bounds of these */
    uint64_t round_us;                /**< until then answers are to what was sent before the window changed */
    bool     is_filled;               /**< a queue was seen */
} SKY_HostPace_t;

/** A satellite; its window and round trip are remembered. */
typedef struct
{
    SKY_Peer_t     peer;
    SKY_Addr_t     entry;
    uint64_t       endpoint;
    uint32_t       way;
    uint32_t       active;                  /**< place among the active ones; SKY_HOST_NONE: it has no work */
    uint32_t       piece_first, piece_last; /**< ends of its queue */
    uint32_t       small_first, small_last; /**< ends of its queue of small blocks' pieces */
    uint32_t       lanes_busy;              /**< bits of busy `lanes` */
    uint16_t       lanes[SKY_HOST_LANES];
    uint64_t       heard_us; /**< time of its last answer */
    uint64_t       due_us;   /**< time at which its timers are due; 0: at once */
    uint64_t       used;     /**< count of the host when it last became active: the least is forgotten first */
    bool           ready;    /**< it may have something to send, after an event, or because others left it too little room */
    bool           slow;     /**< a block went on without it, and it has said nothing since */
    bool           has_more; /**< in this turn something of a small block was left */
    SKY_HostPace_t pace;
    bool           silent;     /**< it was passed over since it became active, and has said nothing since */
    bool           is_suspect; /**< SKY_Host_NextSuspect is to tell of it */
    uint64_t
        missed_us; /**< time of the first request with which a block went on without it, since it has said something; 0: there is none */
    uint64_t
        doubt_us; /**< until then it is late from its first request on: another process of this machine found it silent; 0: it is not */
    bool              is_doubt_lost; /**< so silent that it was lost */
    SKY_HostOpening_t opening;
    uint64_t          lease_endpoint; /**< endpoint through which its telemetry was asked for; 0: it was not */
    uint64_t          lease_ids[2];   /**< request ids of the last two questions for it */
} SKY_HostPeer_t;

/** A place that failed, and why. */
typedef struct
{
    SKY_Addr_t addr; /**< {0,0}: there is none */
    uint8_t    state, status;
} SKY_HostDoubt_t;

/** A block that runs, or that ended and has pieces in queues still. */
typedef struct
{
    SKY_HostBlock_t *block; /**< NULL: it has ended */
    uint64_t         started_us, deadline_us;
    bool             is_small;     /**< it has one data chunk */
    uint32_t         pieces_left;  /**< pieces that have not ended */
    uint32_t         pieces_alive; /**< pieces held, in a queue or a lane; with none and without a block the place is free */
    uint32_t         held;         /**< first piece with parity that is held back, or SKY_HOST_NONE */
    uint32_t         rows_left;    /**< GET: rows of which not enough has come */
    SKY_HostRow_t    only_row;     /**< the row of a block without a code */
    uint32_t         lost;         /**< GET: chunks that did not come in time, each time that happened */
    uint32_t         shares;       /**< shares that satellites are asked for, or get, */
    uint32_t         answered;     /**< and those of them of which somebody has said something */
    uint64_t         silence_us;   /**< longest silence of one of its satellites that an answer has ended */
    SKY_HostDoubt_t  doubt;     /**< the first place for whose failure chunks count as lost, though it did not just deny them */
    bool             tells_use; /**< a GET that has just begun, and has not told servers of parity that the block is used */
    uint32_t         next;      /**< free place behind this one */
} SKY_HostWork_t;

/** A piece of a share. It is in the queue of the satellite that is asked for it next, or in a lane of that. */
typedef struct
{
    uint32_t        work, server;
    uint32_t        from;    /**< chunks of the share in the pieces before it */
    uint32_t        count;   /**< chunks of this piece */
    uint32_t        round;   /**< 0: at the server's own place, 1: at its first fallback, ... */
    uint32_t        next;    /**< next piece of this satellite, next one held back, or next free piece */
    uint32_t        lane;    /**< in which it runs, or SKY_HOST_NONE */
    uint32_t        twin;    /**< the same piece of a PUT at another place, or SKY_HOST_NONE: the first that is taken counts */
    bool            is_over; /**< its twin was taken: it is freed when its turn comes */
    SKY_HostDoubt_t doubt;   /**< the first place that did not just deny the rest, */
    SKY_HostDoubt_t later;   /**< and the last other one. One of both at most is asked again */
} SKY_HostPiece_t;

/** A piece that runs. */
typedef struct
{
    union
    {
        SKY_Fetch_t fetch;
        SKY_Push_t  push;
    } u;
    uint16_t asked_by[SKY_LIMIT_CHUNK_SET]; /**< memory of the push */
    uint64_t queried_us[SKY_HOST_QUERIES];  /**< PUT: times at which its last queries left, by their number */
    uint64_t request_id;                    /**< its low 16 bits are 0; 0: the lane is free */
    uint32_t kind;
    bool     is_small; /**< its block is */
    uint32_t peer;
    uint32_t place;    /**< among the lanes of its peer */
    uint64_t endpoint; /**< endpoint through which it asks */
    uint32_t piece;
    uint32_t next;       /**< free lane behind this one */
    uint32_t left_begun; /**< chunks that were missing at its begin */
    uint32_t left_seen;  /**< chunks that were missing at the last look */
    uint64_t begun_us;
    uint64_t asked_us;          /**< time of its first request; 0: none yet */
    uint64_t sent_us;           /**< time at which its first request (PUT: chunk) left; 0: none has, */
    uint64_t first_us, last_us; /**< and of its first and last answer; 0: there was none */
    uint64_t bytes;             /**< GET: bytes that have come */
    bool     is_answered;       /**< something has come */
    bool     is_overdue;        /**< its satellite is suspected to be lost */
    uint64_t patience_us;       /**< silence after which the next place is asked; 0: there is none */
} SKY_HostLane_t;

/** Memory of satellites. It stays in place. All of it was 0 when it was handed in. */
typedef struct
{
    SKY_HostPeer_t *peers;
    uint32_t       *active;
    SKY_HostWay_t  *ways;
    void           *index;      /**< SKY_Index_MemoryBytes(peer_count) */
    uint32_t        peer_count; /**< entries of peers, active and ways each; from 1 */
} SKY_HostPeerMemory_t;

/** Memory of blocks. It stays in place until other memory is lent. */
typedef struct
{
    SKY_HostWork_t  *works;
    SKY_HostPiece_t *pieces;
    SKY_HostLane_t  *lanes;
    uint32_t         work_count, piece_count;
    uint32_t         lane_count; /**< at most SKY_HOST_LANES_MAX */
    uint32_t         lanes_kept; /**< lanes that only small blocks take, fewer than all */
} SKY_HostBlockMemory_t;

/** Functions that the shell offers to the host. */
typedef struct
{
    void *context; /**< the first argument of all functions */
    /**
     * Send a packet. Its payload is a piece of a block's data, that of a question, or what Payload returned last.
     * @param key  key of the packet's tag, for SKY_Tag_EncodeAround; NULL: it has none. Valid until Send returns
     */
    void (*Send)(void *context, uint64_t now_us, uint64_t endpoint, const SKY_Packet_t *pkt, const SKY_TagKey_t *key);
    /** Return room for the payload of the packet that is sent next: SKY_CHUNKSET_MAX_BYTES. */
    uint8_t *(*Payload)(void *context);
    /** Draw random bytes that nobody can guess without seeing our packets. @return false if there are none now */
    bool (*Random)(void *context, uint8_t *bytes, size_t count);
} SKY_HostShell_t;

typedef struct
{
    SKY_PeerCfg_t peer;
    uint32_t      packet_bytes;  /**< largest packet of the path */
    uint16_t      number;        /**< the ground address is (0, number) */
    bool          keeps_number;  /**< keep the number even if another host has it; else another one is drawn */
    uint32_t      way_chunks;    /**< chunks that may be on their way through one satellite to or from several; 0: SKY_HOST_WAY */
    bool          asks_all;      /**< ask for parity at once: the fastest satellites count, for more bytes */
    SKY_HostSecurity_t security; /**< all 0: satellites ask nobody for a cookie or a tag */
} SKY_HostCfg_t;

typedef struct
{
    uint64_t undecoded; /**< datagrams that did not decode */
    uint64_t stale;     /**< packets that nobody waits for from their sender */
    uint64_t chunks;    /**< chunks that have come, or were acknowledged */
    uint64_t repeats;   /**< questions and openings that were sent again */
    uint64_t untrusted; /**< answers without the tag that they need */
    uint64_t no_random; /**< handshakes that were not sent, because there were no random bytes */
} SKY_HostCounters_t;

/** Take in telemetry of a satellite: its message is the payload of @p pkt, in place until this returns. With a keyring no message comes
 *  twice, nor after a later one. */
typedef void (*SKY_HostListener_t)(void *context, const SKY_Packet_t *pkt);

typedef struct
{
    SKY_HostShell_t       shell;
    SKY_HostCfg_t         cfg;
    SKY_HostPeerMemory_t  peers;
    SKY_HostBlockMemory_t blocks;
    SKY_Index_t           index;
    SKY_HostCounters_t    counters;
    SKY_Addr_t            self;
    uint64_t              now_us;
    uint64_t              used;
    uint64_t              queue_deadline_us; /* no piece in a queue is of a block with an earlier deadline */
    uint32_t              peer_used;         /* used entries of the table */
    uint32_t              work_free, piece_free, lane_free;
    uint32_t              lane_used; /* lanes before this one were in use; those from it on are free, and not in the list */
    uint32_t              piece_free_count, lane_free_count;
    uint32_t              running; /* blocks */
    uint32_t              active_count, busy_count, way_count;
    uint32_t              turn;           /* peer that goes first */
    SKY_Quantile_t        answer_times;   /* from the first request of a lane to its first answer */
    uint64_t              hedge_us;       /* silence after which a GET asks for parity; 0: too few answer times are known */
    bool                  has_suspects;   /* SKY_Host_NextSuspect has something to tell */
    uint64_t              lossy_until_us; /* until then a GET asks for parity at once, because links lose packets */
    uint32_t              redraws;
    uint32_t              numbers;      /* host numbers drawn so far */
    uint32_t              drawn;        /* numbers for ids drawn so far */
    uint32_t              queue_us;     /* that PUTs may fill queues for; 0: any */
    uint64_t              quantum_left; /* bytes of PUTs and of rows to decode, until it is set anew */
    uint32_t              budget;       /* chunks that may be on their way to this host from all satellites */
    uint16_t              seq_count;
    bool                  ways_changed;
    bool                  tells_use; /* a block has begun that has to tell so */
    SKY_HostBlock_t      *ended;
    SKY_HostBlock_t      *decoding; /* GETs that have all that they need, and have rows to decode */
    SKY_HostQuestions_t   questions;
    SKY_HostListener_t    listener; /* NULL: nobody listens */
    void                 *listener_context;
} SKY_Host_t;

/** Begin a host. @return false if a table of the memory has no entries, or the library has too few places for keys */
bool SKY_Host_Init(SKY_Host_t *host, const SKY_HostShell_t *shell, const SKY_HostCfg_t *cfg, const SKY_HostPeerMemory_t *memory);
/** Lend memory for blocks. Only while none runs. @return false if a table has no entries, or too many; nothing has changed */
bool SKY_Host_Lend(SKY_Host_t *host, const SKY_HostBlockMemory_t *memory);
/** Set how many chunks may be on their way to this host: its receive buffer. */
void SKY_Host_SetBudget(SKY_Host_t *host, uint32_t chunks);
/** Set for how long packets to a satellite may wait behind chunks of PUTs in queues on the way, about; 0: for any time. */
void SKY_Host_SetQueue(SKY_Host_t *host, uint32_t queue_us);
/** Set how many bytes of PUTs are sent until this is called again, besides small blocks; UINT64_MAX, as at first: any number. */
void SKY_Host_SetQuantum(SKY_Host_t *host, uint64_t bytes);
/** Return the pieces of a block, which SKY_Host_Begin needs free; 0 if its numbers contradict each other. */
uint64_t SKY_Host_Pieces(const SKY_Host_t *host, const SKY_HostBlock_t *block);
/** Return true if a block of so many pieces may begin now. */
bool SKY_Host_HasRoom(const SKY_Host_t *host, uint64_t pieces);

typedef enum
{
    SKY_HOST_BEGUN = 0,
    SKY_HOST_WRONG, /**< the block's numbers contradict each other */
    SKY_HOST_FULL   /**< no memory is free for it now */
} SKY_HostBegun_t;

/** Begin a block. Nothing is sent before SKY_Host_Run. */
SKY_HostBegun_t SKY_Host_Begin(SKY_Host_t *host, uint64_t now_us, SKY_HostBlock_t *block);
/** Take in a datagram. The next SKY_Host_Run sends what it makes possible. */
void SKY_Host_Receive(SKY_Host_t *host, uint64_t now_us, uint64_t endpoint, const uint8_t *data, size_t len);
/**
 * Begin pieces that can begin, let timers act, send packets for which there is room.
 * @param timers  false: received packets are still being read, so nothing counts as late yet
 * @return time of the next call, at the latest; @p now_us: at once, after a look at what has come; UINT64_MAX: there is nothing to wait for
 */
uint64_t SKY_Host_Run(SKY_Host_t *host, uint64_t now_us, bool timers);
/** End a block with TOO_LARGE, as no path here takes a packet of this request. */
void SKY_Host_RefuseTooLarge(SKY_Host_t *host, uint64_t now_us, uint64_t request_id);
/** End a block that runs, or NULL: all of them, and all questions. */
void SKY_Host_Stop(SKY_Host_t *host, uint64_t now_us, const SKY_HostBlock_t *block, SKY_Status_t status);
/** Get a block that has ended since the last call, the newest first. @return NULL if there is no more */
SKY_HostBlock_t *SKY_Host_NextEnded(SKY_Host_t *host);
/**
 * Get a satellite that was found overdue since the last call: others have answered, and it says nothing (sky_host_replace.c). It may be
 * lost, or just be late, so blocks go on to wait for it.
 * @return false if there is no more
 */
bool SKY_Host_NextSuspect(SKY_Host_t *host, SKY_Addr_t *satellite);
/**
 * Move a share of a block that runs to another place besides. A PUT sends there what its satellite has not taken, which may still take it: the
 * first of both counts. A GET goes on to the next rounds of `fallbacks`, to which the shell has added places.
 * @param share  of a PUT: its place is now that of round 1 of `fallbacks`
 * @return false if nothing was moved: the share has ended, or there is no other place, or no memory
 */
bool SKY_Host_Replace(SKY_Host_t *host, uint64_t now_us, const SKY_HostBlock_t *block, uint32_t share);
/** Wait no longer for a satellite that is lost, unless it has said something since then. */
void SKY_Host_GiveUp(SKY_Host_t *host, uint64_t now_us, SKY_Addr_t satellite, uint64_t since_us);

/** Take a satellite for late from its first request on, until it says something, or until a time: another host found it silent.
 *  @param is_lost  that host had as many questions without an answer as make it lost */
void SKY_Host_Doubt(SKY_Host_t *host, SKY_Addr_t satellite, uint64_t until_us, bool is_lost);
/** Return what is known of a satellite, or NULL. */
const SKY_HostPeer_t *SKY_Host_PeerOf(const SKY_Host_t *host, SKY_Addr_t addr);

/* ---- questions: sky_host_questions.c ------------------------------------------------------------------------------------------ */

/** Lend memory for questions. Only while none runs. @return false if it has no places, or too many; nothing has changed */
bool SKY_Host_LendQuestions(SKY_Host_t *host, const SKY_HostQuestionMemory_t *memory);
/** Set how long answers are waited for; a 0 changes nothing. */
void SKY_Host_SetPatience(SKY_Host_t *host, const SKY_HostPatience_t *patience);
/** Ask a question. Nothing is sent before SKY_Host_Run. @return FULL: no memory was lent; WRONG: its numbers contradict each other */
SKY_HostBegun_t SKY_Host_Ask(SKY_Host_t *host, uint64_t now_us, SKY_HostQuestion_t *question);
/** End all questions of an owner that wait or are on their way. SKY_Host_NextAnswered returns them as others that have ended. */
void SKY_Host_Withdraw(SKY_Host_t *host, const void *owner, SKY_Status_t status);
/** Hand telemetry over from now on: what satellites send that were asked for it (RELAY with flag TLM). @param listener  NULL: to nobody */
void SKY_Host_Listen(SKY_Host_t *host, SKY_HostListener_t listener, void *context);
/** Return the number of questions that wait or are on their way. */
uint32_t SKY_Host_Asking(const SKY_Host_t *host);
/**
 * Let nobody wait for a question any more that has no end yet: it is the caller's again, as one that
 * has expired, and SKY_Host_NextAnswered does not return it.
 * @param heir  goes on in its place if it has been sent, with the payload and the room to which it pointed; NULL: nothing does
 * @return true if the heir goes on
 */
bool SKY_Host_Leave(SKY_Host_t *host, SKY_HostQuestion_t *question, SKY_HostQuestion_t *heir);
/** Get a question that has ended since the last call, the oldest first. @return NULL if there is no more */
SKY_HostQuestion_t *SKY_Host_NextAnswered(SKY_Host_t *host);
/** Return how long satellites may say nothing before they count as silent: five sendings, by the round trips measured so far. */
uint64_t SKY_Host_PatienceUs(const SKY_Host_t *host, const SKY_Addr_t *satellites, uint32_t count);
/** Return how long to wait for answers that one can do without: three sendings; 0 if there are no satellites. */
uint64_t SKY_Host_HurryUs(const SKY_Host_t *host, const SKY_Addr_t *satellites, uint32_t count);
/** Return the suites of the associations that there are, as a mask: SKY_SUITE_BIT. */
uint32_t SKY_Host_Suites(const SKY_Host_t *host);
/** Note a round trip that another host measured. It counts only if none was measured here. */
void SKY_Host_Expect(SKY_Host_t *host, SKY_Addr_t satellite, uint32_t rtt_us);
/** Take another number from 1, for instance because another host may have this one and get our answers. What runs goes on under it. */
void SKY_Host_SetNumber(SKY_Host_t *host, uint16_t number);

#endif
