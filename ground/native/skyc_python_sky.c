/**
 * @file
 * For Python: the sky that operations see, who is lost, and hints of that.
 */
#include "skyc_python.h"

#include <errno.h>
#include <stdlib.h>

#define ROW_FIELDS 3 /* of a row of the schedule: time_ms, plane, slot */
#define HINT       5 /* fields of a hint */

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

/* Read a hint. @return false with an exception */
static bool read_hint(PyObject *item, SKY_GroundHint_t *hint)
{
    if (!SKYC_Py_IsTuple(item, HINT, "a hint"))
    {
        return false;
    }
    hint->satellite.plane = SKYC_Py_Number16(item, 0, "plane");
    hint->satellite.slot  = SKYC_Py_Number16(item, 1, "slot");
    hint->rtt_us          = SKYC_Py_Number32(item, 2, "round trip");
    hint->silent_us       = SKYC_Py_Number(PyTuple_GetItem(item, 3), UINT64_MAX, "time");
    hint->is_lost         = PyObject_IsTrue(PyTuple_GetItem(item, 4)) > 0;
    return PyErr_Occurred() == NULL;
}

PyObject *SKYC_Py_TakeHints(PyObject *object, PyObject *hints)
{
    SKYC_PyGround_t  *self  = (SKYC_PyGround_t *)(void *)object;
    PyObject         *all   = PySequence_Tuple(hints);
    const Py_ssize_t  count = all != NULL ? PyTuple_Size(all) : 0;
    SKY_GroundHint_t *taken = all != NULL ? calloc((size_t)count + 1, sizeof(*taken)) : NULL;
    int               error = ENOMEM;
    bool              good  = taken != NULL;

    for (Py_ssize_t i = 0; good && i < count; ++i)
    {
        good = read_hint(PyTuple_GetItem(all, i), &taken[i]);
    }
    Py_XDECREF(all);
    if (good)
    {
        Py_BEGIN_ALLOW_THREADS;
        error = SKYC_Ground_TakeHints(self->ground, taken, (uint32_t)count);
        Py_END_ALLOW_THREADS;
    }
    free(taken);
    if (PyErr_Occurred() != NULL)
    {
        return NULL;
    }
    if (error != 0)
    {
        return SKYC_Py_Fail(error);
    }
    Py_RETURN_NONE;
}

PyObject *SKYC_Py_Hints(PyObject *object, PyObject *unused)
{
    SKYC_PyGround_t  *self  = (SKYC_PyGround_t *)(void *)object;
    SKY_GroundHint_t *hints = calloc(self->satellites, sizeof(*hints));
    PyObject         *told  = PyList_New(0);
    int               error = ENOMEM;

    (void)unused;
    if (hints != NULL)
    {
        Py_BEGIN_ALLOW_THREADS;
        error = SKYC_Ground_Hints(self->ground, hints);
        Py_END_ALLOW_THREADS;
    }
    for (uint32_t i = 0; told != NULL && error == 0 && i < self->satellites; ++i)
    {
        const SKY_GroundHint_t *hint = &hints[i];
        PyObject               *one  = hint->rtt_us == 0 && hint->silent_us == 0
                                           ? NULL
                                           : Py_BuildValue("(HHIKO)", hint->satellite.plane, hint->satellite.slot, (unsigned int)hint->rtt_us,
                                                           (unsigned long long)hint->silent_us, hint->is_lost ? Py_True : Py_False);

        if (PyErr_Occurred() != NULL || (one != NULL && PyList_Append(told, one) != 0))
        {
            Py_DECREF(told);
            told = NULL;
        }
        Py_XDECREF(one);
    }
    free(hints);
    if (error != 0)
    {
        Py_XDECREF(told);
        return SKYC_Py_Fail(error);
    }
    return told;
}
