/**
 * @file
 * The tables KVC.Schedule1 ..: registration, validation, and the check that their segments make a schedule.
 *
 * Table services load one table at a time, so for a while there are segments of two schedules. Each says of its whole schedule
 * what it is for and the CRC of all rows; only segments that say the same, and whose rows have that CRC, are followed.
 */
#include "kvc_schedule.h"

#include <string.h>

#include "kvc_app.h"
#include "kvc_eventids.h"
#include "kvc_service.h"
#include "kvc_tbl_manage.h"

#define KVC_TORUS_MAX    65535u
#define KVC_EPOCH_MS_MAX 999u
#define KVC_CELL_MAX     SKY_PLACEMENT_CELL_MAX
#define KVC_LAYOUT_LEAST ((uint32)SKY_LAYOUT_ROTATION)
#define KVC_LAYOUT_MOST  ((uint32)SKY_LAYOUT_ALL_PLANES)
#define KVC_FIRST_ROW(k) ((k)*KVC_SEGMENT_ROWS + 1u)
#define KVC_TABLE_BYTES  16384u

CompileTimeAssert(KVC_PLATFORM_SCHEDULE_SEGMENTS >= 1 && KVC_PLATFORM_SCHEDULE_SEGMENTS <= 4, KvcHasNamesForTheSegments);
CompileTimeAssert(sizeof(KVC_ScheduleTable_t) == 40u + KVC_SEGMENT_ROWS * 12u, KvcScheduleHasNoPadding);
CompileTimeAssert(sizeof(KVC_ScheduleTable_t) <= KVC_TABLE_BYTES, KvcScheduleFitsATable);

static const struct
{
    const char *name, *file;
} KVC_Segments[] = {
    {KVC_SCHEDULE1_TABLE_NAME, KVC_SCHEDULE1_TABLE_FILE},
    {KVC_SCHEDULE2_TABLE_NAME, KVC_SCHEDULE2_TABLE_FILE},
    {KVC_SCHEDULE3_TABLE_NAME, KVC_SCHEDULE3_TABLE_FILE},
    {KVC_SCHEDULE4_TABLE_NAME, KVC_SCHEDULE4_TABLE_FILE},
};

uint32 KVC_Schedule_RowsOf(uint32 segment, uint32 total_rows)
{
    const uint32 before = segment * KVC_SEGMENT_ROWS;
    const uint32 left   = total_rows > before ? total_rows - before : 0;

    return left < KVC_SEGMENT_ROWS ? left : KVC_SEGMENT_ROWS;
}

/* ---- validation ---------------------------------------------------------------------------------------------------- */

static bool KVC_InRange(const char *field, uint32 value, uint32 least, uint32 most)
{
    return KVC_Tbl_InRange("KVC.Schedule", field, value, least, most);
}

static uint32 KVC_Distance(int32 a, int32 b)
{
    return a > b ? (uint32)a - (uint32)b : (uint32)b - (uint32)a;
}

static bool KVC_IsCell(const KVC_ScheduleRow_t *row)
{
    return row->Plane >= -KVC_CELL_MAX && row->Plane <= KVC_CELL_MAX && row->Slot >= -KVC_CELL_MAX && row->Slot <= KVC_CELL_MAX;
}

/** Return true if a row can follow the one before it (NULL: it is the first); else an event says why not. */
static bool KVC_RowFollows(const KVC_ScheduleTable_t *table, const KVC_ScheduleRow_t *before, const KVC_ScheduleRow_t *row,
                           uint32 number)
{
    const uint32 least_ms = before == NULL ? 0 : before->TimeMs + 1u; /* no time can follow UINT32_MAX */

    if (row->TimeMs < least_ms || (before != NULL && least_ms == 0) || (before == NULL && row->TimeMs != 0))
    {
        (void)CFE_EVS_SendEvent(KVC_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC.Schedule: TimeMs of row %lu is %lu, allowed %s%lu", (unsigned long)number,
                                (unsigned long)row->TimeMs, before == NULL ? "" : "more than ",
                                before == NULL ? 0ul : (unsigned long)before->TimeMs);
        return false;
    }
    if (!KVC_IsCell(row) || (before != NULL && (KVC_Distance(row->Plane, before->Plane) > table->Planes / 2u ||
                                                KVC_Distance(row->Slot, before->Slot) > table->Slots / 2u)))
    {
        (void)CFE_EVS_SendEvent(KVC_TBL_VALUE_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC.Schedule: centre of row %lu is (%ld, %ld), allowed are steps of %lu planes, %lu slots",
                                (unsigned long)number, (long)row->Plane, (long)row->Slot, (unsigned long)(table->Planes / 2u),
                                (unsigned long)(table->Slots / 2u));
        return false;
    }
    return true;
}

/** Return true if the schedule is for this constellation, or that is not known. */
static bool KVC_IsForUs(const KVC_ScheduleTable_t *table)
{
    SKY_Torus_t torus;

    if (!KVC_Service_Torus(&torus))
    {
        return true;
    }
    return KVC_InRange("Planes", table->Planes, torus.planes, torus.planes) &&
           KVC_InRange("Slots", table->Slots, torus.slots, torus.slots);
}

static bool KVC_HeadIsGood(const KVC_ScheduleTable_t *table)
{
    const uint32 segment = (table->FirstRow - 1u) / KVC_SEGMENT_ROWS;
    const uint32 rows    = KVC_Schedule_RowsOf(segment, table->TotalRows);
    uint32       most;

    if (!KVC_InRange("EpochMs", table->EpochMs, 0, KVC_EPOCH_MS_MAX) ||
        !KVC_InRange("Clock", table->Clock, KVC_CLOCK_SATELLITE, KVC_CLOCK_MONOTONIC) ||
        !KVC_InRange("Planes", table->Planes, 1, KVC_TORUS_MAX) || !KVC_InRange("Slots", table->Slots, 1, KVC_TORUS_MAX) ||
        !KVC_IsForUs(table) || !KVC_InRange("Layout", table->Layout, KVC_LAYOUT_LEAST, KVC_LAYOUT_MOST) ||
        !KVC_InRange("TotalRows", table->TotalRows, 0, KVC_ROWS_MAX) ||
        !KVC_InRange("FirstRow", table->FirstRow, 1, table->TotalRows))
    {
        return false;
    }
    most = table->Planes * table->Slots; /* planes and slots are at most 65,535 each */
    most = most < SKY_PLACEMENT_SERVERS_MAX ? most : SKY_PLACEMENT_SERVERS_MAX;
    return KVC_InRange("Servers", table->Servers, 1, most) &&
           KVC_InRange("FirstRow", table->FirstRow, KVC_FIRST_ROW(segment), KVC_FIRST_ROW(segment)) &&
           KVC_InRange("RowCount", table->RowCount, rows, rows);
}

int32 KVC_Schedule_Validate(void *data)
{
    const KVC_ScheduleTable_t *table = data;
    const KVC_ScheduleRow_t   *before;
    uint32                     i;

    if (table->TotalRows == 0)
    {
        return KVC_InRange("RowCount", table->RowCount, 0, 0) ? CFE_SUCCESS : CFE_STATUS_VALIDATION_FAILURE;
    }
    if (!KVC_HeadIsGood(table))
    {
        return CFE_STATUS_VALIDATION_FAILURE;
    }
    before = NULL; /* the first row of a later segment is looked at when the segment before is there */
    for (i = table->FirstRow == 1 ? 0 : 1; i < table->RowCount; ++i)
    {
        before = i == 0 ? NULL : &table->Row[i - 1];
        if (!KVC_RowFollows(table, before, &table->Row[i], table->FirstRow + i))
        {
            return CFE_STATUS_VALIDATION_FAILURE;
        }
    }
    return CFE_SUCCESS;
}

/* ---- taking over --------------------------------------------------------------------------------------------------- */

/** Return true if two segments belong to the same schedule, the second as number @p k (from 0). */
static bool KVC_Agree(const KVC_ScheduleTable_t *first, const KVC_ScheduleTable_t *table, uint32 k)
{
    return table->FirstRow == KVC_FIRST_ROW(k) && table->EpochS == first->EpochS && table->EpochMs == first->EpochMs &&
           table->Clock == first->Clock && table->Planes == first->Planes && table->Slots == first->Slots &&
           table->Layout == first->Layout && table->Servers == first->Servers && table->TotalRows == first->TotalRows &&
           table->RowsCrc == first->RowsCrc;
}

/** Check that all segments are whole and of one schedule. @return true if it can be followed; else an event says why not */
static bool KVC_IsWhole(const KVC_ScheduleTable_t *const *segment, uint32 segments)
{
    const KVC_ScheduleTable_t *const first = segment[0];
    uint32                           crc   = 0;
    uint32                           k;

    for (k = 0; k < segments; ++k)
    {
        if (!KVC_Agree(first, segment[k], k))
        {
            (void)CFE_EVS_SendEvent(KVC_SEGMENT_INF_EID, CFE_EVS_EventType_INFORMATION,
                                    "KVC: a schedule of %lu rows waits for its segment KVC.%s", (unsigned long)first->TotalRows,
                                    KVC_Segments[k].name);
            return false;
        }
        crc = SKY_Crc32c(crc, segment[k]->Row, segment[k]->RowCount * sizeof(segment[k]->Row[0]));
    }
    if (crc != first->RowsCrc)
    {
        (void)CFE_EVS_SendEvent(KVC_SCHEDULE_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC: schedule not followed: the CRC of its rows is 0x%08lX, RowsCrc says 0x%08lX",
                                (unsigned long)crc, (unsigned long)first->RowsCrc);
        return false;
    }
    for (k = 1; k < segments; ++k)
    {
        if (!KVC_RowFollows(first, &segment[k - 1]->Row[KVC_SEGMENT_ROWS - 1], &segment[k]->Row[0], segment[k]->FirstRow))
        {
            return false;
        }
    }
    return true;
}

static void KVC_TakeOver(const KVC_ScheduleTable_t *const *segment)
{
    const KVC_ScheduleTable_t *const first    = segment[0];
    const uint32                     segments = (first->TotalRows + KVC_SEGMENT_ROWS - 1u) / KVC_SEGMENT_ROWS;
    const KVC_ScheduleRow_t         *last;

    if (segments == 0)
    {
        if (KVC_Service_Follow(segment, 0))
        {
            (void)CFE_EVS_SendEvent(KVC_SCHEDULE_INF_EID, CFE_EVS_EventType_INFORMATION, "KVC: no schedule is followed any more");
        }
        return;
    }
    if (!KVC_IsWhole(segment, segments))
    {
        return;
    }
    if (!KVC_Service_Follow(segment, segments))
    {
        (void)CFE_EVS_SendEvent(KVC_SCHEDULE_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: the schedule cannot be followed");
        return;
    }
    last = &segment[segments - 1u]->Row[segment[segments - 1u]->RowCount - 1u];
    (void)CFE_EVS_SendEvent(KVC_SCHEDULE_INF_EID, CFE_EVS_EventType_INFORMATION,
                            "KVC: schedule of %lu rows, %lu ms, centre (%ld, %ld) to (%ld, %ld)", (unsigned long)first->TotalRows,
                            (unsigned long)last->TimeMs, (long)first->Row[0].Plane, (long)first->Row[0].Slot, (long)last->Plane,
                            (long)last->Slot);
}

/** Look at the tables, if one is new. */
static CFE_Status_t KVC_Schedule_Apply(void)
{
    const KVC_ScheduleTable_t *segment[KVC_PLATFORM_SCHEDULE_SEGMENTS];
    CFE_Status_t               status = CFE_SUCCESS;
    bool                       is_new = false;
    uint32                     taken;
    uint32                     k;

    for (taken = 0; taken < KVC_SEGMENTS; ++taken)
    {
        void *address = NULL;

        status = CFE_TBL_GetAddress(&address, KVC_Data.ScheduleHandle[taken]);
        if (status != CFE_SUCCESS && status != CFE_TBL_INFO_UPDATED)
        {
            (void)CFE_EVS_SendEvent(KVC_TBL_ERR_EID, CFE_EVS_EventType_ERROR, "KVC.%s cannot be read, status 0x%08lX",
                                    KVC_Segments[taken].name, (unsigned long)(uint32)status);
            break;
        }
        is_new         = is_new || status == CFE_TBL_INFO_UPDATED;
        segment[taken] = address;
        status         = CFE_SUCCESS;
    }
    if (taken == KVC_SEGMENTS && is_new)
    {
        KVC_TakeOver(segment);
    }
    for (k = 0; k < taken; ++k)
    {
        (void)CFE_TBL_ReleaseAddress(KVC_Data.ScheduleHandle[k]);
    }
    return status;
}

CFE_Status_t KVC_Schedule_Init(void)
{
    CFE_Status_t status = CFE_SUCCESS;
    uint32       k;

    for (k = 0; k < KVC_SEGMENTS && status == CFE_SUCCESS; ++k)
    {
        status = CFE_TBL_Register(&KVC_Data.ScheduleHandle[k], KVC_Segments[k].name, sizeof(KVC_ScheduleTable_t),
                                  CFE_TBL_OPT_DEFAULT, KVC_Schedule_Validate);
        if (status == CFE_SUCCESS)
        {
            status = CFE_TBL_Load(KVC_Data.ScheduleHandle[k], CFE_TBL_SRC_FILE, KVC_Segments[k].file);
        }
        if (status != CFE_SUCCESS)
        {
            (void)CFE_EVS_SendEvent(KVC_TBL_ERR_EID, CFE_EVS_EventType_ERROR, "KVC.%s cannot be loaded from %s, status 0x%08lX",
                                    KVC_Segments[k].name, KVC_Segments[k].file, (unsigned long)(uint32)status);
        }
    }
    return status == CFE_SUCCESS ? KVC_Schedule_Apply() : status;
}

CFE_Status_t KVC_Schedule_Load(uint32 segment, const KVC_ScheduleTable_t *image)
{
    return CFE_TBL_Load(KVC_Data.ScheduleHandle[segment], CFE_TBL_SRC_ADDRESS, image);
}

void KVC_Schedule_Manage(void)
{
    uint32 k;

    for (k = 0; k < KVC_SEGMENTS; ++k)
    {
        (void)CFE_TBL_Manage(KVC_Data.ScheduleHandle[k]);
    }
    (void)KVC_Schedule_Apply();
}
