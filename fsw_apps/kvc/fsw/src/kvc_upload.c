/**
 * @file
 * Upload of a rotation schedule by command, in pieces that a message of RELAY has room for: rows are laid into images of the
 * tables KVC.Schedule1 .., and the commit gives these to table services.
 *
 * Pieces may come twice and in any order between BEGIN and COMMIT: each says where it belongs, and the CRC tells whether all are
 * there. The epoch is counted back from when BEGIN comes, on the monotonic clock: whoever sends it need not know the satellite's
 * clock, and that may be set at any time. A BEGIN that comes again does not move it.
 */
#include "kvc_upload.h"

#include <string.h>

#include "kvc_app.h"
#include "kvc_eventids.h"
#include "kvc_schedule.h"
#include "sky_lib.h"

#define KVC_US_PER_MS UINT64_C(1000)
#define KVC_MS_PER_S  UINT64_C(1000)
#define KVC_WRAP_MS   ((UINT64_C(1) << 32) * KVC_MS_PER_S) /* milliseconds after which EpochS wraps */

static struct
{
    bool                begun;
    bool                committed;
    uint32              id;
    KVC_ScheduleTable_t image[KVC_PLATFORM_SCHEDULE_SEGMENTS]; /* the head of the first image is that of all */
} KVC_Upload;

static bool KVC_IsUpload(const char *command, uint32 id)
{
    if (KVC_Upload.begun && KVC_Upload.id == id)
    {
        return true;
    }
    (void)CFE_EVS_SendEvent(KVC_UPLOAD_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: %s: no upload %lu has begun", command,
                            (unsigned long)id);
    return false;
}

bool KVC_Upload_Begin(const KVC_ScheduleBegin_Payload_t *begin)
{
    /* Subtract modulo KVC_WRAP_MS, because the clock may have begun after the epoch. */
    const uint64_t epoch_ms = SKY_LIB_NowUs() / KVC_US_PER_MS + KVC_WRAP_MS - (uint64_t)begin->AgeMs;
    uint32         k;

    if (KVC_Upload.begun && KVC_Upload.id == begin->Id)
    {
        return true; /* the piece has come once more */
    }
    if (begin->TotalRows > KVC_ROWS_MAX)
    {
        (void)CFE_EVS_SendEvent(KVC_UPLOAD_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC: SCHEDULE_BEGIN: TotalRows is %lu, allowed 0 .. %lu", (unsigned long)begin->TotalRows,
                                (unsigned long)KVC_ROWS_MAX);
        return false;
    }
    KVC_Upload.begun     = true;
    KVC_Upload.committed = false;
    KVC_Upload.id        = begin->Id;
    for (k = 0; k < KVC_SEGMENTS; ++k)
    {
        KVC_ScheduleTable_t *const image = &KVC_Upload.image[k];

        image->EpochS    = (uint32)(epoch_ms / KVC_MS_PER_S);
        image->EpochMs   = (uint16)(epoch_ms % KVC_MS_PER_S);
        image->Clock     = KVC_CLOCK_MONOTONIC;
        image->Planes    = begin->Planes;
        image->Slots     = begin->Slots;
        image->Layout    = begin->Layout;
        image->Servers   = begin->Servers;
        image->FirstRow  = k * KVC_SEGMENT_ROWS + 1u;
        image->RowCount  = KVC_Schedule_RowsOf(k, begin->TotalRows);
        image->TotalRows = begin->TotalRows;
    }
    return true;
}

bool KVC_Upload_Rows(const KVC_ScheduleRows_Payload_t *rows)
{
    const uint32 total = KVC_Upload.image[0].TotalRows;
    uint32       i;

    if (!KVC_IsUpload("SCHEDULE_ROWS", rows->Id))
    {
        return false;
    }
    if (rows->RowCount == 0 || rows->RowCount > KVC_COMMAND_ROWS || rows->FirstRow == 0 || rows->FirstRow > total ||
        rows->RowCount > total - rows->FirstRow + 1u)
    {
        (void)CFE_EVS_SendEvent(
            KVC_UPLOAD_ERR_EID, CFE_EVS_EventType_ERROR, "KVC: SCHEDULE_ROWS: %lu rows from %lu, allowed 1 .. %u within 1 .. %lu",
            (unsigned long)rows->RowCount, (unsigned long)rows->FirstRow, (unsigned)KVC_COMMAND_ROWS, (unsigned long)total);
        return false;
    }
    for (i = 0; i < rows->RowCount && !KVC_Upload.committed; ++i)
    {
        const uint32 at = rows->FirstRow - 1u + i;

        KVC_Upload.image[at / KVC_SEGMENT_ROWS].Row[at % KVC_SEGMENT_ROWS] = rows->Row[i];
    }
    return true;
}

/** Return the CRC of all rows that have come. */
static uint32 KVC_RowsCrc(void)
{
    uint32 crc = 0;
    uint32 k;

    for (k = 0; k < KVC_SEGMENTS; ++k)
    {
        crc = SKY_Crc32c(crc, KVC_Upload.image[k].Row, KVC_Upload.image[k].RowCount * sizeof(KVC_Upload.image[k].Row[0]));
    }
    return crc;
}

bool KVC_Upload_Commit(const KVC_ScheduleCommit_Payload_t *commit)
{
    CFE_Status_t status = CFE_SUCCESS;
    uint32       crc;
    uint32       k;

    if (!KVC_IsUpload("SCHEDULE_COMMIT", commit->Id))
    {
        return false;
    }
    crc = KVC_RowsCrc();
    if (crc != commit->RowsCrc)
    {
        (void)CFE_EVS_SendEvent(KVC_UPLOAD_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC: SCHEDULE_COMMIT: the CRC of the %lu rows is 0x%08lX, not 0x%08lX: some are missing",
                                (unsigned long)KVC_Upload.image[0].TotalRows, (unsigned long)crc, (unsigned long)commit->RowsCrc);
        return false;
    }
    if (KVC_Upload.committed)
    {
        return true; /* the commit has come once more */
    }
    /* Load the tables in order: the first says of them all whether there is a schedule, and the last completes it. */
    for (k = 0; k < KVC_SEGMENTS && status == CFE_SUCCESS; ++k)
    {
        KVC_Upload.image[k].RowsCrc = crc;
        if (k == 0 || KVC_Upload.image[k].RowCount > 0)
        {
            status = KVC_Schedule_Load(k, &KVC_Upload.image[k]);
        }
    }
    if (status != CFE_SUCCESS)
    {
        (void)CFE_EVS_SendEvent(KVC_UPLOAD_ERR_EID, CFE_EVS_EventType_ERROR,
                                "KVC: SCHEDULE_COMMIT: KVC.Schedule%lu cannot be loaded, status 0x%08lX", (unsigned long)k,
                                (unsigned long)(uint32)status);
        return false;
    }
    KVC_Upload.committed = true;
    KVC_Schedule_Manage();
    return true;
}
