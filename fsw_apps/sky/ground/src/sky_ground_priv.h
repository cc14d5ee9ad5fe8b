/**
 * @file
 * Private to the ground: functions that its files call of each other. A file calls those that stand above it here, and none below.
 */
#ifndef SKY_GROUND_PRIV_H
#define SKY_GROUND_PRIV_H

#include "sky_ground.h"

#define SKY_GROUND_US_PER_MS UINT64_C(1000)

/* ---- sky_ground_ways.c: where satellites are, and how they are reached --------------------------------------------------- */

/** Return the rule by which places are found. */
SKY_Places_t SKY_GroundWays_Rule(const SKY_Ground_t *ground);
/** Return the row that holds now. */
uint32_t SKY_GroundWays_Row(const SKY_Ground_t *ground);
/** Return the satellite with this number, plane by plane. */
SKY_Addr_t SKY_GroundWays_AddrOf(const SKY_Ground_t *ground, uint32_t number);
/** Return the number of a satellite. */
uint32_t SKY_GroundWays_NumberOf(const SKY_Ground_t *ground, SKY_Addr_t satellite);
/** Return the place of a satellite, with its way in. Plane 0: nobody is in sight. */
SKY_HostPlace_t SKY_GroundWays_Place(SKY_Ground_t *ground, SKY_Addr_t satellite);
/** Find the satellites of all servers in a row, with stand-ins for lost ones: in `placed`. */
void SKY_GroundWays_Servers(SKY_Ground_t *ground, uint32_t row);
/**
 * Find the satellites that are asked first for a block of which only the key is known: in each row the server that has share 0 of a small
 * block and those behind it, one more than hold parity. While the block may move these are several rows.
 * @param found  room for SKY_GROUND_FIRST_MAX
 * @return number of satellites; 0 if none is in sight
 */
uint32_t SKY_GroundWays_First(SKY_Ground_t *ground, const uint8_t *key, SKY_Addr_t *found);
/** Return what is known of handovers. */
SKY_Late_t SKY_GroundWays_Late(const SKY_Ground_t *ground);
/** Find the places of all shares of an operation's block, and describe its transfer. @return false if nobody is in sight */
bool SKY_GroundWays_Find(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Return a number of the places that were found, from 1. */
uint32_t SKY_GroundWays_Number(const SKY_Ground_t *ground, const SKY_GroundOp_t *op);
/** Return a number of the ways to some satellites, from 1. */
uint32_t SKY_GroundWays_NumberOfWays(SKY_Ground_t *ground, const SKY_Addr_t *satellites, uint32_t count);

/* ---- sky_ground_question.c: one question --------------------------------------------------------------------------------- */

/** Ask a question, which is the owner's until it ends. @return false if it cannot be asked; it has expired then */
bool SKY_GroundQuestion_Ask(SKY_Ground_t *ground, SKY_HostQuestion_t *question);

/* ---- sky_ground_inquiry.c: what it asks to know that ---------------------------------------------------------------------- */

/** Permission to ask satellites. */
typedef enum
{
    SKY_GROUND_MAY_NOW = 0,
    SKY_GROUND_MAY_LATER, /**< the operation waits, and goes on by itself */
    SKY_GROUND_MAY_NOT    /**< no: nobody answers this host */
} SKY_GroundMay_t;

/** Let an operation wait for an inquiry. */
void SKY_GroundInquiry_Wait(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_GroundWait_t what);
/** Return whether an operation may ask satellites: before it asks any. */
SKY_GroundMay_t SKY_GroundInquiry_May(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Search for late satellites, once in a step, unless they are known. @return true if the operation waits for that */
bool SKY_GroundInquiry_WaitsLate(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Begin and end inquiries. @return true if something has happened, or was asked */
bool SKY_GroundInquiry_Run(SKY_Ground_t *ground);

/* ---- sky_ground_queue.c: which operation begins next ---------------------------------------------------------------------- */

/** Put an operation at the end of its line. */
void SKY_GroundQueue_Add(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Take an operation out that is not to begin any more. */
void SKY_GroundQueue_Remove(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Take the operation out whose turn it is. @return NULL: none waits, or there is no room for the next */
SKY_GroundOp_t *SKY_GroundQueue_Take(SKY_Ground_t *ground);
/** Give back what an operation had of the limits, as it has ended. */
void SKY_GroundQueue_Ended(SKY_Ground_t *ground, const SKY_GroundOp_t *op);
/** Return true if the operation's transfer, described in its block, may begin. If not, it waits until there is room for it. */
bool SKY_GroundQueue_HasRoom(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Let operations go on for whose transfers there is room now. */
void SKY_GroundQueue_Resume(SKY_Ground_t *ground);

/* ---- sky_ground_ask.c: questions of one operation, and the wait for all their answers ------------------------------------- */

/** Add a satellite to those that are to be asked (`asks` of them so far), unless it is among them or cannot be reached. */
void SKY_GroundAsk_Add(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_Addr_t satellite);
/** Add all satellites that are late to hand over, but for lost ones. */
void SKY_GroundAsk_AddLate(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Return how long to wait for their answers. */
uint64_t SKY_GroundAsk_WaitUs(SKY_Ground_t *ground, const SKY_GroundOp_t *op, bool is_hurried);
/**
 * Ask them about the operation's block. It is due when all have answered, or their time is over.
 * @param what  operation, flags and payload of each question
 * @return false if there are none
 */
bool SKY_GroundAsk_All(SKY_Ground_t *ground, SKY_GroundOp_t *op, const SKY_HostQuestion_t *what, uint64_t wait_us);

/* ---- operations ------------------------------------------------------------------------------------------------------------ */
/* Each begins with Begin. Goes lets it go on: true if it waits, false if it has ended, with its status. */

void SKY_GroundFind_Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op);
bool SKY_GroundFind_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Let a look-up go on that is a part of another operation. @return true if that waits */
bool SKY_GroundFind_Waits(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Combine what those said that were asked for the block. One that knows the block counts, whatever others say. */
SKY_HasWord_t SKY_GroundFind_Word(SKY_GroundOp_t *op);
/** Ask those who were added for the block, and wait so long at most. @return false if there are none */
bool SKY_GroundFind_AskFor(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint64_t wait_us);
/** Ask those who were added for the block, and wait as long as an answer may take. @return false if there are none */
bool SKY_GroundFind_AskAll(SKY_Ground_t *ground, SKY_GroundOp_t *op);

/**
 * Ask satellites for the facts of a block that was missed: sky_ground_confirm.c.
 * @param is_other  set in the end if the block is prefetched for a row to come, which is the operation's from now on, or was replaced
 * @param is_aside  set in the end if a stand-in may hold some of it
 * @return true if the operation waits; false if it is over
 */
bool SKY_GroundConfirm_Waits(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool *is_other, bool *is_aside);
/** Ask stand-ins for the operation's block. @param is_aside  set in the end if one may hold some of it. @return true if it waits */
bool SKY_GroundConfirm_AsksAside(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool *is_aside);

void SKY_GroundCheck_Begin(SKY_GroundOp_t *op);
bool SKY_GroundCheck_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Take in the answer to a question about a share. */
void SKY_GroundCheck_Answered(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_HostQuestion_t *question);

void SKY_GroundPurge_Begin(SKY_GroundOp_t *op);
bool SKY_GroundPurge_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);

void SKY_GroundExchange_Begin(SKY_GroundOp_t *op);
bool SKY_GroundExchange_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);

void SKY_GroundMove_Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op);
bool SKY_GroundMove_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);

#endif
