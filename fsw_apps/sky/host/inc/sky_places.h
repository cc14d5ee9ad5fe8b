/**
 * @file
 * Where a share may be while the sky turns, in the order in which a ground host asks. Part of the host: missions do not compile it.
 *
 * When a row of the schedule begins, shares go to the servers' satellites of that row, which takes a while. A chunk only moves
 * forward in time. So who asks the places of its server in the order of time finds it, however far the move has come:
 *
 *     soon after a row's time   old, new       for a tenth of a handover, at most half the row: it may not have moved yet
 *     later                     new, old, new  it should have moved. If not, the old place is asked, and then the new one again, in
 *                                              case it moved between the two questions
 *     before the next row       and the next   for a moment: somebody's clock may be fast
 *
 * A handover may take a set time. Where rows are shorter than that, several may be under way, and several old places are asked, the
 * oldest first. A block that was laid for a row to come (its epoch) waits there, so that row's place is asked first, and those of now
 * after it, for what did not arrive.
 */
#ifndef SKY_PLACES_H
#define SKY_PLACES_H

#include "sky_defaults.h"
#include "sky_schedule.h"

#define SKY_PLACES_ROWS_MAX (SKY_HOST_BACK + 5u) /**< an epoch's row, the row of now twice, old ones, the next, an epoch's row */
#define SKY_PLACES_MAX      (SKY_HOST_LATE + SKY_PLACES_ROWS_MAX)

/** What a host follows. */
typedef struct
{
    const SKY_Schedule_t *schedule;
    uint64_t              handover_us; /**< how long a handover may take */
} SKY_Places_t;

/** May satellites hand chunks over now, so that a share may be at an old place, or already at the next one? */
bool SKY_Places_IsMoving(const SKY_Places_t *places, uint64_t now_us);
/**
 * Find the satellites that had a server's place in a row before @p row and do not have it in that: a chunk that is late is at one of
 * them.
 * @param first      rows before this one do not count
 * @param last_rows  room for a row for each satellite of the torus, plane by plane: the last row in which that was so, or
 *                   SKY_SCHEDULE_NONE
 */
void SKY_Places_Left(const SKY_Schedule_t *schedule, uint32_t first, uint32_t row, uint32_t *last_rows);

/** Has this satellite something to hand over that should have gone? @p context is the caller's. */
typedef bool (*SKY_Places_IsLate_t)(const void *context, SKY_Addr_t satellite);

/**
 * The rows whose places are asked for a share of a block, in this order.
 * @param epoch  of the block; one that no row has, or that is past, changes nothing
 * @param rows   room for SKY_PLACES_ROWS_MAX
 * @return how many there are, from 1
 */
uint32_t SKY_Places_Rows(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, uint32_t *rows);
/**
 * The satellites that are asked for the share of a server, in this order; none twice in a row.
 * @param found  room for SKY_PLACES_ROWS_MAX
 * @return how many there are, from 1
 */
uint32_t SKY_Places_Find(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, uint32_t server, SKY_Addr_t *found);
/**
 * The satellites that had the share of a server in a row before @p row, do not have it in that, and are late to hand it over, in
 * the order of time; no more than the last SKY_HOST_LATE.
 * @param first  rows before this one do not count
 * @param found  room for SKY_HOST_LATE
 * @return how many there are
 */
uint32_t SKY_Places_Late(const SKY_Schedule_t *schedule, uint32_t first, uint32_t row, uint32_t server,
                         SKY_Places_IsLate_t is_late, const void *context, SKY_Addr_t *found);
/**
 * The same as SKY_Places_Find for a share that all these places deny: before them, the satellites that are late to hand it over.
 * @param found  room for SKY_PLACES_MAX
 */
uint32_t SKY_Places_FindLate(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, uint32_t server,
                             SKY_Places_IsLate_t is_late, const void *context, SKY_Addr_t *found);

#endif
