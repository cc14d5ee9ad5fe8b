/**
 * @file
 * Operations on blocks for Python, and the sky that they see.
 */
#include "skyc_python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS     15 /* of a request: skymemory/link/ground.py lists them */
#define ROW_FIELDS 3  /* of a row of the schedule: time_ms, plane, slot */

/* Flags of a request. */
#define FLAG_WAY_MADE 1u
#define FLAG_LAZY     2u
#define FLAG_HURRIED  4u

/* ---- the sky ---------------------------------------------------------------------------------------------------------------- */

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
    int                lazy_purge, error;

    if (!PyArg_ParseTuple(arguments, "IOKKIIOIp", &rows.layout, &given_rows, &epoch_us, &handover_us, &sky.changes, &sky.uplink,
                          &given_seen, &sky.parity, &lazy_purge))
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
    rows.rows       = schedule;
    rows.epoch_us   = epoch_us;
    sky.seen        = seen;
    sky.handover_us = handover_us;
    sky.lazy_purge  = lazy_purge != 0;
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

    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    SKYC_Ground_Reach(self->ground, &reach);
    Py_END_ALLOW_THREADS;
    lost = PyTuple_New((Py_ssize_t)reach.lost_count);
    for (uint32_t i = 0; lost != NULL && i < reach.lost_count; ++i)
    {
        PyObject *one = Py_BuildValue("(HH)", reach.lost[i].plane, reach.lost[i].slot);

        if (one == NULL || PyTuple_SetItem(lost, (Py_ssize_t)i, one) != 0)
        {
            Py_DECREF(lost);
            lost = NULL;
        }
    }
    free(reach.lost);
    return lost == NULL ? NULL : Py_BuildValue("(OIN)", reach.is_silent ? Py_True : Py_False, (unsigned int)reach.losses, lost);
}

/* ---- operations --------------------------------------------------------------------------------------------------------------- */

/* Take the memory of a block. @return false with an exception */
static bool take_data(PyObject *item, SKYC_PyRun_t *run)
{
    SKY_GroundOp_t *core = &run->op.core;

    if (item == Py_None)
    {
        return true;
    }
    if (PyObject_GetBuffer(item, &run->data, core->kind == SKY_GROUND_GET ? PyBUF_WRITABLE : PyBUF_SIMPLE) != 0)
    {
        return false;
    }
    run->has_data = true;
    if ((uint64_t)run->data.len != core->facts.stripe.block_len)
    {
        PyErr_Format(PyExc_ValueError, "%zd bytes of memory for a block of %u", run->data.len,
                     (unsigned int)core->facts.stripe.block_len);
        return false;
    }
    core->data = run->data.buf;
    return true;
}

/* Read a request into a run of zeros. @return false with an exception */
static bool read_request(PyObject *request, SKYC_PyRun_t *run)
{
    SKY_GroundOp_t *core  = &run->op.core;
    SKY_Stripe_t   *cut   = &core->facts.stripe;
    char           *key   = NULL;
    Py_ssize_t      bytes = 0;

    if (!SKYC_Py_IsTuple(request, FIELDS, "a request") || PyBytes_AsStringAndSize(PyTuple_GetItem(request, 1), &key, &bytes) != 0)
    {
        return false;
    }
    if (bytes != (Py_ssize_t)SKY_KEY_BYTES)
    {
        PyErr_Format(PyExc_ValueError, "key of %zd bytes; %d are allowed", bytes, (int)SKY_KEY_BYTES);
        return false;
    }
    (void)memcpy(core->key, key, SKY_KEY_BYTES);
    core->kind           = (SKY_GroundKind_t)SKYC_Py_Number(PyTuple_GetItem(request, 0), SKY_GROUND_PURGE, "operation");
    core->tenant         = SKYC_Py_Number32(request, 2, "tenant");
    cut->block_len       = SKYC_Py_Number32(request, 3, "block_len");
    cut->chunk_len       = SKYC_Py_Number32(request, 4, "chunk_len");
    cut->chunk_total     = SKYC_Py_Number32(request, 5, "chunk_total");
    cut->code_k          = (uint8_t)SKYC_Py_Number(PyTuple_GetItem(request, 6), UINT8_MAX, "code_k");
    cut->code_m          = (uint8_t)SKYC_Py_Number(PyTuple_GetItem(request, 7), UINT8_MAX, "code_m");
    core->facts.epoch    = SKYC_Py_Number32(request, 8, "epoch");
    core->facts.content  = SKYC_Py_Number32(request, 9, "content");
    core->facts.version  = SKYC_Py_Number(PyTuple_GetItem(request, 10), UINT64_MAX, "version");
    core->known          = SKYC_Py_Number(PyTuple_GetItem(request, 11), UINT64_MAX, "known");
    core->deadline_ms    = SKYC_Py_Number32(request, 12, "deadline_ms");
    const uint32_t flags = SKYC_Py_Number32(request, 14, "flags");

    core->is_way_made = (flags & FLAG_WAY_MADE) != 0;
    core->is_lazy     = (flags & FLAG_LAZY) != 0;
    core->is_hurried  = (flags & FLAG_HURRIED) != 0;
    core->found       = &run->found;
    core->found_count = 1;
    (void)memcpy(run->found.key, core->key, SKY_KEY_BYTES);
    if (PyErr_Occurred() == NULL && core->deadline_ms == 0)
    {
        PyErr_SetString(PyExc_ValueError, "deadline_ms is 0; allowed are 1 and more");
    }
    return PyErr_Occurred() == NULL && take_data(PyTuple_GetItem(request, 13), run);
}

/* Return the outcome of an operation as a tuple: skymemory/link/ground.py has the names. */
static PyObject *outcome_of(const SKY_GroundOp_t *core)
{
    const SKY_BlockFacts_t *facts = core->kind == SKY_GROUND_FIND ? &core->found->facts : &core->facts;
    const SKY_HostBlock_t  *block = &core->block;

    return Py_BuildValue(
        "(II(IIIBBIIK)IIO(IIIIIIKKKII))", (unsigned int)core->status, (unsigned int)core->verdict,
        (unsigned int)facts->stripe.block_len, (unsigned int)facts->stripe.chunk_len, (unsigned int)facts->stripe.chunk_total,
        (unsigned char)facts->stripe.code_k, (unsigned char)facts->stripe.code_m, (unsigned int)facts->epoch,
        (unsigned int)facts->content, (unsigned long long)facts->version, (unsigned int)core->tries, (unsigned int)core->gone,
        core->is_passed ? Py_True : Py_False, (unsigned int)block->last_status, (unsigned int)block->chunks,
        (unsigned int)block->lost, (unsigned int)block->decoded, (unsigned int)block->repeats, (unsigned int)block->corrupt,
        (unsigned long long)block->bytes, (unsigned long long)block->duration_us, (unsigned long long)block->held_version,
        (unsigned int)block->failed_plane, (unsigned int)block->failed_slot);
}

SKYC_PyRun_t *SKYC_PyRun_New(PyObject *request)
{
    SKYC_PyRun_t *run = calloc(1, sizeof(*run));

    if (run == NULL)
    {
        (void)PyErr_NoMemory();
    }
    else if (!read_request(request, run))
    {
        SKYC_PyRun_Free(run);
        run = NULL;
    }
    return run;
}

PyObject *SKYC_PyRun_Outcome(const SKYC_PyRun_t *run)
{
    return outcome_of(&run->op.core);
}

void SKYC_PyRun_Free(SKYC_PyRun_t *run)
{
    if (run != NULL && run->has_data)
    {
        PyBuffer_Release(&run->data);
    }
    if (run != NULL)
    {
        Py_XDECREF(run->user);
    }
    free(run);
}

static PyObject *outcomes_of(SKYC_PyRun_t *const *runs, Py_ssize_t count)
{
    PyObject *outcomes = PyList_New(count);

    for (Py_ssize_t i = 0; outcomes != NULL && i < count; ++i)
    {
        PyObject *one = SKYC_PyRun_Outcome(runs[i]);

        if (one == NULL || PyList_SetItem(outcomes, i, one) != 0)
        {
            Py_DECREF(outcomes);
            outcomes = NULL;
        }
    }
    return outcomes;
}

/* Have operations done, whose requests were read. @return false with an exception */
static bool run_all(SKYC_Ground_t *ground, SKYC_Op_t *const *ops, Py_ssize_t count)
{
    int         error = 0;
    bool        good  = false;
    SKYC_Box_t *box   = SKYC_Box_New(ground, false, &error);

    if (box != NULL)
    {
        error = SKYC_Ground_Submit(ground, box, ops, (uint32_t)count);
    }
    if (error == 0)
    {
        good = SKYC_Py_Await(ground, box, ops, (uint32_t)count);
    }
    else
    {
        (void)SKYC_Py_Fail(error);
    }
    SKYC_Box_Free(box);
    return good;
}

static void free_runs(SKYC_PyRun_t **runs, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; runs != NULL && i < count; ++i)
    {
        SKYC_PyRun_Free(runs[i]);
    }
    free(runs);
}

PyObject *SKYC_Py_Run(PyObject *object, PyObject *requests)
{
    SKYC_PyGround_t *self     = (SKYC_PyGround_t *)(void *)object;
    PyObject        *all      = PySequence_Tuple(requests); /* it holds keys and memory, whatever becomes of the list */
    const Py_ssize_t count    = all != NULL ? PyTuple_Size(all) : 0;
    SKYC_PyRun_t   **runs     = all != NULL ? calloc((size_t)count + 1, sizeof(SKYC_PyRun_t *)) : NULL;
    SKYC_Op_t      **ops      = all != NULL ? calloc((size_t)count + 1, sizeof(SKYC_Op_t *)) : NULL;
    bool             is_sound = runs != NULL && ops != NULL;
    PyObject        *outcomes = NULL;

    for (Py_ssize_t i = 0; is_sound && i < count; ++i)
    {
        runs[i]  = SKYC_PyRun_New(PyTuple_GetItem(all, i));
        is_sound = runs[i] != NULL;
        ops[i]   = is_sound ? &runs[i]->op : NULL;
    }
    if (is_sound)
    {
        outcomes = run_all(self->ground, ops, count) ? outcomes_of(runs, count) : NULL;
    }
    else if (PyErr_Occurred() == NULL)
    {
        (void)PyErr_NoMemory();
    }
    free_runs(runs, count);
    free(ops);
    Py_XDECREF(all);
    return outcomes;
}
