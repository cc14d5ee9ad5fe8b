/**
 * @file
 * Places where a share may be while the sky turns: see sky_places.h.
 */
#include "sky_places.h"

#include "sky_assert.h"

#define US_PER_MS UINT64_C(1000)

static uint64_t BeginsUs(const SKY_Schedule_t *schedule, uint32_t row)
{
    SKY_ASSERT(row >= 1u);
    SKY_ASSERT(row <= schedule->count);
    return schedule->epoch_us + schedule->rows[row - 1u].time_ms * US_PER_MS;
}

/* Add rows from @p first to @p last. @return the number of rows now */
static uint32_t Add(uint32_t *rows, uint32_t count, uint32_t first, uint32_t last)
{
    SKY_ASSERT(count + (last - first) < SKY_PLACES_ROWS_MAX);
    SKY_ASSERT(first >= 1u);
    SKY_ASSERT(first <= last);
    for (uint32_t row = first; row <= last; ++row)
    {
        SKY_ASSERT(count < SKY_PLACES_ROWS_MAX);
        rows[count] = row;
        ++count;
    }
    return count;
}

/* Return true if the row that ends at that time may have ended, by some clock. */
static bool IsNext(uint64_t end_us, uint64_t now_us)
{
    return end_us != UINT64_MAX && end_us - now_us <= SKY_HOST_SKEW_US;
}

/* Find the rows of a block that was prefetched for no row in particular. */
static uint32_t RowsByTime(const SKY_Places_t *places, uint64_t now_us, uint32_t row, uint32_t *rows)
{
    const SKY_Schedule_t *schedule = places->schedule;
    const uint64_t        since_us = now_us - BeginsUs(schedule, row);
    const uint64_t        end_us   = SKY_Schedule_EndUs(schedule, row);
    const bool            is_last  = end_us == UINT64_MAX;
    const uint64_t        half_us  = is_last ? UINT64_MAX : (end_us - BeginsUs(schedule, row)) / 2u;
    const uint64_t        early_us = places->handover_us / SKY_HOST_EARLY;
    const bool            is_early = since_us < (half_us < early_us ? half_us : early_us);
    uint32_t              first    = row > 1u ? row - 1u : row;
    uint32_t              count    = 0;

    while (first > 1u && row - first < SKY_HOST_BACK && now_us - BeginsUs(schedule, first) < places->handover_us)
    {
        --first; /* the row began so lately that not all chunks may have come to it */
    }
    SKY_ASSERT(first >= 1u);
    SKY_ASSERT(first <= row);
    SKY_ASSERT(row - first <= SKY_HOST_BACK);
    if (first < row)
    {
        count = is_early ? 0u : Add(rows, count, row, row);
        count = Add(rows, count, first, row - 1u);
    }
    count = Add(rows, count, row, row);
    SKY_ASSERT(count >= 1u);
    SKY_ASSERT(count < SKY_PLACES_ROWS_MAX);
    return IsNext(end_us, now_us) ? Add(rows, count, row + 1u, row + 1u) : count;
}

bool SKY_Places_IsMoving(const SKY_Places_t *places, uint64_t now_us)
{
    const SKY_Schedule_t *schedule = places->schedule;
    const uint32_t        row      = SKY_Schedule_RowAt(schedule, now_us);
    SKY_ASSERT(row >= 1u);
    SKY_ASSERT(row <= schedule->count);

    return (row > 1u && now_us - BeginsUs(schedule, row) < places->handover_us) ||
           IsNext(SKY_Schedule_EndUs(schedule, row), now_us);
}

uint32_t SKY_Places_Rows(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, uint32_t *rows)
{
    const uint32_t row           = SKY_Schedule_RowAt(places->schedule, now_us);
    const bool     is_prefetched = epoch >= row && epoch <= places->schedule->count;
    uint32_t       by_time[SKY_PLACES_ROWS_MAX];
    const uint32_t found = RowsByTime(places, now_us, row, by_time);
    uint32_t       last  = row;
    uint32_t       count = is_prefetched && by_time[0] != epoch ? Add(rows, 0, epoch, epoch) : 0u;

    SKY_ASSERT(found >= 1u);
    SKY_ASSERT(count + found <= SKY_PLACES_ROWS_MAX);
    SKY_ASSERT(row >= 1u);
    SKY_ASSERT(row <= places->schedule->count);
    for (uint32_t i = 0; i < found; ++i)
    {
        last        = by_time[i];
        rows[count] = last;
        ++count;
    }
    SKY_ASSERT(count >= 1u);
    SKY_ASSERT(last >= 1u);
    return is_prefetched && last < epoch ? Add(rows, count, epoch, epoch) : count;
}

static bool IsAmong(const SKY_Addr_t *found, uint32_t count, SKY_Addr_t satellite)
{
    uint32_t at = 0;
    SKY_ASSERT(count <= SKY_HOST_LATE);

    while (at < count && !SKY_Addr_Equal(found[at], satellite))
    {
        ++at;
    }
    return at < count;
}

uint32_t SKY_Places_Late(const SKY_Schedule_t *schedule, uint32_t first, uint32_t row, uint32_t server,
                         const SKY_Satellites_t *late, SKY_Addr_t *found)
{
    const SKY_Addr_t now   = SKY_Schedule_Server(schedule, row, server);
    uint32_t         count = 0;
    SKY_ASSERT(now.plane != 0u);
    SKY_ASSERT(first >= 1u);

    for (uint32_t before = row; before > first && count < SKY_HOST_LATE; --before)
    {
        const SKY_Addr_t satellite = SKY_Schedule_Server(schedule, before - 1u, server);

        if (!SKY_Addr_Equal(satellite, now) && !IsAmong(found, count, satellite) && SKY_Satellites_Has(late, satellite))
        {
            SKY_ASSERT(count < SKY_HOST_LATE);
            found[count] = satellite;
            ++count;
        }
    }
    for (uint32_t i = 0; i < count / 2u; ++i) /* the latest rows were found first */
    {
        const SKY_Addr_t satellite = found[i];

        found[i]              = found[count - 1u - i];
        found[count - 1u - i] = satellite;
    }
    SKY_ASSERT(count <= SKY_HOST_LATE);
    return count;
}

void SKY_Places_InRow(const SKY_Schedule_t *schedule, uint32_t row, const SKY_Satellites_t *lost, SKY_Addr_t *servers,
                      SKY_Cell_t *cells)
{
    const uint32_t count = schedule->placement.servers;

    SKY_ASSERT(count >= 1u);
    for (uint32_t server = 0; server < count; ++server)
    {
        servers[server] = SKY_Schedule_Server(schedule, row, server);
        SKY_ASSERT(servers[server].plane != 0u);
    }
    if (lost->count > 0u)
    {
        SKY_StandIns_Replace(&schedule->placement.torus, SKY_Schedule_Centre(schedule, row), lost, servers, count, cells);
    }
}

void SKY_Places_Spares(const SKY_Schedule_t *schedule, uint32_t first, uint32_t row, bool *is_spare, SKY_Addr_t *servers,
                       SKY_Cell_t *cells)
{
    const SKY_Torus_t *torus = &schedule->placement.torus;
    const uint32_t     begin = row > first + SKY_HOST_BACK ? row - SKY_HOST_BACK : first;

    SKY_ASSERT(first >= 1u);
    SKY_ASSERT(begin >= first);
    for (uint32_t i = 0; i < (uint32_t)torus->planes * torus->slots; ++i)
    {
        is_spare[i] = false;
    }
    for (uint32_t at = begin; at <= row; ++at)
    {
        const SKY_Satellites_t none = {NULL, 0};
        SKY_Addr_t             spares[SKY_STANDINS_SPARES];
        uint32_t               count;

        SKY_Places_InRow(schedule, at, &none, servers, cells);
        count =
            SKY_StandIns_Spares(torus, SKY_Schedule_Centre(schedule, at), servers, schedule->placement.servers, cells, spares);
        for (uint32_t i = 0; i < count; ++i)
        {
            SKY_ASSERT(spares[i].plane >= 1u);
            SKY_ASSERT(spares[i].slot >= 1u);
            is_spare[(spares[i].plane - 1u) * torus->slots + spares[i].slot - 1u] = true;
        }
    }
}

/* Add a place of a server's share, unless it is the one before. */
static void Append(SKY_Shares_t *shares, uint32_t server, SKY_Addr_t satellite)
{
    SKY_Addr_t    *found = &shares->found[(size_t)server * SKY_PLACES_MAX];
    const uint32_t count = shares->counts[server];

    SKY_ASSERT(count < SKY_PLACES_MAX);
    SKY_ASSERT(satellite.plane != 0u);
    if (count == 0u || !SKY_Addr_Equal(found[count - 1u], satellite))
    {
        found[count]           = satellite;
        shares->counts[server] = count + 1u;
    }
}

/* Add the places of a row to those of all servers. */
static void AddRow(const SKY_Places_t *places, uint32_t row, const SKY_Satellites_t *lost, SKY_Shares_t *shares)
{
    const SKY_Schedule_t *schedule = places->schedule;

    SKY_Places_InRow(schedule, row, lost, shares->servers, shares->cells);
    for (uint32_t server = 0; server < schedule->placement.servers; ++server)
    {
        const SKY_Addr_t satellite = shares->servers[server];

        if (lost->count > 0u)
        {
            const SKY_Addr_t home = SKY_Schedule_Server(schedule, row, server);

            shares->homes[server] = SKY_Addr_Equal(satellite, home) ? shares->homes[server] : home;
        }
        Append(shares, server, satellite);
        SKY_ASSERT(shares->counts[server] >= 1u);
        SKY_ASSERT(shares->counts[server] <= SKY_PLACES_MAX);
    }
}

/* Begin with the satellites that are asked before the places of all rows: late ones that stood in for others, then those that had
 * the share. */
static void BeginShares(const SKY_Places_t *places, uint32_t row, const SKY_PlacesKnown_t *known, SKY_Shares_t *shares)
{
    const uint32_t spares = known->spares.count < SKY_STANDINS_SPARES ? known->spares.count : SKY_STANDINS_SPARES;

    SKY_ASSERT(row >= 1u);
    SKY_ASSERT(row <= places->schedule->count);
    for (uint32_t server = 0; server < places->schedule->placement.servers; ++server)
    {
        SKY_Addr_t late[SKY_HOST_LATE];
        uint32_t   count = 0;

        shares->homes[server]  = (SKY_Addr_t){0, 0};
        shares->counts[server] = 0;
        for (uint32_t i = 0; i < spares; ++i)
        {
            Append(shares, server, known->spares.satellites[i]);
        }
        if (known->late.count > 0u)
        {
            count = SKY_Places_Late(places->schedule, known->first, row, server, &known->late, late);
        }
        for (uint32_t i = 0; i < count; ++i)
        {
            Append(shares, server, late[i]);
        }
        SKY_ASSERT(shares->counts[server] <= SKY_STANDINS_SPARES + SKY_HOST_LATE);
    }
}

void SKY_Places_Find(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, const SKY_PlacesKnown_t *known,
                     SKY_Shares_t *shares)
{
    BeginShares(places, SKY_Schedule_RowAt(places->schedule, now_us), known, shares);
    shares->row_count = SKY_Places_Rows(places, now_us, epoch, shares->rows);
    SKY_ASSERT(shares->row_count >= 1u);
    SKY_ASSERT(shares->row_count <= SKY_PLACES_ROWS_MAX);
    for (uint32_t i = 0; i < shares->row_count; ++i)
    {
        AddRow(places, shares->rows[i], &known->lost, shares);
    }
}

void SKY_Places_FindPut(const SKY_Places_t *places, uint64_t now_us, uint32_t epoch, const SKY_PlacesKnown_t *known,
                        SKY_Shares_t *shares)
{
    const SKY_PlacesKnown_t lost          = {known->lost, {NULL, 0}, {NULL, 0}, 1};
    const uint32_t          row           = SKY_Schedule_RowAt(places->schedule, now_us);
    const bool              is_prefetched = epoch > row && epoch <= places->schedule->count;

    BeginShares(places, row, &lost, shares);
    shares->rows[0]   = is_prefetched ? epoch : row; /* the block waits there */
    shares->row_count = 1;
    SKY_ASSERT(shares->rows[0] >= row);
    SKY_ASSERT(shares->rows[0] <= places->schedule->count);
    AddRow(places, shares->rows[0], &known->lost, shares);
}

void SKY_Places_Left(const SKY_Schedule_t *schedule, uint32_t first, uint32_t row, uint32_t *last_rows)
{
    const SKY_Torus_t *torus = &schedule->placement.torus;

    for (uint32_t i = 0; i < (uint32_t)torus->planes * torus->slots; ++i)
    {
        last_rows[i] = SKY_SCHEDULE_NONE;
    }
    for (uint32_t server = 0; server < schedule->placement.servers; ++server)
    {
        const SKY_Addr_t now = SKY_Schedule_Server(schedule, row, server);

        for (uint32_t before = first; before < row; ++before)
        {
            const SKY_Addr_t satellite = SKY_Schedule_Server(schedule, before, server);
            SKY_ASSERT(satellite.plane >= 1u);
            SKY_ASSERT(satellite.plane <= torus->planes);
            SKY_ASSERT(satellite.slot >= 1u);
            SKY_ASSERT(satellite.slot <= torus->slots);
            uint32_t *last_row = &last_rows[(satellite.plane - 1u) * torus->slots + satellite.slot - 1u];

            if (!SKY_Addr_Equal(satellite, now) && *last_row < before)
            {
                *last_row = before;
            }
        }
    }
}
