/**
 * @file
 * Private to the twin: ground hosts. What they decide and wait for is the core's (sky_ground.h).
 *
 *     twin_ground.c           a ground host: its memory, its sky, its packets
 *     twin_op.c               an operation of a host: what it submits to the core, and what follows from the end
 *     twin_op_told.c          what the core tells of it meanwhile
 *     twin_op_watch.c         by when it has to come further
 *     twin_find.c             look-ups: of a block, and of the blocks of a prompt
 *     twin_words.c            what satellites have said of values
 *     twin_share_record.c     whom hosts have asked for a share
 */
#ifndef TWIN_HOST_H
#define TWIN_HOST_H

#include "sky_ground.h"
#include "twin.h"

typedef struct SKYT_Active SKYT_Active_t;

/** A ground host. */
typedef struct
{
    SKYT_Twin_t *twin;
    uint16_t     number;
    SKY_Ground_t core;
    SKY_Addr_t  *seen; /**< satellites in sight */
    uint8_t      payload[SKY_CHUNKSET_MAX_BYTES];
    uint64_t    *answered_us; /**< by satellite: begin of the inquiry that it answered last */
    bool        *is_mute;     /**< by satellite: it did not say whether it is late when all were asked last */
    uint64_t    *spare_us;    /**< by satellite: time at which it was last asked as a spare whether it is late; 0: not lately */
} SKYT_Ground_t;

/** Part of an operation that runs in the core. */
typedef enum
{
    SKYT_PHASE_FIND = 0, /**< the host looks the block up first */
    SKYT_PHASE_CHECK,    /**< it asks servers first whether they hold all of it */
    SKYT_PHASE_MOVE,
    SKYT_PHASE_PURGE,
    SKYT_PHASE_TOUCH,
    SKYT_PHASE_PREFETCH
} SKYT_Phase_t;

#define SKYT_PROMPT_MAX 12u /**< blocks of a prompt that are looked up at once */

/** A block that is looked up. */
typedef struct
{
    uint32_t     block;
    SKYT_Cause_t excuse;       /**< excuse for a miss that was known when the look-up began */
    uint64_t     promised;     /**< version that it has to find at least; 0: any */
    uint64_t     acknowledged; /**< newest version of which a put had ended well; 0: none */
} SKYT_Looked_t;
#define SKYT_CHAIN 8u /**< most blocks of a chain */

/** An operation that runs. */
struct SKYT_Active
{
    bool           is_active;
    SKYT_Phase_t   phase;
    SKY_GroundOp_t core;
    uint32_t       op; /**< number of the operation */
    uint32_t       kind;
    uint32_t       block, host;
    uint32_t       epoch;          /**< row that the host takes the block to be prefetched for */
    uint64_t       version;        /**< of a value; 0: the block has none, or it is not known yet */
    uint64_t       known;          /**< newest version that the host knew when it began */
    uint64_t       promised;       /**< version that it has to find at least; 0: any */
    uint64_t       acknowledged;   /**< newest version of which a put had ended well when it began; 0: none */
    uint64_t       packets_before; /**< packets over all links until it began, */
    uint64_t       crowded_before; /**< and those for which a link had no room */
    uint32_t       silences;       /**< questions of its look-up without an answer */
    uint64_t       started_us;
    uint32_t       deadline_ms; /**< deadline of an attempt */
    uint64_t       deadline_us; /**< deadline of the running attempt */
    uint64_t       cancel_us;   /**< time at which its host calls it back */
    uint64_t       mark;        /**< digest of how far it has come */
    uint32_t       tries;       /**< pieces, their moves to another place, and questions, of the phases that are over */
    bool           fell_back;
    bool           is_lazy;        /**< a purge that follows a miss */
    bool           is_deletion;    /**< a put deletes a value */
    bool           is_mending;     /**< a put of a block that was got without some shares */
    bool           is_called_back; /**< when it ended, */
    uint32_t       left;           /**< with this digest of its memory */
    bool           is_above;       /**< a put goes on under a version above one that was in its way */
    bool           is_renewed;     /**< a get goes on for another version, which has another length */
    SKYT_Cause_t   excuse;         /**< excuse for a miss that was known at the begin of a get */
    uint32_t       denied;         /**< chunk that nobody held, or SKYT_NONE */
    SKYT_Cause_t   failed;
    uint8_t       *buffer;
    uint8_t       *have;     /**< memory of the core */
    uint64_t       noted_us; /**< time at which it was noted which chunks nobody holds: bits in `have` */
    bool           looks_up; /**< it looks the block up first */
    bool           checks;   /**< it asks servers first whether they hold all of the block */
    uint32_t       astray;   /**< bits as SKYT_ShareRecord_Bit: shares for whose servers others stood in, in the last attempt, */
    bool           at_stand_in;  /**< and for that of the chunk that was denied */
    bool           is_unsettled; /**< a satellite that is not settled denied chunks, in the last attempt of a get */
    bool           is_stray;     /**< the denied chunk lies where this host could not look for it: SKYT_ShareRecord_IsStray */
    bool           is_useless;   /**< servers said before the get that a chunk is gone for good */
    bool           is_missed;    /**< the block was looked up, and not found */
    bool is_calm; /**< a purge: no satellite had anything to hand over at its begin, and the first one asked knows the block */
    SKY_GroundBlock_t chain[SKYT_CHAIN]; /**< of a touch */
    uint32_t          chain_count;
    bool              is_met;                  /**< another host touches a chain of the tenant at the same time */
    uint64_t          aside_us;                /**< time at which stand-ins were asked what they hold */
    SKYT_Looked_t     looked[SKYT_PROMPT_MAX]; /**< what the core looks up: first the block, then others of its prompt, */
    SKY_GroundFound_t found[SKYT_PROMPT_MAX];  /**< and what it finds */
};

/* ---- twin_op.c ------------------------------------------------------------------------------------------------------- */

/** Begin the operations that are due, as many as there is room for. */
void SKYT_Op_Next(SKYT_Twin_t *twin);
/** Check that the memory of an operation that was called back is as it was when that ended. */
void SKYT_Op_CheckMemory(SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Call an operation back, if it is time for that. Else its deadline has passed: end it. */
void SKYT_Op_Due(SKYT_Twin_t *twin, uint32_t index);
/** Return the operation of a block. */
SKYT_Active_t *SKYT_Op_Of(const SKY_HostBlock_t *block);
/** Return the operation of the core's. */
SKYT_Active_t *SKYT_Op_OfCore(const SKY_GroundOp_t *core);
/** Return true if a satellite has something left to hand over. One that is in another row, by its clock, does not know. */
bool SKYT_Op_HasLeft(const SKYT_Twin_t *twin, uint32_t index);
/** Return true if any satellite has something to hand over. */
bool SKYT_Op_IsLate(const SKYT_Twin_t *twin);
/** Take in the end of what runs in the core: another phase begins, or the operation is over. */
void SKYT_Op_Ended(SKYT_Twin_t *twin, SKYT_Active_t *active);

/* ---- twin_op_watch.c ------------------------------------------------------------------------------------------------- */

/** Watch the operations of a host, which has run: each gets a new deadline if it has come further. */
void SKYT_Op_Watch(SKYT_Twin_t *twin, uint32_t ground);

/* ---- twin_op_told.c -------------------------------------------------------------------------------------------------- */

/** Take in what the core tells while an operation runs: see SKY_GroundWatch_t. */
void SKYT_Op_Placed(SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t share, SKY_Addr_t home, const SKY_Addr_t *found,
                    uint32_t count);
void SKYT_Op_Moved(SKYT_Twin_t *twin, SKYT_Active_t *active, bool is_done);
void SKYT_Op_Checked(SKYT_Twin_t *twin, SKYT_Active_t *active, uint32_t share, SKY_Addr_t satellite);

/* ---- twin_find.c ------------------------------------------------------------------------------------------------------ */

/** Let the core look up the operation's block, and in some operations others of a prompt with it, as a chain or each for itself. */
void SKYT_Find_Prepare(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Judge what was found of the others. */
void SKYT_Find_Judge(SKYT_Twin_t *twin, const SKYT_Active_t *active);

/* ---- twin_words.c ----------------------------------------------------------------------------------------------------- */

/** Take memory. @return false if there is not enough */
bool SKYT_Words_Init(SKYT_Twin_t *twin);
/** Note what a satellite has said to a host, if it is the answer to a question about a value. */
void SKYT_Words_Hear(SKYT_Twin_t *twin, uint16_t host, const uint8_t *data, uint32_t len);
/** Check that a host that takes a value for absent (@p version 0), or for older than it is, has the word of as many satellites as has to suffice. */
void SKYT_Words_Check(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint64_t version);
/* ---- twin_ahead.c: touches and prefetches ---------------------------------------------------------------------------- */

/** Find the chain that an operation touches: blocks of the tenant that hosts know to be there, values left out. */
void SKYT_Ahead_Chain(SKYT_Twin_t *twin, SKYT_Active_t *active);
/** Return true if a chunk is kept only where hosts do not look before a later row. */
bool SKYT_Ahead_IsUnknown(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk);
/** Return true if any chunk is: an earlier prefetch has left it there, and did not end well. */
bool SKYT_Ahead_Waits(const SKYT_Twin_t *twin, uint32_t block);
/** Return true if a prefetch has moved a block meanwhile, so that a get may have missed it. */
bool SKYT_Ahead_Explains(const SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Count a touch or a prefetch that has ended, check what must hold after it, and return its cause. */
SKYT_Cause_t SKYT_Ahead_Ended(SKYT_Twin_t *twin, SKYT_Active_t *active, SKYT_Cause_t cause);

/* ---- twin_ground.c --------------------------------------------------------------------------------------------------- */

/** Take memory. @return false if there is not enough */
bool SKYT_Ground_Init(SKYT_Twin_t *twin, uint32_t index);
/** Let the host see the entries of now. */
void SKYT_Ground_SetSeen(SKYT_Twin_t *twin, uint32_t index);
/** Run the host, and set the time of its next event. */
void SKYT_Ground_Run(SKYT_Twin_t *twin, uint32_t index);
/** Take in a packet; SKYT_Ground_Run is due. @param host  number of the host, from 1. @param node  satellite that sent it */
void SKYT_Ground_Receive(SKYT_Twin_t *twin, uint16_t host, uint32_t node, const uint8_t *data, uint32_t len);

/* ---- twin_share_record.c -------------------------------------------------------------------------------------------- */

/** Begin a get. */
void SKYT_ShareRecord_Begin(SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Note the places at which a host asks for a share. */
void SKYT_ShareRecord_Places(SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t share, const SKY_Addr_t *found,
                             uint32_t count);
/** Note a request of the host. */
void SKYT_ShareRecord_Note(SKYT_Twin_t *twin, const SKYT_Active_t *active, const SKY_Packet_t *pkt);
/** Note a question of the host about a server's share. */
void SKYT_ShareRecord_Share(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t node, uint32_t server);
/** Find a satellite that could have been asked for a chunk since the get began, and was not. @return SKYT_NONE if there is none */
uint32_t SKYT_ShareRecord_PassedOver(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);
/** Return a bit for the server of a chunk, the same for every 32nd server. */
uint32_t SKYT_ShareRecord_Bit(const SKYT_Twin_t *twin, uint32_t chunk);
/** Return true if a satellite is among the places of a server in the running attempt, or the last one. */
bool SKYT_ShareRecord_IsPlace(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t server, SKY_Addr_t satellite);
/** Return true if a satellite keeps a chunk for which it was never the server: stand-ins do in the layout hop, and without a schedule. */
bool SKYT_ShareRecord_IsKept(const SKYT_Twin_t *twin, uint32_t block, uint32_t chunk, uint32_t index);
/** Return true if others stood in for lost satellites, and this host could ask none of the holders of a chunk. */
bool SKYT_ShareRecord_IsStray(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);
/** Return true if a satellite that stands in first has held some of the block since before the host asked it for that. */
bool SKYT_ShareRecord_IsAside(SKYT_Twin_t *twin, const SKYT_Active_t *active);
/** Return true if a satellite that the host asks for the chunk's share has held it since before the operation began. */
bool SKYT_ShareRecord_IsAtHand(const SKYT_Twin_t *twin, const SKYT_Active_t *active, uint32_t chunk);

#endif
