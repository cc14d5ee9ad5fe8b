/**
 * @file
 * Questions of a ground host: one small request to one satellite each (PING, HAS, STATS, PURGE, MIGRATE, RELAY; GET of one chunk), and
 * its answer. Types only: SKY_Host_Ask and what goes with it are in sky_host.h, which includes this file.
 *
 * A question is sent again until it is answered or its deadline has passed. The timer of each satellite follows the round trips that
 * were measured (RFC 6298) and doubles after three sendings. A satellite that is busy is asked again.
 *
 * Answers are not trusted. A packet is an answer only if it comes from the endpoint that was asked, repeats the request id and the
 * operation, and is meant for this host. A satellite must say itself what it did or holds, as the application that was asked. Any
 * satellite on the way may say that a request could not be done.
 */
#ifndef SKY_HOST_ASK_H
#define SKY_HOST_ASK_H

#include "sky_packet.h"

#define SKY_HOST_QUESTIONS_MAX 65536u /**< on their way at a time: a question has 16 bits of its request id */

/** Place of a share: a satellite, and how it is reached. Answers are taken from that endpoint only. Its home, if it
 *  stands in for one, may have what it denies, and a PUT names that; of no meaning to questions. */
typedef struct
{
    uint16_t plane, slot;             /**< plane 0: nowhere */
    uint16_t entry_plane, entry_slot; /**< satellite that listens at the endpoint */
    uint64_t endpoint;                /**< endpoint of the entry satellite, as the shell understands it */
    uint16_t home_plane, home_slot;   /**< lost satellite that it stands in for; 0: none */
} SKY_HostPlace_t;

/** Return true if a satellite stands in for a lost one, which may have what it denies. */
static inline bool SKY_HostPlace_IsStandIn(const SKY_HostPlace_t *place)
{
    return place->home_plane != 0u;
}

/** One question. It stays in place, with its payload and its room, until it has an end. */
typedef struct
{
    SKY_HostPlace_t place; /**< satellite that is asked */
    uint8_t         key[SKY_KEY_BYTES];
    uint16_t        apid;
    uint8_t         op;
    uint8_t         flags;
    uint32_t        tenant;
    uint32_t        epoch;         /**< PURGE: what is kept for a later row stays; SKY_SCHEDULE_STAYS: nothing does for that */
    uint32_t        content;       /**< PURGE: the content of that version that goes; 0: any does */
    uint64_t        block_version; /**< PURGE: the newest version that goes; 0: any does */
    uint32_t        chunk_id;
    uint16_t        credit;
    uint32_t        deadline_ms;   /**< time from the beginning; at least 1 */
    uint32_t        payload_bytes; /**< length of the request's payload */
    uint32_t        room_bytes;    /**< room for the answer's payload; 0: it is not wanted */
    const uint8_t  *payload;       /**< may be NULL without bytes */
    uint8_t        *room;          /**< may be NULL without bytes */
    void           *owner;         /**< whose question it is: of no meaning to the host */
    /* outcome */
    uint32_t
        status;    /**< RUNNING; then DONE (it was answered), EXPIRED, TOO_LARGE (no path takes it), or what SKY_Host_Stop said */
    uint32_t sent; /**< sendings; after more than one the request may have been done before the one that is answered */
    uint64_t rtt_us; /**< time to the answer from the sending that counts: mostly the last */
    /** The answer; its own status says whether the request was done. `length` is that of the answer's payload, `payload` is
     *  the room, or NULL if there is none or the room is too small: then nothing was written. */
    SKY_Packet_t answer;
    /* for the host only */
    uint64_t request_id;
    uint64_t deadline_us, due_us;
    uint64_t first_us, last_us; /**< times of its first and last sending */
    uint32_t tries;             /**< sendings under the number that the host has now */
    uint32_t numbers;           /**< numbers that the host had drawn when it was asked */
    void    *next;              /**< next question that waits, or that has ended */
} SKY_HostQuestion_t;

/** How long answers are waited for. SKY_Host_Init sets the defaults. */
typedef struct
{
    uint32_t first_us;   /**< timer before a round trip was measured */
    uint32_t min_us;     /**< shortest timer */
    uint32_t max_us;     /**< longest timer */
    uint32_t silence_us; /**< shortest silence after which a satellite counts as silent */
} SKY_HostPatience_t;

/** A question that is on its way. */
typedef struct
{
    SKY_HostQuestion_t *question; /**< NULL: the place is free */
    uint32_t            next;     /**< free place behind this one */
} SKY_HostAsked_t;

/** Memory of questions. It stays in place until other memory is lent. */
typedef struct
{
    SKY_HostAsked_t *asked;
    uint32_t count; /**< questions that may be on their way at a time, 1 to SKY_HOST_QUESTIONS_MAX; others wait in order */
} SKY_HostQuestionMemory_t;

/** All questions of a host. For the host only. */
typedef struct
{
    SKY_HostQuestionMemory_t memory;
    SKY_HostPatience_t       patience;
    SKY_HostQuestion_t      *waiting_first, *waiting_last; /* not sent yet */
    SKY_HostQuestion_t      *ended_first, *ended_last;
    uint32_t                 free; /* first free place */
    uint32_t                 on_way;
    uint32_t                 waiting;
    uint16_t                 number;     /* number of the newest request */
    uint64_t                 due_us;     /* earliest timer of the questions on their way, or before it */
    uint64_t                 waiting_us; /* earliest deadline of the waiting questions, or before it */
} SKY_HostQuestions_t;

/** Return true if a request id is that of a question, and not of a transfer. */
static inline bool SKY_Host_IsQuestion(uint64_t request_id)
{
    return (request_id >> 32 & 1u) == 0u;
}

#endif
