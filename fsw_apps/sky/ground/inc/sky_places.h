/**
 * @file
 * Places where a share may be while the sky turns, in the order in which a ground host asks. Part of the host: missions do not compile
 * it.
 *
 * When a row of the schedule begins, shares go to the servers' satellites of that row, which takes a while. A chunk only moves
 * forward in time. So a host that asks the places of its server in the order of time finds it, however far the move has come:
 *
 *     soon after a row's time   old, new       for a tenth of a handover, at most half the row: it may not have moved yet
 *     later                     new, old, new  it should have moved. If not, the old place is asked, and then the new one again, in
 *                                              case it moved between the two questions
 *     before the next row       and the next   for a moment: somebody's clock may be fast
 *
 * A handover may take a set time. If rows are shorter than that, several may be under way, and several old places are asked, the
 * oldest first. A block that was prefetched for a row to come (its epoch) waits there, so that row's place is asked first, and the current ones
 * after it, for chunks that did not arrive.
 *
 * In each row others stand in for satellites that are lost (sky_standins.h). A share that all these places deny may be at a satellite
 * that is late to hand it over, or at one that has stood in for another. Those are asked first, as chunks only move forward.
 */
#ifndef SKY_PLACES_H
#define SKY_PLACES_H

#include "sky_defaults.h"
#include "sky_schedule.h"
#include "sky_standins.h"

#define SKY_PLACES_ROWS_MAX (SKY_HOST_BACK + 5u) /**< an epoch's row, the row of now twice, old ones, the next, an epoch's row */
#define SKY_PLACES_MAX      (SKY_STANDINS_SPARES + SKY_HOST_LATE + SKY_PLACES_ROWS_MAX)

/** The schedule that a host follows. */
typedef struct
{
    const SKY_Schedule_t *schedule;
    uint64_t              handover_us; /**< time that a handover may take */
} SKY_Places_t;

/** Return true if satellites may hand chunks over now, so that a share may be at an old place, or already at the next one. */
bool SKY_Places_IsMoving(const SKY_Places_t *places, uint64_t now_us);
/**
 * Find the satellites that had a server's place in a row before @p row and do not have it in that: a chunk that is late is at one of
 * them.
 * @param first      rows before this one do not count
 * @param last_rows  room for a row for each satellite of the torus, plane by plane: the last row in which it had the place, or
 *                   SKY_SCHEDULE_NONE
 */
void SKY_Places_Left(const SKY_Schedule_t *schedule, uint32_t first, uint32_t row, uint32_t *last_rows);

/**
 * Find the satellites that stood in for lost ones from a row on, if few were called lost. They hand the chunks of others over as soon as
 * these are back; in the layout hop, and without a schedule, they keep them.
 * @param first     rows before this one do not count, nor do those before the last few
 * @param is_spare  room for a mark for each satellite of the torus, plane by plane
 * @param servers   scratch room for all servers
 * @param cells     scratch room for as many cells as the torus has satellites
 */
void SKY_Places_Spares(const SKY_Schedule_t *schedule, uint32_t first, uint32_t row, bool *is_spare, SKY_Addr_t *servers,
                       SKY_Cell_t *cells);

/** A host's knowledge of satellites. */
typedef struct
{
    SKY_Satellites_t lost;   /**< lost satellites, which others stand in for */
    SKY_Satellites_t late;   /**< satellites with chunks that should have gone; a lost one is asked too */
    SKY_Satellites_t spares; /**< late ones that may have stood in for others: a few of them, asked for every share */
    uint32_t         first;  /**< first row whose chunks they are asked for */
} SKY_PlacesKnown_t;

/** The places of a block's shares. The memory is the caller's. */
typedef struct
{
    uint32_t rows[SKY_PLACES_ROWS_MAX]; /**< rows to which they belong, in the order in which they are asked */
    uint32_t row_count;                 /**< from 1 */
    SKY_Addr_t
             *found; /**< places, at server x SKY_PLACES_MAX + place, in the order in which they are asked, none twice in a row */
    uint32_t *counts;    /**< number of places by server, from 1 */
    SKY_Addr_t *homes;   /**< by server: lost satellite that has a stand-in in one of the rows, the last one; plane 0: none */
    SKY_Addr_t *servers; /**< scratch room for all servers */
    SKY_Cell_t *cells;   /**< scratch room for as many cells as the torus has satellites */
} SKY_Shares_t;

/**
 * Find the rows whose places are asked for a share of a block, in this order.
 * @param epoch  epoch of the block; one that no row has, or that is past, changes nothing
 * @param rows   room for SKY_PLACES_ROWS_MAX
 * @return number of rows, from 1
 */
uint32_t SKY_Places_Rows(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, uint32_t *rows);
/**
 * Find the satellites of all servers in a row, and those that stand in for lost ones.
 * @param row      clamped to those of the schedule
 * @param servers  room for all servers
 * @param cells    room for as many as the torus has satellites
 */
void SKY_Places_InRow(const SKY_Schedule_t *schedule, uint32_t row, const SKY_Satellites_t *lost, SKY_Addr_t *servers,
                      SKY_Cell_t *cells);
/** Where the shares of a block are asked for. Without late satellites: where they should be. @param epoch  as for SKY_Places_Rows */
void SKY_Places_Find(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, const SKY_PlacesKnown_t *known,
                     SKY_Shares_t *shares);
/** Find the places to which the shares of a block are put: in the current row, or in that which it is prefetched for. */
void SKY_Places_FindPut(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, const SKY_PlacesKnown_t *known,
                        SKY_Shares_t *shares);
/**
 * Find those of some satellites that had the share of a server in a row before @p row and do not have it in that, in the order of
 * time; no more than the last SKY_HOST_LATE.
 * @param first  rows before this one do not count
 * @param found  room for SKY_HOST_LATE
 * @return number of satellites found
 */
uint32_t SKY_Places_Late(const SKY_Schedule_t *schedule, uint32_t first, uint32_t row, uint32_t server,
                         const SKY_Satellites_t *late, SKY_Addr_t *found);

#endif
