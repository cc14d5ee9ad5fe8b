/**
 * @file
 * For Python: the sky that operations see, and who is lost.
 */
#include "skyc_python.h"

#include <stdlib.h>

#define ROW_FIELDS 3 /* of a row of the schedule: time_ms, plane, slot */

/* Get the rows of a schedule. @return memory to free, room for one at least; NULL with an exception */
static SKY_ScheduleRow_t *rows_of(PyObject *iterable, uint32_t *count)
{
    PyObject          *all   = PySequence_Tuple(iterable);
    const Py_ssize_t   size  = all != NULL ? PyTuple_Size(all) : 0;
    SKY_ScheduleRow_t *found = all != NULL ? calloc((size_t)size + 1, sizeof(*found)) : NULL;

    if (all != NULL && found == NULL)
    {
        (void)PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; found != NULL && i < size; ++i)
    {
        PyObject *row = PyTuple_GetItem(all, i);

        if (SKYC_Py_IsTuple(row, ROW_FIELDS, "a row"))
        {
            found[i].time_ms      = SKYC_Py_Number32(row, 0, "time_ms");
            found[i].centre.plane = (int32_t)PyLong_AsLong(PyTuple_GetItem(row, 1)); /* unrolled: they may be negative */
            found[i].centre.slot  = (int32_t)PyLong_AsLong(PyTuple_GetItem(row, 2));
        }
        if (PyErr_Occurred() != NULL)
        {
            free(found);
            found = NULL;
        }
    }
    *count = (uint32_t)size;
    Py_XDECREF(all);
    return found;
}

PyObject *SKYC_Py_SetSky(PyObject *object, PyObject *arguments)
{
    SKYC_PyGround_t   *self = (SKYC_PyGround_t *)(void *)object;
    SKY_GroundSky_t    sky  = {0};
    SKYC_SkyRows_t     rows = {0};
    PyObject          *given_rows, *given_seen;
    unsigned long long epoch_us, handover_us;
    int                lazy_purge, is_unscheduled, error;

    if (!PyArg_ParseTuple(arguments, "IOKKIIOIpp", &rows.layout, &given_rows, &epoch_us, &handover_us, &sky.changes, &sky.uplink,
                          &given_seen, &sky.parity, &lazy_purge, &is_unscheduled))
    {
        return NULL;
    }
    SKY_ScheduleRow_t *schedule = rows_of(given_rows, &rows.count);
    SKY_Addr_t        *seen     = schedule != NULL ? SKYC_Py_Satellites(given_seen, &sky.seen_count) : NULL;

    if (seen == NULL)
    {
        free(schedule);
        return NULL;
    }
    rows.rows          = schedule;
    rows.epoch_us      = epoch_us;
    sky.seen           = seen;
    sky.handover_us    = handover_us;
    sky.lazy_purge     = lazy_purge != 0;
    sky.is_unscheduled = is_unscheduled != 0;
    Py_BEGIN_ALLOW_THREADS;
    error = SKYC_Ground_SetSky(self->ground, &sky, &rows);
    Py_END_ALLOW_THREADS;
    free(schedule);
    free(seen);
    if (error != 0)
    {
        return SKYC_Py_Fail(error);
    }
    Py_RETURN_NONE;
}

PyObject *SKYC_Py_Reach(PyObject *object, PyObject *unused)
{
    SKYC_PyGround_t *self = (SKYC_PyGround_t *)(void *)object;
    SKYC_Reach_t     reach;
    PyObject        *lost;
    int              error;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    error = SKYC_Ground_Reach(self->ground, &reach);
    Py_END_ALLOW_THREADS;
    if (error != 0)
    {
        return SKYC_Py_Fail(error);
    }
    lost = SKYC_Py_TupleOf(reach.lost, reach.lost_count);
    free(reach.lost);
    return lost == NULL ? NULL : Py_BuildValue("(OIN)", reach.is_silent ? Py_True : Py_False, (unsigned int)reach.losses, lost);
}
