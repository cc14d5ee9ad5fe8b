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
/** Find the rows whose servers are asked for a block of which only the key is known. @param rows  room for SKY_PLACES_ROWS_MAX
 *  @return number of them */
uint32_t SKY_GroundWays_Rows(const SKY_Ground_t *ground, uint32_t *rows);
/** Return what is known of handovers. */
SKY_Late_t SKY_GroundWays_Late(const SKY_Ground_t *ground);
/** Find the places of all shares of an operation's block, and describe its transfer. @return false if nobody is in sight */
bool SKY_GroundWays_Find(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Find where all shares of an operation's block are if satellites that are suspected are lost: in `shares`. */
void SKY_GroundWays_FindAround(SKY_Ground_t *ground, const SKY_GroundOp_t *op);
/** Return a number of the places that were found, from 1. */
uint32_t SKY_GroundWays_Number(const SKY_Ground_t *ground, const SKY_GroundOp_t *op);
/** Mix a place, and the way to it, into a number of places. */
uint64_t SKY_GroundWays_Mix(uint64_t number, const SKY_HostPlace_t *place);

/* ---- sky_ground_question.c: one question --------------------------------------------------------------------------------- */

/** Ask a question, which is the owner's until it ends. @return false if it cannot be asked; it has expired then */
bool SKY_GroundQuestion_Ask(SKY_Ground_t *ground, SKY_HostQuestion_t *question);

/* ---- sky_ground_hearing.c: who has answered ------------------------------------------------------------------------------- */

/** Note whether a satellite has answered a question. One that has not counts as silent if it has answered no other one since. */
void SKY_GroundHearing_Note(SKY_Ground_t *ground, const SKY_HostQuestion_t *question);
/** Let nobody wait for a question any more. What becomes of it tells whether the satellite is there. */
void SKY_GroundHearing_Leave(SKY_Ground_t *ground, SKY_HostQuestion_t *question);
/** Take in the end of a question for which nobody waits any more: a look follows if it was not answered. */
void SKY_GroundHearing_Strayed(SKY_Ground_t *ground, SKY_HostQuestion_t *question);

/* ---- sky_ground_inquiry_ask.c: questions of an inquiry -------------------------------------------------------------------- */

/** Add a satellite to those that are asked, over the way in to it, unless it is among them. @return false if nobody is in sight */
bool SKY_GroundInquiryAsk_Add(SKY_Ground_t *ground, SKY_Addr_t satellite);
/** Add a satellite that is asked over this one, unless it is among them. */
void SKY_GroundInquiryAsk_AddOver(SKY_Ground_t *ground, SKY_Addr_t satellite, SKY_Addr_t entry);
/** Ask them. @param op  PING or STATS @param wait_us  for an answer; 0: as long as five sendings take */
void SKY_GroundInquiryAsk_All(SKY_Ground_t *ground, uint8_t op, uint64_t wait_us);
/** Return true if a question was answered well. */
bool SKY_GroundInquiryAsk_IsOk(const SKY_HostQuestion_t *question);
/** Return the counters that a satellite has told; NULL: it has told none. */
const uint8_t *SKY_GroundInquiryAsk_Stats(const SKY_HostQuestion_t *question);
/** Return one of these counters. */
uint64_t SKY_GroundInquiryAsk_Counter(const uint8_t *stats, uint32_t number);

/* ---- what the ground asks satellites to know ------------------------------------------------------------------------------ */
/* Begin returns false if there is nothing to ask. End takes in the answers; where it returns false, it has asked again. */

/* LOOK (sky_ground_look.c) */

bool SKY_GroundLook_Begin(SKY_Ground_t *ground);
bool SKY_GroundLook_End(SKY_Ground_t *ground);

/* BACK (sky_ground_back.c) */

/** @param doubted  a stand-in did not have its share: what it stands in for may be back */
bool SKY_GroundBack_Begin(SKY_Ground_t *ground, bool doubted);
void SKY_GroundBack_End(SKY_Ground_t *ground);

/* LATE (sky_ground_late.c) */

void SKY_GroundLate_Begin(SKY_Ground_t *ground);
bool SKY_GroundLate_End(SKY_Ground_t *ground);

/* BLIND (sky_ground_blind.c) */

bool SKY_GroundBlind_Begin(SKY_Ground_t *ground);
void SKY_GroundBlind_End(SKY_Ground_t *ground);

/* ---- sky_ground_inquiry.c: one inquiry at a time -------------------------------------------------------------------------- */

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
/** Take those out of the line whose deadlines have passed. @return the first of them, or NULL; `next` leads to the others */
SKY_GroundOp_t *SKY_GroundQueue_TakeLate(SKY_Ground_t *ground);
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
/** Write a question about the operation's block to a satellite: room, payload and more are the caller's to add. */
void SKY_GroundAsk_Write(SKY_GroundOp_t *op, SKY_HostQuestion_t *question, const SKY_HostPlace_t *place, uint8_t what);
/** Ask the questions that were written. It is due when all have answered, or their time is over. @return false if there are none */
bool SKY_GroundAsk_Send(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint64_t wait_us);
/**
 * Ask the satellites that were added about the operation's block.
 * @param what  operation, flags and payload of each question
 * @return false if there are none
 */
bool SKY_GroundAsk_All(SKY_Ground_t *ground, SKY_GroundOp_t *op, const SKY_HostQuestion_t *what, uint64_t wait_us);

/** Return room for two payloads about a share of an operation. */
uint8_t *SKY_GroundAsk_Room(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, uint32_t share);

/* ---- sky_ground_replace.c: places besides, while a block moves -------------------------------------------------------------- */

/** Lead blocks that move around satellites that are late. @return true if any are */
bool SKY_GroundReplace_Run(SKY_Ground_t *ground);

/* ---- operations ------------------------------------------------------------------------------------------------------------ */
/* Each begins with Begin. Goes lets it go on: true if it waits, false if it has ended, with its status. */

/* FIND: who is asked first for a key (sky_ground_first.c) */

/** Find the places of all servers in the rows that are asked. There are none if nobody is in sight, or @p may says so. */
void SKY_GroundFirst_Find(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_GroundMay_t may);
/** Return true if servers are elsewhere now, or others stand in for them. */
bool SKY_GroundFirst_HasChanged(const SKY_Ground_t *ground, const SKY_GroundFind_t *find);
/** Return the number of satellites that are asked first for a key; one of them may be there several times. */
uint32_t SKY_GroundFirst_Count(const SKY_GroundFind_t *find);
/** Return true if any of a key's first satellites in the row of now is at home there, and does not stand in for another one. */
bool SKY_GroundFirst_IsAnyHome(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found);
/** Return a number of a key's first satellites and the ways to them, from 1. */
uint32_t SKY_GroundFirst_Number(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found);
/**
 * Find the place that is asked next for a key in its step.
 * @param at     number of it
 * @param place  plane 0: no way leads there
 * @return false if it is passed over
 */
bool SKY_GroundFirst_Place(SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found, uint32_t at,
                           SKY_HostPlace_t *place);

/* lists of keys (sky_ground_keys.c) */

/** Return a key of a look-up. */
SKY_GroundFound_t *SKY_GroundKeys_Of(const SKY_GroundOp_t *op, uint32_t number);
/** Put a key behind the others of a list. */
void SKY_GroundKeys_Push(SKY_GroundFind_t *find, SKY_GroundKeys_t *list, uint32_t number);
/** Take the first key out of a list. There is one. */
uint32_t SKY_GroundKeys_Pop(SKY_GroundFind_t *find, SKY_GroundKeys_t *list);
/** Add a key to those that are looked up. */
void SKY_GroundKeys_Add(SKY_GroundFind_t *find, uint32_t number);
/** Put a key before all others that go on: it has begun, and may need no question any more. */
void SKY_GroundKeys_GoesOn(SKY_GroundFind_t *find, uint32_t number);
/** Let all keys go on that wait. */
void SKY_GroundKeys_Unpark(SKY_GroundFind_t *find);

/* questions for keys (sky_ground_find_ask.c) */

/** Return true if a satellite is lost, or was silent since places were found: to ask it for another key would take as long. */
bool SKY_GroundFind_IsDeaf(const SKY_Ground_t *ground, const SKY_GroundFind_t *find, const SKY_HostPlace_t *place);
/** Take in that a satellite says nothing of a key. Who is asked one after the other is not asked any more. @param place  plane 0: no way leads
 *  there */
void SKY_GroundFind_TakeSilence(SKY_GroundOp_t *op, SKY_GroundFound_t *found, const SKY_HostPlace_t *place);
/** Ask a satellite for a key. @return false if no question is free */
bool SKY_GroundFind_Ask(SKY_Ground_t *ground, SKY_GroundOp_t *op, uint32_t number, const SKY_HostPlace_t *place);
/**
 * Return what the satellites that were asked first say together. Of a value, and of what nobody knows, all have to say something: the silent one may
 * know more. With parity nobody who only stands in for others says that a block is absent: they may have it.
 */
SKY_HasWord_t SKY_GroundFind_Together(const SKY_Ground_t *ground, const SKY_GroundOp_t *op, const SKY_GroundFound_t *found);
/** Wait no longer for satellites that are lost. Once it is time, ask others besides those that are late, and find out whether these are lost. */
void SKY_GroundFind_Hedge(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Take in the end of a question about a key. */
void SKY_GroundFind_Answered(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_HostQuestion_t *question);

/* chains (sky_ground_chain.c) */

/** Begin a chain, if the operation is about one. */
void SKY_GroundChain_Begin(SKY_GroundOp_t *op);
/** Add the keys of a chain that are to be looked up next, once all is known that was asked. @return false if there are none: the chain
 *  has its end */
bool SKY_GroundChain_Adds(SKY_GroundOp_t *op);

/* all keys (sky_ground_find.c) */

void SKY_GroundFind_Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op);
bool SKY_GroundFind_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Begin a look-up of the block of another operation: `find.one`. */
void SKY_GroundFind_BeginOne(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool is_fresh);
/** Let a look-up go on. @return true if the operation waits */
bool SKY_GroundFind_Waits(SKY_Ground_t *ground, SKY_GroundOp_t *op);

/**
 * Ask satellites for the facts of a block that was missed: sky_ground_confirm.c. Sets `has_words` and `is_blind`.
 * @param may_purge  its rest is purged, unless they know better
 * @param is_other   set in the end if the block is prefetched for a row to come, which is the operation's from now on, or was replaced
 * @param is_aside   set in the end if a stand-in may hold some of it
 * @return true if the operation waits; false if it is over
 */
bool SKY_GroundConfirm_Waits(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool may_purge, bool *is_other, bool *is_aside);
/** Ask the servers of now whether the operation's block is prefetched for a row to come, which is the operation's then: `is_ahead`. @return true if
 *  it waits */
bool SKY_GroundConfirm_AsksAhead(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Find out whether satellites follow a schedule that this host does not know: `is_blind`. @return true if the operation waits */
bool SKY_GroundConfirm_AsksBlind(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Ask stand-ins for the operation's block. @param is_aside  set in the end if one may hold some of it, or if it waits for a row to come: then nobody
 *  is asked. @return true if the operation waits */
bool SKY_GroundConfirm_AsksAside(SKY_Ground_t *ground, SKY_GroundOp_t *op, bool *is_aside);

void SKY_GroundCheck_Begin(SKY_GroundOp_t *op);
bool SKY_GroundCheck_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Take in the answer to a question about a share. */
void SKY_GroundCheck_Answered(SKY_Ground_t *ground, SKY_GroundOp_t *op, SKY_HostQuestion_t *question);

void SKY_GroundPurge_Begin(SKY_GroundOp_t *op);
bool SKY_GroundPurge_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);

void SKY_GroundExchange_Begin(SKY_GroundOp_t *op);
/** End one whose turn has not come by its deadline. */
void SKY_GroundExchange_Expire(SKY_GroundOp_t *op);
bool SKY_GroundExchange_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);
bool SKY_GroundTouch_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);

void SKY_GroundPrefetch_Begin(SKY_GroundOp_t *op, uint64_t now_us);
bool SKY_GroundPrefetch_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);
/** Return the epoch of the block of a GET: the row for which it is prefetched right now, or what the GET knows. */
uint32_t SKY_GroundPrefetch_EpochOf(const SKY_Ground_t *ground, const SKY_GroundOp_t *op);

/** Have satellites forget older versions of a value that was put: once, and only if they may have any. @return true if the operation waits */
bool SKY_GroundOlder_Asks(SKY_Ground_t *ground, SKY_GroundOp_t *op);

void SKY_GroundMove_Begin(SKY_Ground_t *ground, SKY_GroundOp_t *op);
bool SKY_GroundMove_Goes(SKY_Ground_t *ground, SKY_GroundOp_t *op);

#endif
