/**
 * @file
 * Private to the host: functions that its files call of each other. A file calls those that stand above it here, and none below.
 */
#ifndef SKY_HOST_PRIV_H
#define SKY_HOST_PRIV_H

#include "sky_host.h"

#define SKY_HOST_LANES_ALL ((1u << SKY_HOST_LANES) - 1u)

/* ---- sky_host_random.c: words and numbers by chance -------------------------------------------------------------------- */

/** Draw the word of a handshake. @return false if there are no random bytes: with a word that can be guessed there must be no handshake */
bool SKY_HostRandom_Word(SKY_Host_t *host, uint8_t word[SKY_WORD_BYTES]);
/** Draw a number for an id. If there are no random bytes, take one that was not used lately: ids only tell answers apart. */
uint32_t SKY_HostRandom_Number(SKY_Host_t *host);

/* ---- sky_host_keys.c: places for the keys of satellites ---------------------------------------------------------------- */

/** Begin what is known of a new peer in this respect. @param index  of it among the peers */
void SKY_HostKeys_Init(SKY_Host_t *host, uint32_t index);
/** Forget the keys of a peer that makes room for another. */
void SKY_HostKeys_Forget(SKY_Host_t *host, SKY_HostPeer_t *peer);

/* ---- sky_host_rows.c: which chunks of a block are here, and whether they suffice ------------------------------------------ */

/** Consequences of a lost chunk for its row. */
typedef enum
{
    SKY_HOST_LOSS_BORNE = 0, /**< the other chunks may suffice */
    SKY_HOST_LOSS_DOUBTED,   /**< they do not, but some that are lost may be somewhere */
    SKY_HOST_LOSS_DENIED,    /**< they do not, and so many that are lost are denied, some by stand-ins */
    SKY_HOST_LOSS_SURE       /**< they do not, and so many that are lost are nowhere */
} SKY_HostLoss_t;

/** Begin with no chunk here. */
void SKY_HostRows_Begin(SKY_HostWork_t *work);
/** Return true if a chunk of a GET has come. Without memory for that, none is known to have. */
bool SKY_HostRows_IsHere(const SKY_HostBlock_t *block, uint32_t chunk_id);
/** Return true if a chunk of a GET has not come, and its row needs more. */
bool SKY_HostRows_Needs(SKY_HostWork_t *work, uint32_t chunk_id);
/** Note that a chunk of a GET has come. */
void SKY_HostRows_Take(SKY_HostWork_t *work, uint32_t chunk_id);
/** Return true if the row of a chunk can do without it. */
bool SKY_HostRows_MayLose(SKY_HostWork_t *work, uint32_t chunk_id);
/** Note that a chunk is not to be had. @param is_denied  all its places deny it @param is_gone  and none of them was at a stand-in */
SKY_HostLoss_t SKY_HostRows_Lose(SKY_HostWork_t *work, uint32_t chunk_id, bool is_denied, bool is_gone);
/** Make the parity of a PUT's row, unless it is made, when a chunk of it is sent: the row is read once for that, and is in the
 * processor's cache when its chunks go. */
void SKY_HostRows_Encode(SKY_HostWork_t *work, uint32_t chunk_id);
/** Make the data chunks of the next row of a GET of which some have not come. All rows are complete. @return true if no row is left */
bool SKY_HostRows_Decode(SKY_HostBlock_t *block);

/* ---- sky_host_pieces.c: satellites, and the pieces in their queues ------------------------------------------------------ */

/** Describe the share of @p block on one satellite: its chunks from @p base on. The block may not have begun yet. */
void SKY_HostPieces_Share(const SKY_Host_t *host, const SKY_HostBlock_t *block, uint32_t base, uint32_t count,
                          SKY_ShareCfg_t *cfg);
/** Return the place of a server in a round. */
const SKY_HostPlace_t *SKY_HostPieces_Place(const SKY_HostBlock_t *block, uint32_t server, uint32_t round);
/** Return true if this block can begin. */
bool SKY_HostPieces_Check(const SKY_Host_t *host, const SKY_HostBlock_t *block);
/** Cut a block that has begun into pieces, and queue them; parity that is not needed yet is held back. @return false if there is no memory
 * for one of its satellites */
bool SKY_HostPieces_Make(SKY_Host_t *host, uint32_t work);
/** Return the round after @p round in which a server has a place, or 0 if there is none. */
uint32_t SKY_HostPieces_NextRound(const SKY_HostBlock_t *block, uint32_t server, uint32_t round);
/** Return true if a stand-in is among the places of a server that are asked for its share. */
bool SKY_HostPieces_HasStandIn(const SKY_HostBlock_t *block, uint32_t server);
/** Put a piece into the queue of the satellite that has its server's place in its round. @return false if there is no memory for
 * that */
bool SKY_HostPieces_Queue(SKY_Host_t *host, uint32_t piece);
/** Queue a copy of a piece, for its server's place in another round. @return SKY_HOST_NONE if there is no memory */
uint32_t SKY_HostPieces_Copy(SKY_Host_t *host, uint32_t piece, uint32_t round);
/** Return the work of which a lane runs a piece. */
SKY_HostWork_t *SKY_HostPieces_WorkOf(const SKY_Host_t *host, const SKY_HostLane_t *lane);
/** Take a piece out of those of a block that are held back. @return SKY_HOST_NONE if there is none */
uint32_t SKY_HostPieces_TakeHeld(SKY_Host_t *host, uint32_t work);
/** Free a piece that has ended, and is in no queue and no lane. */
void SKY_HostPieces_Free(SKY_Host_t *host, uint32_t piece);
/** Leave out satellites that have nothing to do any more. */
void SKY_HostPieces_Rest(SKY_Host_t *host);
/** Find out which active satellites share a way in. */
void SKY_HostPieces_FindWays(SKY_Host_t *host);
/** Remember a satellite, if it is not known. @return NULL if there is no memory */
SKY_HostPeer_t *SKY_HostPieces_KnowPeer(SKY_Host_t *host, SKY_Addr_t addr);

/* ---- sky_host_exchange.c: what runs in a lane, for a PUT or GET --------------------------------------------------------- */

/** Return the configuration of a lane's share. */
SKY_ShareCfg_t *SKY_HostExchange_Cfg(SKY_HostLane_t *lane);
/** Return the state of a lane's share. */
SKY_ShareState_t SKY_HostExchange_State(const SKY_HostLane_t *lane);
/** Return the status of the last error response. */
SKY_Status_t SKY_HostExchange_Status(const SKY_HostLane_t *lane);
/** Return the number of chunks that have not come, or were not acknowledged. */
uint32_t SKY_HostExchange_Left(const SKY_HostLane_t *lane);
/** Return true if the satellite of a PUT has acknowledged chunk number @p i of the piece. */
bool SKY_HostExchange_IsTaken(const SKY_HostLane_t *lane, uint32_t i);
/** Return true if an answer of the lane's satellite is due, to something that was sent. */
bool SKY_HostExchange_Waits(const SKY_HostLane_t *lane);
/** Return a chunk of a GET that its place does not hold, or else one that has not come. Not all have come. 0 if it is no GET. */
uint32_t SKY_HostExchange_DeniedChunk(const SKY_HostLane_t *lane);
/** Return the chunks of a PUT on their way. */
uint32_t SKY_HostExchange_Pushed(const SKY_HostLane_t *lane);
/** Return the time since a query of a PUT left to which a packet is the answer, if it is one of the last ones; else 0. */
uint64_t SKY_HostExchange_AgeUs(const SKY_HostLane_t *lane, uint64_t now_us, const SKY_Packet_t *pkt);
/** Add up what a lane has done for its block. @param counts  false: the chunks count at another place @return its satellite's part */
SKY_HostServed_t SKY_HostExchange_Account(SKY_HostLane_t *lane, SKY_HostWork_t *work, bool counts);
/** Begin a piece. The lane's request id, kind and patience are set. */
void SKY_HostExchange_Begin(SKY_HostLane_t *lane, const SKY_ShareCfg_t *cfg, SKY_Peer_t *peer, SKY_HostWork_t *work);
/** End an exchange that still runs. */
void SKY_HostExchange_Stop(SKY_HostLane_t *lane, SKY_ShareState_t state);
/** End an exchange that still runs as refused with a status. */
void SKY_HostExchange_Refuse(SKY_HostLane_t *lane, SKY_Status_t status);
/** Let a lane ask again at once what it has asked. */
void SKY_HostExchange_Repeat(SKY_HostLane_t *lane, uint64_t now_us);
/** Let timers act. @return the time at which something is due, at the latest */
uint64_t SKY_HostExchange_OnTime(SKY_HostLane_t *lane, uint64_t now_us);
/** Take in a packet of the lane's satellite. */
void SKY_HostExchange_OnPacket(SKY_HostLane_t *lane, uint64_t now_us, const SKY_Packet_t *pkt);
/** Leave out chunks of a GET that its block can do without now, as far as they would be asked for next. */
void SKY_HostExchange_Spare(SKY_HostLane_t *lane, SKY_HostWork_t *work);
/**
 * Make the next packet of a lane, complete but for its sequence count and, for SKY_PUSH_CHUNK, the chunk itself. Call this until NOTHING. A push
 * may be left after a QUERY, so that others have their turn.
 * @param room  chunks that may still go
 */
SKY_PushAction_t SKY_HostExchange_Next(SKY_HostLane_t *lane, uint64_t now_us, uint32_t room, SKY_Packet_t *pkt, uint8_t *payload);

/* ---- sky_host_pace.c: how much of PUTs is on the way ------------------------------------------------------------------------ */

/** Return the chunks of PUTs that may go to a satellite in one burst now. */
uint32_t SKY_HostPace_Room(const SKY_Host_t *host, const SKY_HostPeer_t *peer);
/** Take in the round trip of a query, before its answer is. @param age_us  0: it was not measured */
void SKY_HostPace_Asked(const SKY_Host_t *host, SKY_HostPeer_t *peer, uint64_t age_us);

/* ---- sky_host_served.c: what each satellite did in a block ------------------------------------------------------------------ */

/** Add a satellite's part in a block, if that is to be told. */
void SKY_HostServed_Add(SKY_HostBlock_t *block, const SKY_HostPeer_t *peer, const SKY_HostServed_t *part);
/** Note that a block goes on without what a lane asks for, before that is closed. */
void SKY_HostServed_Missed(SKY_Host_t *host, const SKY_HostLane_t *lane);

/* ---- sky_host_ends.c: ends of pieces and blocks -------------------------------------------------------------------------- */

/** Close a lane whose piece has ended. If the piece did not end well and has no other place, its block ends, too. @return false
 * if the piece still runs */
bool SKY_HostEnds_Reap(SKY_Host_t *host, SKY_HostLane_t *lane);
/** End a lane's piece as refused with a status. */
void SKY_HostEnds_Refuse(SKY_Host_t *host, SKY_HostLane_t *lane, SKY_Status_t status);
/** Decode a row of a GET that has all that it needs. @return true if there are more */
bool SKY_HostEnds_Decode(SKY_Host_t *host);
/** End GETs that are being decoded. @param block  NULL: all of them */
void SKY_HostEnds_StopDecoding(SKY_Host_t *host, const SKY_HostBlock_t *block, SKY_Status_t status);
/** End a block that runs. */
void SKY_HostEnds_StopBlock(SKY_Host_t *host, uint32_t work, SKY_Status_t status);
/** Move a piece to the next place of its server. @return false if there is none, or no time */
bool SKY_HostEnds_Pass(SKY_Host_t *host, uint32_t number, SKY_ShareState_t state, SKY_Status_t status, SKY_Addr_t addr);
/** Ask for the parity of a block that was held back, because there is a use for it. The block may end, if there is no memory. */
void SKY_HostEnds_AskParity(SKY_Host_t *host, uint32_t work);

/** Give up a piece that another place has taken, or is to take. */
void SKY_HostEnds_Drop(SKY_Host_t *host, uint32_t number);

/* ---- sky_host_replace.c: who is late, and places besides ------------------------------------------------------------------ */

/** Note that the satellite of a lane has said something, before its last answer is forgotten. */
void SKY_HostReplace_Heard(SKY_Host_t *host, SKY_HostLane_t *lane);
/** Return true if the satellite of a PUT's lane has said nothing for its patience, of other blocks neither. */
bool SKY_HostReplace_IsSilent(const SKY_Host_t *host, const SKY_HostLane_t *lane);
/** Return the silence after which the satellite of a lane is late, by what others needed for the same block; 0: too few have answered. */
uint64_t SKY_HostReplace_LateUs(const SKY_Host_t *host, const SKY_HostLane_t *lane);
/** Act if the satellite of a lane is late. @return the time at which it is to be called again; UINT64_MAX: not before something comes */
uint64_t SKY_HostReplace_OnTime(SKY_Host_t *host, SKY_HostLane_t *lane);

/* ---- sky_host_lanes.c: pieces that run ---------------------------------------------------------------------------------- */

/** Give free lanes of an active satellite the next pieces. A block whose time is over does not begin any more. @return true if
 * one began, here or at another satellite */
bool SKY_HostLanes_Begin(SKY_Host_t *host, SKY_HostPeer_t *peer);
/** End blocks whose deadline passes while a piece of theirs is in a queue, and find the next such deadline. */
void SKY_HostLanes_EndLate(SKY_Host_t *host);
/** Let the timers of a lane act. @return the time at which something is due, at the latest */
uint64_t SKY_HostLanes_OnTime(SKY_Host_t *host, SKY_HostLane_t *lane);
/** Act on a packet for a lane, from its satellite. */
void SKY_HostLanes_OnPacket(SKY_Host_t *host, SKY_HostLane_t *lane, const SKY_Packet_t *pkt);

/* ---- sky_host_questions.c: questions, and the lists in which they wait ---------------------------------------------------- */

/** Return how long to wait for an answer. @param peer  NULL: nothing is known of the satellite @param sendings  those before this one */
uint64_t SKY_HostQuestions_TimeoutUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer, uint32_t sendings);
/** Send questions to, or through, a satellite at once, because what kept them has ended. */
void SKY_HostQuestions_Wake(SKY_Host_t *host, SKY_Addr_t satellite);
/** Answer questions to, or through, a satellite with a status, because it cannot be asked. */
void SKY_HostQuestions_Deny(SKY_Host_t *host, SKY_Addr_t satellite, SKY_Status_t status);
/** End all questions. */
void SKY_HostQuestions_StopAll(SKY_Host_t *host, SKY_Status_t status);
/** Put a question behind all others that wait. */
void SKY_HostQuestions_Wait(SKY_HostQuestions_t *all, SKY_HostQuestion_t *question);
/** Take out the question that has waited for the longest time. There is one. */
SKY_HostQuestion_t *SKY_HostQuestions_TakeWaiting(SKY_HostQuestions_t *all);
/** End a question that is in no list and no place any more. */
void SKY_HostQuestions_End(SKY_HostQuestions_t *all, SKY_HostQuestion_t *question, SKY_Status_t status);
/** End a question that is on its way. */
void SKY_HostQuestions_EndAsked(SKY_HostQuestions_t *all, uint32_t place, SKY_Status_t status);

/* ---- sky_host_open.c: what satellites ask of the host first -------------------------------------------------------------- */

/** Return true if a satellite may be asked through an entry satellite now. If not, it is asked to be opened, as often as that is due. */
bool SKY_HostOpen_May(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_Addr_t entry, uint64_t endpoint);
/** Return the time at which SKY_HostOpen_May is to be called again for a satellite that may not be asked yet. @param peer  NULL: there was
 * no memory for it */
uint64_t SKY_HostOpen_DueUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer, SKY_Addr_t entry);
/** Count a packet, tag it, and send it. Its satellite is open. */
void SKY_HostOpen_Send(SKY_Host_t *host, uint64_t endpoint, SKY_Packet_t *pkt);
/** Return true if answers of a satellite can be checked, or need no check. */
bool SKY_HostOpen_HasSession(const SKY_Host_t *host, const SKY_HostPeer_t *peer);
/** Return true if a satellite is to be asked for an association, because there is none or one in doubt. */
bool SKY_HostOpen_NeedsHandshake(const SKY_Host_t *host, const SKY_HostPeer_t *peer);
/** Return true if a gate takes packets of this host now. After a cookie's shortest life it may not. */
bool SKY_HostOpen_IsOpen(const SKY_Host_t *host, const SKY_HostPeer_t *gate);
/** Return the satellite at whose endpoint what goes to @p peer arrives; NULL if there is no memory for both. */
SKY_HostPeer_t *SKY_HostOpen_GateOf(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_Addr_t entry);
/** Wake up all that waits to be sent to, or through, a satellite. @param lost  what was asked before was not acted upon */
void SKY_HostOpen_Wake(SKY_Host_t *host, SKY_Addr_t satellite, bool lost);
/** End all that waits for a satellite that will not be opened. @param next_us  it is not asked again before */
void SKY_HostOpen_Fail(SKY_Host_t *host, SKY_HostPeer_t *failed, SKY_Status_t status, uint64_t next_us);
/** Return the time before which a satellite that has refused is not asked again. */
uint64_t SKY_HostOpen_AgainUs(const SKY_Host_t *host, const SKY_HostPeer_t *peer);
/**
 * Ask a satellite for another association, because it is said not to know this host any more. The one of before goes on being used, and what
 * was sent under it is repeated once there is another one. So a forged word costs one handshake. @return false if it is too soon for that
 */
bool SKY_HostOpen_Doubt(SKY_Host_t *host, SKY_HostPeer_t *peer);

/* ---- sky_host_open_answers.c: what they answer to that -------------------------------------------------------------------- */

/** Return true if an answer of a satellite, or about it, may be believed. Counts it if not. With a right tag, its session is in no doubt. */
bool SKY_HostOpen_IsTrusted(SKY_Host_t *host, const SKY_HostPeer_t *peer, const SKY_Packet_t *pkt);
/** Act on a word that a satellite, or the entry satellite on the way to it, is not open: COOKIE, UNAUTHENTICATED. @return false if the
 * packet is none */
bool SKY_HostOpen_OnRefusal(SKY_Host_t *host, SKY_HostPeer_t *peer, SKY_Addr_t entry, const SKY_Packet_t *pkt);
/** Return the satellite to whose opening a response belongs, or NULL. */
SKY_HostPeer_t *SKY_HostOpen_Asked(const SKY_Host_t *host, uint64_t endpoint, const SKY_Packet_t *pkt);
/** Act on the response to an opening. */
void SKY_HostOpen_OnAnswer(SKY_Host_t *host, SKY_HostPeer_t *peer, const SKY_Packet_t *pkt);

/* ---- sky_host_use.c: word that blocks are used ------------------------------------------------------------------------------ */

/** Tell servers of parity of the use of blocks that have begun, and that do not ask them. */
void SKY_HostUse_Tell(SKY_Host_t *host);

/* ---- sky_host_send.c: who sends how much now ----------------------------------------------------------------------------- */

/** Send as much as there is room for. @return true if more could be sent at once */
bool SKY_HostSend_All(SKY_Host_t *host);

/* ---- sky_host_ask.c: questions ------------------------------------------------------------------------------------------ */

/** Send questions that are due, and those that wait. @return the time at which something is due; UINT64_MAX if nothing is */
uint64_t SKY_HostAsk_Run(SKY_Host_t *host, bool timers);
/** Ask again what is on its way, because the host has another number. */
void SKY_HostAsk_OnNumber(SKY_Host_t *host);
/** Return the question to which a packet is an answer, or NULL if there is none. */
SKY_HostQuestion_t *SKY_HostAsk_Asked(const SKY_Host_t *host, uint64_t endpoint, const SKY_Packet_t *pkt);
/** Return true if this answer is a gateway's word that another host has our number. */
bool SKY_HostAsk_IsNumberTaken(const SKY_Host_t *host, const SKY_HostQuestion_t *question, const SKY_Packet_t *pkt);
/** Take in an answer. */
void SKY_HostAsk_OnAnswer(SKY_Host_t *host, SKY_HostQuestion_t *question, const SKY_Packet_t *pkt);
/** End a question that is on its way, if there is one with this request id. */
void SKY_HostAsk_Refuse(SKY_Host_t *host, uint64_t request_id, SKY_Status_t status);

#endif
