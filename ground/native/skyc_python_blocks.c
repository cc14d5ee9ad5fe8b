/**
 * @file
 * Operations on blocks for Python: requests, and outcomes. skymemory/link/operations.py has the same fields in the same order.
 */
#include "skyc_python.h"

#include <stdlib.h>
#include <string.h>

#define FIELDS       16 /* of a request */
#define FACTS_FIELDS 9  /* of a block: key, block_len, chunk_len, chunk_total, code_k, code_m, epoch, content, version */

/* Flags of a request. */
#define FLAG_WAY_MADE      1u
#define FLAG_LAZY          2u
#define FLAG_HURRIED       4u
#define FLAG_FRESH         8u
#define FLAG_CHAIN         16u
#define FLAG_CALM          32u
#define FLAG_SAMPLE        64u
#define FLAG_WANTS_HOLDERS 128u
#define FLAG_DELETION      256u

/* What a FIND tells of a block. */
typedef struct
{
    uint32_t status, block_len, chunk_len, chunk_total, epoch, content;
    uint64_t version;
    uint32_t code_k, code_m;
} told_t;

/* ---- requests ----------------------------------------------------------------------------------------------------------------- */

/* Read the facts of a block, of which the first one is field @p at of a tuple. Look at PyErr_Occurred afterwards. */
static SKY_BlockFacts_t facts_of(PyObject *tuple, Py_ssize_t at)
{
    SKY_BlockFacts_t facts = {0};

    facts.stripe.block_len   = SKYC_Py_Number32(tuple, at, "block_len");
    facts.stripe.chunk_len   = SKYC_Py_Number32(tuple, at + 1, "chunk_len");
    facts.stripe.chunk_total = SKYC_Py_Number32(tuple, at + 2, "chunk_total");
    facts.stripe.code_k      = (uint8_t)SKYC_Py_Number(PyTuple_GetItem(tuple, at + 3), UINT8_MAX, "code_k");
    facts.stripe.code_m      = (uint8_t)SKYC_Py_Number(PyTuple_GetItem(tuple, at + 4), UINT8_MAX, "code_m");
    facts.epoch              = SKYC_Py_Number32(tuple, at + 5, "epoch");
    facts.content            = SKYC_Py_Number32(tuple, at + 6, "content");
    facts.version            = SKYC_Py_Number(PyTuple_GetItem(tuple, at + 7), UINT64_MAX, "version");
    return facts;
}

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

/* Read (keys, incomplete, block_bytes_max) of a FIND: keys one behind the other, and a byte for each that is not 0 if the host has
 * learned that a share of it is missing. @return false with an exception */
static bool read_keys(PyObject *extra, SKYC_PyRun_t *run)
{
    SKY_GroundOp_t *core       = &run->op.core;
    char           *keys       = NULL;
    char           *incomplete = NULL;
    Py_ssize_t      bytes = 0, flags = 0;

    if (!SKYC_Py_IsTuple(extra, 3, "what is looked up") ||
        PyBytes_AsStringAndSize(PyTuple_GetItem(extra, 0), &keys, &bytes) != 0 ||
        PyBytes_AsStringAndSize(PyTuple_GetItem(extra, 1), &incomplete, &flags) != 0)
    {
        return false;
    }
    const Py_ssize_t count = bytes / (Py_ssize_t)SKY_KEY_BYTES;

    core->block_bytes_max = SKYC_Py_Number32(extra, 2, "block_bytes_max");
    if (count < 1 || bytes != count * (Py_ssize_t)SKY_KEY_BYTES || (flags != 0 && flags != count))
    {
        PyErr_SetString(PyExc_ValueError, "keys must be of 32 bytes each, one at least, with a mark for each or for none");
    }
    if (PyErr_Occurred() != NULL)
    {
        return false;
    }
    core->found = calloc((size_t)count, sizeof(*core->found));
    if (core->found == NULL)
    {
        (void)PyErr_NoMemory();
        return false;
    }
    core->found_count = (uint32_t)count;
    for (Py_ssize_t i = 0; i < count; ++i)
    {
        (void)memcpy(core->found[i].key, &keys[i * (Py_ssize_t)SKY_KEY_BYTES], SKY_KEY_BYTES);
        core->found[i].is_incomplete = flags != 0 && incomplete[i] != 0;
    }
    return true;
}

/* Read the satellites that hold shares of a PUT. @return false with an exception */
static bool read_holders(PyObject *extra, SKYC_PyRun_t *run)
{
    SKY_GroundOp_t *core  = &run->op.core;
    uint32_t        count = 0;

    if (extra == Py_None)
    {
        return true;
    }
    core->holders = SKYC_Py_Satellites(extra, &count);
    if (core->holders != NULL && count != run->servers)
    {
        PyErr_Format(PyExc_ValueError, "%u holders; a block has %u shares", (unsigned int)count, (unsigned int)run->servers);
    }
    return PyErr_Occurred() == NULL;
}

/* Read the satellite that is left out of a GET. @return false with an exception */
static bool read_left_out(PyObject *extra, SKY_GroundOp_t *core)
{
    if (extra == Py_None)
    {
        return true;
    }
    if (!SKYC_Py_IsTuple(extra, 2, "a satellite"))
    {
        return false;
    }
    core->left_out = (SKY_Addr_t){SKYC_Py_Number16(extra, 0, "plane"), SKYC_Py_Number16(extra, 1, "slot")};
    return PyErr_Occurred() == NULL;
}

/* Read the blocks of a TOUCH. @return false with an exception */
static bool read_chain(PyObject *extra, SKYC_PyRun_t *run)
{
    const Py_ssize_t   count  = PyTuple_Check(extra) ? PyTuple_Size(extra) : 0;
    SKY_GroundBlock_t *blocks = count > 0 ? calloc((size_t)count, sizeof(*blocks)) : NULL;

    if (blocks == NULL)
    {
        PyErr_SetString(count > 0 ? PyExc_MemoryError : PyExc_ValueError, "a chain is a tuple of blocks, one at least");
        return false;
    }
    run->op.core.chain        = blocks;
    run->op.core.chain_length = (uint32_t)count;
    for (Py_ssize_t i = 0; i < count; ++i)
    {
        PyObject *one = PyTuple_GetItem(extra, i);

        if (!SKYC_Py_IsTuple(one, FACTS_FIELDS, "a block") || !SKYC_Py_Key(PyTuple_GetItem(one, 0), blocks[i].key))
        {
            return false;
        }
        blocks[i].facts = facts_of(one, 1);
        if (PyErr_Occurred() != NULL)
        {
            return false;
        }
        if (!SKY_Stripe_Check(&blocks[i].facts.stripe))
        {
            PyErr_SetString(PyExc_ValueError, "the lengths of a block contradict each other");
            return false;
        }
    }
    return true;
}

/* Read what only operations of one kind have. @return false with an exception */
static bool read_extra(PyObject *extra, SKYC_PyRun_t *run)
{
    switch (run->op.core.kind)
    {
        case SKY_GROUND_GET:
            return read_left_out(extra, &run->op.core);
        case SKY_GROUND_PUT:
            return read_holders(extra, run);
        case SKY_GROUND_FIND:
            return read_keys(extra, run);
        case SKY_GROUND_TOUCH:
            return read_chain(extra, run);
        case SKY_GROUND_PREFETCH:
            run->op.core.to_row = (uint32_t)SKYC_Py_Number(extra, UINT32_MAX, "row");
            return PyErr_Occurred() == NULL;
        case SKY_GROUND_EXCHANGE:
            PyErr_SetString(PyExc_ValueError, "an exchange is no operation on a block");
            return false;
        default:
            return true;
    }
}

static void read_flags(uint32_t flags, SKYC_PyRun_t *run)
{
    SKY_GroundOp_t *core = &run->op.core;

    core->is_way_made     = (flags & FLAG_WAY_MADE) != 0;
    core->is_lazy         = (flags & FLAG_LAZY) != 0;
    core->is_hurried      = (flags & FLAG_HURRIED) != 0;
    core->is_fresh        = (flags & FLAG_FRESH) != 0;
    core->is_chain        = (flags & FLAG_CHAIN) != 0;
    core->is_calm         = (flags & FLAG_CALM) != 0;
    core->is_sample       = (flags & FLAG_SAMPLE) != 0;
    core->is_deletion     = (flags & FLAG_DELETION) != 0;
    run->op.wants_holders = (flags & FLAG_WANTS_HOLDERS) != 0;
    run->op.wants_served  = true;
}

/* Read a request into a run of zeros. @return false with an exception */
static bool read_request(PyObject *request, SKYC_PyRun_t *run)
{
    SKY_GroundOp_t *core = &run->op.core;

    if (!SKYC_Py_IsTuple(request, FIELDS, "a request") || !SKYC_Py_Key(PyTuple_GetItem(request, 1), core->key))
    {
        return false;
    }
    core->kind        = (SKY_GroundKind_t)SKYC_Py_Number(PyTuple_GetItem(request, 0), SKY_GROUND_PREFETCH, "operation");
    core->tenant      = SKYC_Py_Number32(request, 2, "tenant");
    core->facts       = facts_of(request, 3);
    core->known       = SKYC_Py_Number(PyTuple_GetItem(request, 11), UINT64_MAX, "known");
    core->deadline_ms = SKYC_Py_Number32(request, 12, "deadline_ms");
    read_flags(SKYC_Py_Number32(request, 14, "flags"), run);
    if (PyErr_Occurred() == NULL && core->deadline_ms == 0)
    {
        PyErr_SetString(PyExc_ValueError, "deadline_ms is 0; allowed are 1 and more");
    }
    return PyErr_Occurred() == NULL && take_data(PyTuple_GetItem(request, 13), run) &&
           read_extra(PyTuple_GetItem(request, 15), run);
}

SKYC_PyRun_t *SKYC_PyRun_New(PyObject *request, uint32_t servers)
{
    SKYC_PyRun_t *run = calloc(1, sizeof(*run));

    if (run == NULL)
    {
        (void)PyErr_NoMemory();
        return NULL;
    }
    run->servers = servers;
    if (!read_request(request, run))
    {
        SKYC_PyRun_Free(run);
        run = NULL;
    }
    return run;
}

void SKYC_PyRun_Free(SKYC_PyRun_t *run)
{
    if (run == NULL)
    {
        return;
    }
    if (run->has_data)
    {
        PyBuffer_Release(&run->data);
    }
    if (!run->op.wants_holders)
    {
        free(run->op.core.holders); /* else it is in the ground's memory */
    }
    SKYC_Op_End(&run->op);
    free(run->op.core.found);
    free((void *)(uintptr_t)run->op.core.chain); /* the ground reads it only */
    Py_XDECREF(run->user);
    free(run);
}

/* ---- outcomes ----------------------------------------------------------------------------------------------------------------- */

static told_t told_of(uint32_t status, const SKY_BlockFacts_t *facts)
{
    return (told_t){.status      = status,
                    .block_len   = facts->stripe.block_len,
                    .chunk_len   = facts->stripe.chunk_len,
                    .chunk_total = facts->stripe.chunk_total,
                    .epoch       = facts->epoch,
                    .content     = facts->content,
                    .version     = facts->version,
                    .code_k      = facts->stripe.code_k,
                    .code_m      = facts->stripe.code_m};
}

/* Return what satellites know of each key, as bytes. */
static PyObject *found_of(const SKY_GroundOp_t *core)
{
    told_t   *told  = calloc(core->found_count, sizeof(*told));
    PyObject *bytes = NULL;

    if (told == NULL)
    {
        return PyErr_NoMemory();
    }
    for (uint32_t i = 0; i < core->found_count; ++i)
    {
        told[i] = told_of(core->found[i].status, &core->found[i].facts);
    }
    bytes = PyBytes_FromStringAndSize((const char *)told, (Py_ssize_t)(core->found_count * sizeof(*told)));
    free(told);
    return bytes;
}

/* Return what only outcomes of one kind tell. */
static PyObject *rest_of(const SKYC_PyRun_t *run)
{
    const SKY_GroundOp_t  *core  = &run->op.core;
    const SKY_HostBlock_t *block = &core->block;

    switch (core->kind)
    {
        case SKY_GROUND_GET:
        case SKY_GROUND_PUT:
            return Py_BuildValue("(IIIIIIKKKHHy#)", (unsigned int)block->last_status, (unsigned int)block->chunks,
                                 (unsigned int)block->lost, (unsigned int)block->decoded, (unsigned int)block->repeats,
                                 (unsigned int)block->corrupt, (unsigned long long)block->bytes,
                                 (unsigned long long)block->duration_us, (unsigned long long)block->held_version,
                                 (unsigned short)block->failed_plane, (unsigned short)block->failed_slot,
                                 core->served != NULL ? (const char *)core->served : "",
                                 (Py_ssize_t)(block->served_count * sizeof(*core->served)));
        case SKY_GROUND_FIND:
            return Py_BuildValue("(IN)", (unsigned int)core->chain_count, found_of(core));
        case SKY_GROUND_CHECK:
            return Py_BuildValue(
                "(OIN)", core->check.told.is_other ? Py_True : Py_False, (unsigned int)core->check.silent_count,
                SKYC_Py_TupleOf(core->holders, run->op.wants_holders && core->holders != NULL ? run->servers : 0u));
        case SKY_GROUND_PURGE:
            return PyLong_FromUnsignedLongLong(core->purged);
        default:
            return PyLong_FromUnsignedLong(core->touched);
    }
}

PyObject *SKYC_PyRun_Outcome(const SKYC_PyRun_t *run)
{
    const SKY_GroundOp_t   *core  = &run->op.core;
    const SKY_BlockFacts_t *facts = &core->facts;

    const SKYC_Words_t *words = &run->op.words;

    return Py_BuildValue(
        "(II(IIIBBIIK)(KKKKI)(IIIOOIIK)N)", (unsigned int)core->status, (unsigned int)core->verdict,
        (unsigned int)facts->stripe.block_len, (unsigned int)facts->stripe.chunk_len, (unsigned int)facts->stripe.chunk_total,
        (unsigned char)facts->stripe.code_k, (unsigned char)facts->stripe.code_m, (unsigned int)facts->epoch,
        (unsigned int)facts->content, (unsigned long long)facts->version, (unsigned long long)core->submitted_us,
        (unsigned long long)core->queue_us, (unsigned long long)core->network_us, (unsigned long long)core->rest_us,
        (unsigned int)core->tries, (unsigned int)words->number, (unsigned int)words->losses, (unsigned int)words->lost,
        words->is_silent ? Py_True : Py_False, words->is_blind ? Py_True : Py_False, (unsigned int)words->late,
        (unsigned int)words->late_chunks, (unsigned long long)words->late_ms, rest_of(run));
}

/* ---- running ------------------------------------------------------------------------------------------------------------------ */

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
        runs[i]  = SKYC_PyRun_New(PyTuple_GetItem(all, i), self->servers);
        is_sound = runs[i] != NULL;
        ops[i]   = is_sound ? &runs[i]->op : NULL;
    }
    if (is_sound)
    {
        outcomes = SKYC_Py_Do(self->ground, ops, (uint32_t)count) ? outcomes_of(runs, count) : NULL;
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
