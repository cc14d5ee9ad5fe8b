/**
 * @file
 * A ground host: operations on blocks, as many at once as there is memory for. Missions do not compile it.
 *
 * Sans I/O. Time comes in as an argument, memory is handed in. The shell around it moves bytes: it submits operations, calls
 * SKY_Ground_Receive for each datagram and SKY_Ground_Run when it is due, and takes back operations that have ended. Shells are the twin
 * and the ground's thread (ground/native/skyc_ground.h).
 *
 *     GET    moves a block here, from all places where it may be                          sky_ground_move.c
 *     PUT    moves a block to the places of now                                           sky_ground_move.c
 *            and around satellites that turn out to be late meanwhile, as a GET does      sky_ground_replace.c
 *            and has older versions of a value forgotten where a look-up would meet them  sky_ground_older.c
 *     FIND   asks satellites for the facts of blocks of which only the keys are known     sky_ground_find.c, sky_ground_chain.c
 *     CHECK  asks servers whether they hold all of a block, in a hurry or to be sure      sky_ground_check.c
 *     PURGE  has satellites forget a block                                                sky_ground_purge.c
 *     EXCHANGE  asks satellites what the shell wants of them: PING, STATS, RELAY, ...      sky_ground_exchange.c
 *     TOUCH  has blocks of a chain count as used, the last one first                      sky_ground_touch.c
 *     PREFETCH  has satellites move a block to where a row to come has its shares         sky_ground_prefetch.c
 *
 * The states of each are drawn at the beginning of its file.
 *
 * An operation waits for one of three: its own questions to satellites (sky_ground_ask.c), its transfer (sky_host.h), or an inquiry of the
 * ground (sky_ground_inquiry.c), for which several operations may wait. It ends once, with a status.
 *
 * Any number may be submitted: what the tables do not hold, or is too much data at once, waits for its turn (sky_ground_queue.c).
 *
 * The sky that the ground sees (SKY_GroundSky_t) may be changed while operations run. Each looks at it when it asks the next satellites:
 * what is on its way stays as it was asked.
 */
#ifndef SKY_GROUND_H
#define SKY_GROUND_H

#include "sky_handovers.h"
#include "sky_held.h"
#include "sky_host.h"
#include "sky_lookup.h"
#include "sky_places.h"
#include "sky_presence.h"
#include "sky_purge.h"
#include "sky_reach.h"
#include "sky_transfer_attempts.h"

/** Questions of a TOUCH that are on their way at once, at most: blocks further to the front are surely used later. */
#define SKY_GROUND_TOUCH_ASKS 64u

/** Way of the host into the sky. */
typedef enum
{
    SKY_UPLINK_DIRECT = 0, /**< directly to each satellite */
    SKY_UPLINK_CENTRE = 1, /**< over the satellite at the centre of the window, or its stand-in */
    SKY_UPLINK_SEEN = 2, /**< over that satellite in sight from which it is the fewest hops; with none in sight nobody is asked */
    SKY_UPLINK_FIRST   = 3, /**< over the first satellite in sight that is not lost; with none nobody is asked */
    SKY_UPLINK_SERVERS = 4, /**< over that server from which it is the fewest hops, the nearest to the centre of several */
    SKY_UPLINK_ABOARD  = 5  /**< over the satellite at the centre, on which the host is */
} SKY_GroundUplink_t;

/** The sky that a host sees. The memory is the shell's; it stays until another sky is set. */
typedef struct
{
    const SKY_Schedule_t *schedule;    /**< window at all times, on the clock of now_us */
    uint64_t              handover_us; /**< time that a handover may take */
    uint64_t              put_late_us; /**< age of the schedule by which blocks are put: a host whose clock is late; 0: none */
    uint32_t              changes;     /**< number of this schedule: what is known of handovers under another one does not hold */
    uint32_t              uplink;      /**< SKY_GroundUplink_t */
    const SKY_Addr_t     *seen;        /**< satellites in sight, the best first */
    uint32_t              seen_count;
    uint32_t              parity;     /**< servers that hold parity of a row */
    bool                  lazy_purge; /**< hosts purge what is left of a block that is gone */
    bool is_unscheduled;              /**< the host follows no schedule, though it does not know that satellites follow none */
} SKY_GroundSky_t;

typedef enum
{
    SKY_GROUND_GET = 0,
    SKY_GROUND_PUT,
    SKY_GROUND_FIND,
    SKY_GROUND_CHECK,
    SKY_GROUND_PURGE,
    SKY_GROUND_EXCHANGE,
    SKY_GROUND_TOUCH,
    SKY_GROUND_PREFETCH
} SKY_GroundKind_t;

/** A block of a chain. */
typedef struct
{
    uint8_t          key[SKY_KEY_BYTES];
    SKY_BlockFacts_t facts;
} SKY_GroundBlock_t;

/** Inquiry that an operation waits for. */
typedef enum
{
    SKY_GROUND_WAIT_NOT = 0,
    SKY_GROUND_WAIT_LOOK, /**< for satellites that do not answer (sky_reach.h) */
    SKY_GROUND_WAIT_BACK, /**< for lost satellites that are back */
    SKY_GROUND_WAIT_LATE, /**< for satellites with something to hand over (sky_handovers.h) */
    SKY_GROUND_WAIT_BLIND /**< for the word whether servers follow a schedule */
} SKY_GroundWait_t;

/**
 * A block that is looked up, in memory of who submits the FIND. Who submits it has set what stands first, and 0 elsewhere.
 *
 *     satellites are asked -> one knows the block, which has no version: DONE, whatever others would say
 *                          -> all have spoken: DONE if one knows the block, and the newest version counts; else it may be on its way
 *                          -> one was silent: they are asked around lost satellites, once; then UNANSWERED
 *     it may be on its way -> late satellites are asked, and the first ones again (sky_lookup.h): DONE, or MISS
 */
typedef struct
{
    uint8_t key[SKY_KEY_BYTES];
    bool
        is_incomplete; /**< this host has learned that a share of the block is missing: if it is there it is missed all the same */
    /* outcome */
    uint32_t status; /**< SKY_STATUS_*: DONE, MISS, UNANSWERED or NO_SATELLITE; RUNNING: not known, for behind the end of a chain
                      *   nobody is asked */
    SKY_BlockFacts_t facts;    /**< of the newest that satellites know, if it is DONE */
    uint32_t         silences; /**< questions without an answer, but for those that nobody waited for */
    /* for the ground only */
    SKY_Lookup_t core;
    uint32_t     next;       /**< next key of its list */
    uint32_t     question;   /**< first of its questions */
    uint32_t     at;         /**< number of the satellite that is asked next */
    uint32_t     asks;       /**< satellites that were asked in this step, */
    uint32_t     asking;     /**< and those of them that have yet to answer */
    uint32_t     word;       /**< SKY_HasWord_t: what they say together */
    bool         is_passing; /**< in the middle of a step */
    bool         at_once;    /**< the step asks all of them at once */
    bool         is_asked;   /**< no other one is asked in this step */
    bool         is_silent;  /**< one was silent in this step */
    bool         is_listed;  /**< it is in a list */
} SKY_GroundFound_t;

/** Keys in a list: numbers of the first and the last one. */
typedef struct
{
    uint32_t first, last;
} SKY_GroundKeys_t;

/** Looking blocks up: a FIND, or what a GET asks before it ends. Questions roll: whoever's answer has come makes room for the next key. */
typedef struct
{
    SKY_GroundFound_t *found;
    uint32_t           found_count;
    bool               is_fresh;      /**< SKY_GroundOp_t */
    bool               is_open;       /**< the operation's questions are those of keys */
    bool               has_places;    /**< it is known whom to ask */
    bool               at_once;       /**< satellites are asked all at once: blocks have parity, or the newest is wanted */
    bool               needs_look;    /**< keys wait for a look, */
    bool               needs_late;    /**< or a search for late satellites, */
    bool               needs_places;  /**< or for places that have changed */
    SKY_GroundKeys_t   ready, parked; /**< keys that go on, and that wait */
    uint32_t           free, fresh;   /**< first free question; number of those that were used before */
    uint64_t           usual_us;      /**< time after which answers are late, by the first one that has come; 0: none has */
    uint64_t           late_us;       /**< time at which the next answer is late; 0: none is to be */
    uint32_t           rows[SKY_PLACES_ROWS_MAX];
    uint32_t           row_count;                 /**< rows that are asked; 0: nobody is in sight */
    uint32_t           row;                       /**< row of that time */
    uint32_t           parity;                    /**< servers behind the first one that are asked, too */
    uint32_t           skies, losses, lost_count; /**< numbers of the sky and of lost satellites when places were found, */
    uint64_t           places_us;                 /**< and the time of that */
    /* chain: sky_ground_chain.c */
    bool     is_chain, is_rest; /**< all that was left out before its end is asked */
    uint32_t low, high, middle; /**< before `low` all that was asked is there, from `high` on nothing is; key that is asked */
    /* questions of a GET or CHECK to satellites about one block: sky_ground_confirm.c */
    bool              has_asked;
    uint32_t          spares; /**< number of satellites that stand in first */
    SKY_BlockFacts_t  facts;  /**< facts that satellites know of the block */
    SKY_GroundFound_t one;
} SKY_GroundFind_t;

/** Question that a GET asks before it ends (sky_ground_confirm.c). */
typedef enum
{
    SKY_GROUND_CONFIRM_NOT = 0,
    SKY_GROUND_CONFIRM_AHEAD, /**< whether the block is prefetched for a row to come */
    SKY_GROUND_CONFIRM_OTHER, /**< whether another block has the key */
    SKY_GROUND_CONFIRM_BLIND, /**< whether satellites follow a schedule that this host does not know */
    SKY_GROUND_CONFIRM_ASIDE  /**< whether stand-ins hold some of it */
} SKY_GroundConfirm_t;

/** Step of a CHECK. */
typedef enum
{
    SKY_GROUND_CHECK_LATE = 0, /**< find out whether handovers go on */
    SKY_GROUND_CHECK_HELD,     /**< servers are asked what they hold */
    SKY_GROUND_CHECK_AHEAD,    /**< a chunk is gone: servers are asked whether the block is prefetched for a row to come, */
    SKY_GROUND_CHECK_BLIND,    /**< and whether they follow a schedule that this host does not know; */
    SKY_GROUND_CHECK_ASIDE     /**< stand-ins are asked whether they hold some of the block */
} SKY_GroundCheckStep_t;

/** State of a CHECK. */
typedef struct
{
    SKY_GroundCheckStep_t step;
    bool                  has_asked;  /**< a server was asked */
    bool                  has_looked; /**< lost satellites were looked for, as one was silent */
    bool                  is_moving;  /**< satellites may have something to hand over */
    bool                  is_certain; /**< all satellites that may have something to hand over said that they have nothing */
    uint64_t              began_us;   /**< time at which they were asked */
    uint64_t              end_us;     /**< time by which they have to answer */
    uint32_t              rows[SKY_PLACES_ROWS_MAX];
    uint32_t              row_count;
    uint32_t              silent_count;
    SKY_Held_t            told;
} SKY_GroundCheck_t;

/** State of a PURGE. */
typedef struct
{
    SKY_Purge_t core;
    bool        has_asked; /**< satellites were asked in this step */
    bool        is_over;   /**< it was known before that no handover goes on */
    uint32_t    row;       /**< row in which they were asked */
} SKY_GroundPurge_t;

/** Key of a question. */
typedef struct
{
    uint32_t found;   /**< number of the key; SKY_HOST_NONE: none */
    uint32_t next;    /**< next question of this key, or next free one */
    uint64_t late_us; /**< time at which its answer is late; 0: its satellite is doubted */
} SKY_GroundSlot_t;

/** Step of a PREFETCH. */
typedef enum
{
    SKY_GROUND_PREFETCH_ROUND = 0, /**< a round is to begin */
    SKY_GROUND_PREFETCH_MOVES,     /**< places are asked to move their shares */
    SKY_GROUND_PREFETCH_HELD,      /**< targets are asked whether they hold theirs */
    SKY_GROUND_PREFETCH_PAUSES
} SKY_GroundPrefetchStep_t;

/** State of a PREFETCH. */
typedef struct
{
    SKY_GroundPrefetchStep_t step;
    uint64_t                 end_us;
    uint64_t                 pause_us; /**< next pause between two rounds */
    uint32_t   strikes;   /**< successive rounds in which a share was missing, and nobody had anything to move or to hand over */
    uint32_t   at;        /**< places asked, or pieces of shares, so far */
    bool       has_more;  /**< in this round a satellite had something to move, */
    bool       is_silent; /**< or did not answer */
    bool       is_over;   /**< nobody has anything to hand over */
    SKY_Held_t told;
} SKY_GroundPrefetch_t;

typedef struct SKY_GroundOp SKY_GroundOp_t;

/** An operation. It belongs to the ground from SKY_Ground_Submit until SKY_Ground_Ended returns it, and so does the memory to which it
 *  points. Who submits it has set what stands first, and 0 elsewhere. */
struct SKY_GroundOp
{
    SKY_GroundKind_t kind;
    uint8_t          key[SKY_KEY_BYTES];
    uint32_t         tenant;
    SKY_BlockFacts_t
             facts; /**< of the block, sound but for FIND, which sets them. GET: those of the block that came, or is there.
                     *   PURGE: newest version that goes; the stripe may be all 0, as of a block of which only the key is known */
    uint64_t known; /**< GET: newest version of a value that the host knows; an older one is none */
    uint32_t
                   deadline_ms; /**< of an attempt, or of a question of FIND or GET; at least 1. EXCHANGE: of all, from SKY_Ground_Submit on; 0 is as long
                      *   as an answer may take from its beginning on */
    uint8_t       *data;      /**< GET, PUT: facts.stripe.block_len bytes */
    uint8_t       *parity;    /**< GET, PUT: SKY_Stripe_ParityBytes; may be NULL without a code */
    uint8_t       *have;      /**< GET, PUT: (facts.stripe.chunk_total + 7) / 8 bytes */
    SKY_HostRow_t *rows;      /**< GET, PUT: SKY_Stripe_Rows; may be NULL without a code */
    SKY_HeldRow_t *held_rows; /**< CHECK, PREFETCH: room for SKY_Stripe_Rows; may be NULL without a code */
    SKY_HostServed_t *
        served; /**< GET, PUT: receives what each satellite did in all attempts (block.served_count); NULL: nobody wants to know */
    uint32_t           served_room; /**< satellites for which there is room */
    bool               is_calm;     /**< of no hurry, as mending and prefetching are: it begins after others of its tenant */
    bool               is_way_made; /**< PURGE: another block is to be put under the key */
    bool               is_lazy;     /**< PURGE: of what is left of a block that was missed, in one round; not if way is made */
    bool               is_deletion; /**< PUT: in the place of a value there is none: all servers forget older versions */
    bool               is_hurried;  /**< CHECK, PURGE: it does not wait long, and asks nobody who was silent lately */
    bool               is_sample;   /**< CHECK: of share 0 alone, as no server evicts another sooner: DONE tells of that one */
    SKY_GroundFound_t *found;       /**< FIND: blocks that are looked up */
    uint32_t           found_count; /**< FIND: number of them, from 1 */
    bool               is_fresh;    /**< FIND: all that may know a newer version say what they know, whatever one says first */
    bool               is_chain; /**< FIND: how many first blocks are there? The others are asked for no more than that takes */
    uint32_t           block_bytes_max; /**< FIND: a longer block ends the chain */
    SKY_Addr_t
        left_out; /**< GET: satellite whose chunks are wrong. It is not asked, and the block is asked for once; plane 0: none */
    SKY_Addr_t
        *holders; /**< by share, may be NULL. CHECK: receives who holds all of it, where it is to be; plane 0: that is not known.
                          *   PUT: who has all of it: nothing is sent there */
    const SKY_GroundBlock_t
            *chain; /**< TOUCH: blocks with sound facts, the first of the chain first; `key` and `facts` are scratch then */
    uint32_t chain_length; /**< TOUCH: number of them */
    uint32_t to_row;       /**< PREFETCH: row to come of the schedule */
    /** EXCHANGE: questions of the shell, each with an end of its own. The ground sets their deadlines and endpoints; of the places only
     *  satellites and entry satellites count. Entry plane 0: the ground finds the way, once it has a sky. Who answers is not lost. */
    SKY_HostQuestion_t *requests;
    uint32_t            request_count;
    /* outcome */
    /**
     * SKY_STATUS_*: RUNNING until it has ended; then DONE, or why not. CHECK: DONE if the block can be had, MISS if it cannot, UNANSWERED
     * if that is not known. FIND: NO_SATELLITE or UNANSWERED if one key is, else MISS if one is, of those that
     * were asked. PURGE: DONE if the block cannot be had any more; a lazy one knows that only if no handover goes on.
     * TOUCH: UNANSWERED if a satellite was silent, so that what is left is not touched. PREFETCH: DONE if the row to come can give the block,
     * MISS if not and nobody has more of it, EXPIRED, REFUSED if there is no such row. EXCHANGE: DONE, or REFUSED if a satellite is none of the torus: then
     * nobody was asked. A question whose turn did not come by the deadline is EXPIRED, and its request id 0: that says nothing of its satellite. GET: BAD_LENGTH if another block has the key meanwhile, for which the memory was not made: `facts` are of that one.
     * CANCELLED: SKY_Ground_Cancel.
     */
    uint32_t        status;
    uint32_t        verdict;      /**< GET, CHECK: SKY_Verdict_t of what is to become of the block */
    uint32_t        tries;        /**< pieces, their moves to another place, and questions */
    uint32_t        gone;         /**< GET, CHECK: after a MISS a chunk that nobody holds; else SKY_HOST_NONE */
    uint32_t        chain_count;  /**< FIND of a chain: number of first blocks that are there, without a gap */
    uint64_t        purged;       /**< PURGE: chunks that satellites have given up */
    uint32_t        touched;      /**< TOUCH: blocks of which all servers have answered, from the last one on */
    bool            is_passed;    /**< GET: it needed more than the first places of its shares */
    SKY_HostBlock_t block;        /**< GET, PUT: the last transfer */
    uint64_t        submitted_us; /**< time of Submit */
    uint64_t        queue_us;     /**< time from that to its first request: it waited for its turn, */
    uint64_t        network_us;   /**< from that to the last answer, */
    uint64_t        rest_us;      /**< and from that to its end, for instance to decode it */
    /* for the ground only */
    SKY_GroundOp_t *next, *previous;
    uint64_t        asked_us;       /**< time of its first request; 0: none yet, */
    uint64_t        heard_us;       /**< and of the last answer */
    bool            is_queued;      /**< it has not begun */
    bool            is_cancelled;   /**< it ends in the next run */
    bool            is_small;       /**< nothing of it is longer than a chunk */
    uint32_t class;                 /**< SKY_GroundClass_t */
    uint32_t               account; /**< number of its tenant's account */
    uint64_t               bytes;   /**< of its block, as they count for limits */
    uint64_t               wants;   /**< free pieces that its transfer waits for */
    uint32_t               outcome; /**< status with which it would end now */
    uint32_t               memory;  /**< number of its part of the ground's memory */
    SKY_HostPlace_t       *places;  /**< places at round x servers + share */
    bool                  *is_held; /**< PUT: by share, its place holds it */
    SKY_HostQuestion_t    *questions;
    SKY_GroundSlot_t      *slots;     /**< by question, of FIND */
    uint32_t               asks;      /**< satellites that are asked at once */
    uint32_t               asking;    /**< those of them that have yet to answer */
    bool                   has_asked; /**< EXCHANGE: its questions were asked. PUT: it asked for older versions to be forgotten */
    bool                   is_due;    /**< what it waited for is there */
    bool                   has_moved; /**< its transfer has ended */
    uint32_t               besides;   /**< GET: first round of places besides those of its attempt; 0: there are none */
    uint32_t               changes;   /**< number of the schedule by which its places were found */
    SKY_GroundWait_t       waits;
    uint32_t               waits_for;      /**< number of the first inquiry that ends its wait */
    bool                   has_searched;   /**< late satellites were searched for in this step */
    bool                   has_asked_lost; /**< lost satellites were asked before the next attempt */
    bool                   doubts;         /**< a stand-in did not have its share */
    SKY_Addr_t             failed_on;      /**< satellite on which the last attempt failed; plane 0: none */
    SKY_TransferAttempts_t attempts;
    SKY_GroundConfirm_t    confirms;
    bool                   is_ahead;        /**< the block is prefetched for a row to come */
    bool                   is_blind;        /**< satellites follow a schedule that this host does not know, */
    bool                   has_asked_blind; /**< and were asked whether they do */
    bool                 has_words; /**< GET: enough satellites said which version of the block they know, since it was missed */
    uint64_t             aside_us;  /**< time at which stand-ins were asked what they hold */
    SKY_GroundFind_t     find;
    SKY_GroundCheck_t    check;
    SKY_GroundPurge_t    purge;
    uint32_t             touching; /**< blocks of a chain that are asked about */
    SKY_GroundPrefetch_t prefetch;
    uint64_t             wakes_us; /**< time at which it goes on though nothing has come; 0: there is none */
};

/** Operations of a tenant whose shares of the beginnings differ: four bytes of gets to one of puts, and few of calm ones. */
typedef enum
{
    SKY_GROUND_CLASS_GET = 0, /**< all that only asks, too */
    SKY_GROUND_CLASS_PUT,     /**< purges, too */
    SKY_GROUND_CLASS_CALM,
    SKY_GROUND_CLASSES
} SKY_GroundClass_t;

/** Operations that wait in line. */
typedef struct
{
    SKY_GroundOp_t *first, *last;
} SKY_GroundLine_t;

/** Operations of a class that wait. */
typedef struct
{
    SKY_GroundLine_t small, large;
    uint64_t         used;  /**< bytes that have begun, by weight */
    uint64_t         ahead; /**< bytes of small ones that began while the first large one waited */
} SKY_GroundLines_t;

/** What a tenant has begun and waits for. Tenants share one if there are not enough. */
typedef struct
{
    uint32_t          tenant;
    uint32_t          waiting, running; /**< operations; none: another tenant may have the account */
    uint64_t          used;             /**< bytes that have begun */
    uint64_t          clock;            /**< `used` of the class from which one began last */
    uint64_t          bytes;            /**< of large blocks under way, */
    uint64_t          calm_bytes;       /**< and of calm ones among them */
    SKY_GroundLines_t classes[SKY_GROUND_CLASSES];
} SKY_GroundAccount_t;

/** Operations that wait for their beginning. */
typedef struct
{
    SKY_GroundAccount_t *accounts;
    uint32_t             waiting;
    uint32_t             large;      /**< large operations that run */
    uint32_t             wanting;    /**< operations whose transfers wait for free pieces */
    uint64_t             expires_us; /**< no operation that waits has its deadline before */
    uint64_t             clock;      /**< `used` of the tenant of which one began last */
    uint64_t             bytes;      /**< of large blocks under way */
} SKY_GroundQueue_t;

/** Questions of the ground to many satellites, one inquiry at a time. */
typedef struct
{
    SKY_GroundWait_t     kind;   /**< NOT: there is no inquiry */
    uint32_t             number; /**< number of the last inquiry */
    uint32_t             round;  /**< round of a look */
    SKY_Addr_t           failed; /**< satellite that a look is about besides the servers; plane 0: none */
    uint64_t             began_us;
    uint32_t             count; /**< number of questions */
    uint32_t             about; /**< first questions that a look is about; or satellites that may be late, lost ones included */
    uint32_t             running;
    SKY_HandoverSearch_t search;
    SKY_ReachAsk_t      *asks, *others;
    SKY_Addr_t          *addrs;
    SKY_HostQuestion_t  *questions;
    uint8_t             *stats; /**< room for answers to STATS */
    uint32_t *last_rows;        /**< by satellite: last row in which it had a server's place, if it is asked whether it is late */
    bool     *is_spare;         /**< by satellite: it may have stood in for others */
} SKY_GroundInquiry_t;

/** What a host has heard of a satellite by questions. */
typedef struct
{
    uint64_t heard_us;  /**< time of its last answer; 0: never */
    uint64_t silent_us; /**< time at which it had not answered a question, nor another one meanwhile; 0: never */
} SKY_GroundHearing_t;

/** Limits of a ground host: they say how much memory it needs. */
typedef struct
{
    SKY_Torus_t torus;
    uint32_t    servers;              /**< servers of a block */
    uint32_t    operations;           /**< operations at a time, from 1; large ones have three quarters of them at most */
    uint32_t    works, pieces, lanes; /**< for transfers: SKY_HostBlockMemory_t */
    uint32_t questions; /**< questions on their way at a time, at most SKY_HOST_QUESTIONS_MAX; others wait, and may expire so */
    uint32_t queued;    /**< operations that wait for their beginning, from 1 */
    uint32_t tenants;   /**< tenants that are told apart, from 1 */
    uint64_t bytes, tenant_bytes; /**< of large blocks under way: in all, and of one tenant. A longer block is one alone */
} SKY_GroundLimits_t;

/** Functions with which a shell watches the ground. Any may be NULL. They change nothing, unless the shell plants faults. */
typedef struct
{
    void *context; /**< the first argument of all functions */
    /** Places of a share were found: @p home is lost, and others stand in for it; plane 0: none is. */
    void (*Placed)(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t home, const SKY_Addr_t *found,
                   uint32_t count);
    /** Another satellite is asked for a share besides, or gets it, as one of its places is late. */
    void (*Replaced)(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t stand_in);
    /** The transfer of an attempt has ended, op->block. @param status  of the attempt */
    void (*Moved)(void *context, const SKY_GroundOp_t *op, uint32_t status);
    /** A satellite is asked what it holds of a share. */
    void (*Checked)(void *context, const SKY_GroundOp_t *op, uint32_t share, SKY_Addr_t satellite);
    /** A look has found satellites lost, or that nobody answers. */
    void (*Lost)(void *context);
    /** Satellites were asked whether they are late: the inquiry has their answers. */
    void (*Searched)(void *context);
} SKY_GroundWatch_t;

/** Functions that the shell offers. */
typedef struct
{
    SKY_HostShell_t   host;
    SKY_GroundWatch_t watch;
    /** Return the endpoint of a satellite through which others are reached. */
    uint64_t (*EndpointOf)(void *context, SKY_Addr_t entry);
    void *context; /**< first argument of EndpointOf */
} SKY_GroundShell_t;

typedef struct
{
    SKY_GroundShell_t   shell;
    SKY_GroundLimits_t  limits;
    SKY_GroundSky_t     sky;
    uint32_t            skies; /**< number of the sky, from 1 */
    SKY_Host_t          host;
    uint64_t            now_us;
    SKY_Reach_t         reach;
    SKY_Handovers_t     handovers;
    SKY_Presence_t      presence;
    SKY_Addr_t         *late; /**< satellites that had something to hand over by their last word, in ascending order */
    uint32_t            late_count;
    uint32_t            late_first; /**< first row whose satellites were asked */
    SKY_Addr_t         *spares;     /**< late ones that may have stood in for others */
    uint32_t            spare_count;
    SKY_GroundInquiry_t inquiry;
    bool                is_blind; /**< servers follow a schedule, by their last word */
    SKY_GroundQueue_t   queue;
    SKY_Addr_t         *entries;         /**< satellites of all servers for SKY_UPLINK_SERVERS, nearest to the centre first, */
    uint32_t            entries_row;     /**< in this row; 0: they were not found yet */
    uint32_t            entries_changes; /**< of this schedule */
    uint32_t            entries_losses;  /**< when satellites had been found lost so often, */
    uint32_t            entries_lost;    /**< and so many were */
    SKY_Addr_t         *placed;          /**< scratch, by server */
    SKY_Addr_t         *away;            /**< scratch: satellites to which nothing is put */
    SKY_Cell_t         *cells;           /**< scratch, a cell for each satellite */
    bool               *aside;           /**< scratch, by satellite: it stands in first */
    SKY_Shares_t        shares;          /**< places of the shares of the block that was looked at last */
    SKY_GroundOp_t     *first, *last;    /**< operations that run, in the order in which they began */
    SKY_GroundOp_t     *ended_first, *ended_last; /**< operations that have ended */
    uint32_t            running;
    uint32_t           *memory_free; /**< numbers of free parts of the memory of operations */
    SKY_HostPlace_t    *places;      /**< operation x places */
    bool               *is_held;     /**< operation x servers */
    SKY_HostQuestion_t *questions;   /**< operation x questions at once */
    SKY_GroundSlot_t   *slots;       /**< likewise */
    uint32_t            asks_most;   /**< questions of an operation at once */
    SKY_HostQuestion_t *strays; /**< by satellite: question for which nobody waits any more, but that tells whether it is there */
    SKY_GroundHearing_t *hearing;   /**< by satellite */
    SKY_Addr_t           doubted;   /**< satellite that did not answer one of those: a look is due; plane 0: none */
    uint32_t             any_bytes; /**< payload of a question for any chunk */
    uint8_t              any[SKY_CHUNKSET_MAX_BYTES];
    SKY_HeldShare_t     *held;        /**< operation x servers */
    uint32_t            *held_pieces; /**< operation x servers: piece of the share that is asked for */
    uint8_t             *held_bytes;  /**< operation x servers x question and answer */
    SKY_Addr_t          *held_addrs;  /**< operation x places, twice: of all shares, and those that were silent */
} SKY_Ground_t;

/** What a host knows of a satellite that other processes of its machine may use: a hint, which they check. */
typedef struct
{
    SKY_Addr_t satellite;
    uint32_t   rtt_us;    /**< its round trip; 0: none was measured */
    uint64_t   silent_us; /**< time, on the clock of now_us, at which it was found silent last; 0: it was not */
    bool       is_lost;   /**< it did not answer as many questions as make it lost; else it was late while others answered */
} SKY_GroundHint_t;

/** Return how many questions may be on their way if none is ever to wait. */
uint32_t SKY_Ground_QuestionsMost(const SKY_GroundLimits_t *limits);
/** Return the bytes of memory that a ground host needs. The numbers of @p limits are from 1. */
size_t SKY_Ground_MemoryBytes(const SKY_GroundLimits_t *limits);
/**
 * Begin.
 * @param cfg     configuration of its transfers
 * @param times   how long satellites are left alone
 * @param memory  SKY_Ground_MemoryBytes, all of it 0, aligned as malloc does; it stays with the ground
 * @return false: SKY_Host_Init, SKY_Host_Lend or SKY_Host_LendQuestions refuses the numbers
 */
bool SKY_Ground_Init(SKY_Ground_t *ground, const SKY_GroundLimits_t *limits, const SKY_GroundShell_t *shell,
                     const SKY_HostCfg_t *cfg, const SKY_ReachCfg_t *times, void *memory);
/**
 * Set what the ground sees from now on; before the first operation, and whenever it has changed. No operation has its block purged, or says that it
 * is to be, by places of two schedules.
 * @return false: the schedule is for another torus or number of servers; parity is no less than these, or more than a code bears; a satellite in sight
 *         is none of the torus. Nothing has changed then
 */
bool SKY_Ground_SetSky(SKY_Ground_t *ground, const SKY_GroundSky_t *sky);
/** Take in an operation; before a sky was set only an EXCHANGE. It begins in SKY_Ground_Run, when its turn has come. @return false if
 *  limits.queued wait for that */
bool SKY_Ground_Submit(SKY_Ground_t *ground, uint64_t now_us, SKY_GroundOp_t *op);
/**
 * Ask for the end of an operation. It ends as CANCELLED, within the next SKY_Ground_Run, and nothing of it is sent any more. Of a PUT satellites
 * may hold all, some or nothing then, in place of an older version that they held; a PURGE may have removed some. Nothing happens to
 * one that has ended already.
 */
void SKY_Ground_Cancel(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Take in a datagram. The next SKY_Ground_Run does what it makes possible. */
void SKY_Ground_Receive(SKY_Ground_t *ground, uint64_t now_us, uint64_t endpoint, const uint8_t *data, size_t len);
/**
 * Let operations go on, and packets leave: of large puts a bundle of 64 KiB while small operations run, else four.
 * @param timers  false: datagrams are still being read, so nothing counts as late yet
 * @return time of the next call, at the latest; @p now_us: at once, after a look at what has come; UINT64_MAX: there is nothing to wait for
 */
uint64_t SKY_Ground_Run(SKY_Ground_t *ground, uint64_t now_us, bool timers);
/** Get the operation that has ended first of those that were not got yet. @return NULL if there is none */
SKY_GroundOp_t *SKY_Ground_Ended(SKY_Ground_t *ground);
/**
 * Return how far the transfer of a GET or PUT has come.
 * @param total  receives its chunks, but for parity of a GET
 * @return chunks of these that have come, or were acknowledged; each attempt begins anew
 */
uint32_t SKY_Ground_Progress(const SKY_GroundOp_t *op, uint32_t *total);
/** Return the operation to whose transfer a block belongs. */
SKY_GroundOp_t *SKY_Ground_OpOf(const SKY_HostBlock_t *block);

/* ---- what it knows: sky_ground_ways.c, sky_ground_hints.c ------------------------------------------------------------------------------------------ */

/** Return true if this host calls a satellite lost. */
bool SKY_Ground_IsLost(const SKY_Ground_t *ground, SKY_Addr_t satellite);
/**
 * Take in what another process of this machine knew. Its round trip counts if none was measured here, and it is so short that the
 * first timer of a question is no longer than without. A satellite that it found silent less than
 * `lost_us` ago is asked as any other, but counts as late from the first question on, until it says something. What is no satellite, or
 * was said after now_us, is left out. Nothing counts as absent because of a hint, and nothing is purged.
 */
void SKY_Ground_TakeHint(SKY_Ground_t *ground, uint64_t now_us, const SKY_GroundHint_t *hint);
/** Return what this host knows of a satellite, by its number, plane after plane; and what it was told, as long as that holds. */
SKY_GroundHint_t SKY_Ground_Hint(const SKY_Ground_t *ground, uint64_t now_us, uint32_t number);
/** Find the satellites that stand in first at a time: marks in `aside`. @return number of them */
uint32_t SKY_Ground_Spares(SKY_Ground_t *ground, uint64_t time_us);

#endif
