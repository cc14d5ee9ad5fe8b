/**
 * @file
 * The ground as an extension of Python: `skymemory._native.ground`, under the limited API of 3.11. skymemory/link/ground.py wraps it.
 *
 * Calls that wait release the interpreter, and look at signals every 100 ms.
 */
#include "skyc_python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_US      100000u /* between two looks at signals */
#define US_A_S       1000000.0
#define FIELDS       15    /* of a request */
#define SATELLITE    2     /* fields of a satellite: plane, slot */
#define ANSWER_BYTES 1024u /* except for a chunk, no payload of the ICD is longer */

/* Room for one request and its answer. */
typedef struct
{
    SKY_HostQuestion_t question;
    uint8_t            answer[ANSWER_BYTES];
} room_t;

PyObject *SKYC_Py_Fail(int error)
{
    if (error == SKYC_NO_THREAD)
    {
        PyErr_SetString(PyExc_RuntimeError, "the system gives no thread");
        return NULL;
    }
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

PyObject *SKYC_Py_NoneOr(int error)
{
    if (error != 0)
    {
        return SKYC_Py_Fail(error);
    }
    Py_RETURN_NONE;
}

bool SKYC_Py_IsOurs(const SKYC_Ground_t *ground)
{
    const bool is_child = SKYC_Ground_IsChild(ground);

    if (is_child)
    {
        (void)SKYC_Py_Fail(ECHILD);
    }
    return !is_child;
}

/* ---- numbers from Python -------------------------------------------------------------------------------------------------- */

uint64_t SKYC_Py_Number(PyObject *item, uint64_t most, const char *name)
{
    const unsigned long long value = item == NULL ? 0 : PyLong_AsUnsignedLongLong(item);

    if (PyErr_Occurred() != NULL)
    {
        return 0;
    }
    if (value > most)
    {
        PyErr_Format(PyExc_OverflowError, "%s is %llu; allowed are 0 to %llu", name, value, (unsigned long long)most);
        return 0;
    }
    return value;
}

uint16_t SKYC_Py_Number16(PyObject *tuple, Py_ssize_t at, const char *name)
{
    return (uint16_t)SKYC_Py_Number(PyTuple_GetItem(tuple, at), UINT16_MAX, name);
}

uint32_t SKYC_Py_Number32(PyObject *tuple, Py_ssize_t at, const char *name)
{
    return (uint32_t)SKYC_Py_Number(PyTuple_GetItem(tuple, at), UINT32_MAX, name);
}

bool SKYC_Py_IsTuple(PyObject *item, Py_ssize_t count, const char *name)
{
    if (item != NULL && PyTuple_Check(item) && PyTuple_Size(item) == count)
    {
        return true;
    }
    PyErr_Format(PyExc_TypeError, "%s must be a tuple of %zd", name, count);
    return false;
}

bool SKYC_Py_Key(PyObject *item, uint8_t key[SKY_KEY_BYTES])
{
    char      *from  = NULL;
    Py_ssize_t bytes = 0;

    if (PyBytes_AsStringAndSize(item, &from, &bytes) != 0)
    {
        return false;
    }
    if (bytes != (Py_ssize_t)SKY_KEY_BYTES)
    {
        PyErr_Format(PyExc_ValueError, "key of %zd bytes; %d are allowed", bytes, (int)SKY_KEY_BYTES);
        return false;
    }
    (void)memcpy(key, from, SKY_KEY_BYTES);
    return true;
}

PyObject *SKYC_Py_TupleOf(const SKY_Addr_t *satellites, uint32_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);

    for (uint32_t i = 0; tuple != NULL && i < count; ++i)
    {
        PyObject *one = Py_BuildValue("(HH)", satellites[i].plane, satellites[i].slot);

        if (one == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, one) != 0)
        {
            Py_DECREF(tuple);
            tuple = NULL;
        }
    }
    return tuple;
}

SKY_Addr_t *SKYC_Py_Satellites(PyObject *iterable, uint32_t *count)
{
    PyObject        *all   = PySequence_Tuple(iterable);
    const Py_ssize_t size  = all != NULL ? PyTuple_Size(all) : 0;
    SKY_Addr_t      *found = all != NULL ? calloc((size_t)size + 1, sizeof(*found)) : NULL;

    if (all != NULL && found == NULL)
    {
        (void)PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; found != NULL && i < size; ++i)
    {
        PyObject *one = PyTuple_GetItem(all, i);

        if (SKYC_Py_IsTuple(one, SATELLITE, "a satellite"))
        {
            found[i] = (SKY_Addr_t){SKYC_Py_Number16(one, 0, "plane"), SKYC_Py_Number16(one, 1, "slot")};
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

/* ---- begin and end -------------------------------------------------------------------------------------------------------- */

/* An object is made together with its ground, so that no method ever finds none. */
static PyObject *ground_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    static char *const keywords[] = {
        "planes",        "slots",        "seam_cut", "servers",  "chunk_bytes", "endpoints", "patience_us", "keys", "bind_ipv4",
        "receive_bytes", "packet_bytes", "burst",    "asks_all", "operations",  "queued",    "times_us",    NULL};
    SKYC_GroundConfig_t config         = {0};
    SKYC_Config_t       client         = {0};
    int                 seam_cut       = 0;
    const char         *endpoints      = NULL;
    const char         *credential     = NULL;
    const char         *pair_keys      = NULL;
    Py_ssize_t          endpoint_bytes = 0, credential_bytes = 0, pair_bytes = 0;
    unsigned char       suite    = 0;
    int                 asks_all = 0;
    unsigned long long  lost_us = 0, doubt_us = 0, pause_first_us = 0, pause_max_us = 0;
    int                 error = 0;
    union
    {
        char *const *in;
        char       **out;
    } cast = {keywords}; /* the interface is older than const */

    if (!PyArg_ParseTupleAndKeywords(arguments, names, "HHpIIy#(IIII)(z#z#b)IIIIpII(KKKK)", cast.out, &config.planes,
                                     &config.slots, &seam_cut, &config.servers, &config.chunk_bytes, &endpoints, &endpoint_bytes,
                                     &client.patience.first_us, &client.patience.min_us, &client.patience.max_us,
                                     &client.patience.silence_us, &credential, &credential_bytes, &pair_keys, &pair_bytes, &suite,
                                     &client.bind_ipv4, &client.receive_bytes, &client.packet_bytes, &client.burst, &asks_all,
                                     &config.operations, &config.queued, &lost_us, &doubt_us, &pause_first_us, &pause_max_us))
    {
        return NULL;
    }
    const size_t satellites = (size_t)config.planes * config.slots;

    if ((size_t)endpoint_bytes != satellites * sizeof(uint64_t) ||
        (credential != NULL && (credential_bytes != SKY_CREDENTIAL_BYTES || pair_keys == NULL ||
                                (size_t)pair_bytes != satellites * SKY_CRYPTO_KEY_BYTES)))
    {
        PyErr_SetString(PyExc_ValueError, "endpoints and keys must be those of all satellites");
        return NULL;
    }
    uint64_t *aligned = malloc(satellites * sizeof(*aligned) + 1);

    if (aligned == NULL)
    {
        return PyErr_NoMemory();
    }
    (void)memcpy(aligned, endpoints, (size_t)endpoint_bytes);
    config.seam_cut   = seam_cut != 0;
    config.reach      = (SKY_ReachCfg_t){lost_us, doubt_us, pause_first_us, pause_max_us};
    client.asks_all   = asks_all != 0;
    config.endpoints  = aligned;
    client.credential = (const uint8_t *)credential;
    client.pair_keys  = (const uint8_t *)pair_keys;
    client.planes     = config.planes;
    client.slots      = config.slots;
    client.suite      = suite;

    SKYC_Ground_t *ground = SKYC_Ground_Open(&config, &client, &error);

    free(aligned);
    if (ground == NULL)
    {
        return SKYC_Py_Fail(error);
    }
    PyObject *object = PyType_GenericAlloc(type, 0);

    if (object == NULL)
    {
        SKYC_Ground_Free(ground);
        return NULL;
    }
    ((SKYC_PyGround_t *)(void *)object)->ground     = ground;
    ((SKYC_PyGround_t *)(void *)object)->servers    = config.servers;
    ((SKYC_PyGround_t *)(void *)object)->satellites = (uint32_t)satellites;
    return object;
}

static PyObject *ground_close(PyObject *object, PyObject *unused)
{
    SKYC_PyGround_t *self = (SKYC_PyGround_t *)(void *)object;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    SKYC_Ground_Close(self->ground);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static void ground_dealloc(PyObject *object)
{
    SKYC_PyGround_t *self = (SKYC_PyGround_t *)(void *)object;
    PyTypeObject    *type = Py_TYPE(object);

    Py_BEGIN_ALLOW_THREADS;
    SKYC_Ground_Free(self->ground);
    Py_END_ALLOW_THREADS;
    PyObject_Free(object);
    Py_DECREF(type);
}

/* ---- exchange ------------------------------------------------------------------------------------------------------------- */

/* Write a request into a question. Its payload stays the tuple's. @return false with an exception */
static bool write_request(PyObject *request, room_t *room)
{
    SKY_HostQuestion_t *question = &room->question;
    Py_ssize_t          bytes    = 0;
    char               *from     = NULL;

    if (!SKYC_Py_IsTuple(request, FIELDS, "a request"))
    {
        return false;
    }
    question->place         = (SKY_HostPlace_t){.plane       = SKYC_Py_Number16(request, 0, "plane"),
                                                .slot        = SKYC_Py_Number16(request, 1, "slot"),
                                                .entry_plane = SKYC_Py_Number16(request, 2, "plane of the entry satellite"),
                                                .entry_slot  = SKYC_Py_Number16(request, 3, "slot of the entry satellite")};
    question->apid          = SKYC_Py_Number16(request, 4, "APID");
    question->op            = (uint8_t)SKYC_Py_Number(PyTuple_GetItem(request, 5), UINT8_MAX, "operation");
    question->flags         = (uint8_t)SKYC_Py_Number(PyTuple_GetItem(request, 6), UINT8_MAX, "flags");
    question->tenant        = SKYC_Py_Number32(request, 7, "tenant");
    question->epoch         = SKYC_Py_Number32(request, 8, "epoch");
    question->content       = SKYC_Py_Number32(request, 9, "content");
    question->block_version = SKYC_Py_Number(PyTuple_GetItem(request, 10), UINT64_MAX, "version");
    question->chunk_id      = SKYC_Py_Number32(request, 12, "chunk");
    question->credit        = SKYC_Py_Number16(request, 13, "credit");
    question->room_bytes    = ANSWER_BYTES;
    question->room          = room->answer;
    if (PyErr_Occurred() != NULL || !SKYC_Py_Key(PyTuple_GetItem(request, 11), question->key) ||
        PyBytes_AsStringAndSize(PyTuple_GetItem(request, 14), &from, &bytes) != 0)
    {
        return false;
    }
    if (bytes > (Py_ssize_t)SKY_LIMIT_PACKET_BYTES)
    {
        PyErr_Format(PyExc_ValueError, "payload of %zd bytes; %d are allowed", bytes, (int)SKY_LIMIT_PACKET_BYTES);
        return false;
    }
    question->payload       = (const uint8_t *)from;
    question->payload_bytes = (uint32_t)bytes;
    return true;
}

/* Return an answer as (packet, payload, seconds, sendings), or None. */
static PyObject *answer_of(const room_t *room)
{
    const SKY_HostQuestion_t *question = &room->question;

    if (question->status != SKY_STATUS_DONE)
    {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(y#y#dI)", (const char *)&question->answer, (Py_ssize_t)sizeof(question->answer),
                         (const char *)room->answer,
                         (Py_ssize_t)(question->answer.payload != NULL ? question->answer.length : 0u),
                         (double)question->rtt_us / US_A_S, (unsigned int)question->sent);
}

static PyObject *answers_of(const room_t *rooms, Py_ssize_t count)
{
    PyObject *answers = PyList_New(count);

    for (Py_ssize_t i = 0; answers != NULL && i < count; ++i)
    {
        PyObject *one = answer_of(&rooms[i]);

        if (one == NULL || PyList_SetItem(answers, i, one) != 0)
        {
            Py_DECREF(answers);
            answers = NULL;
        }
    }
    return answers;
}

bool SKYC_Py_Do(SKYC_Ground_t *ground, SKYC_Op_t *const *ops, uint32_t count)
{
    int         error  = 0;
    uint32_t    ended  = 0;
    bool        raised = false;
    SKYC_Box_t *box    = SKYC_Box_New(ground, false, &error);

    if (box != NULL)
    {
        Py_BEGIN_ALLOW_THREADS;
        error = SKYC_Ground_Do(ground, box, ops, count, LOOK_US, &ended);
        Py_END_ALLOW_THREADS;
    }
    while (error == 0 && ended < count && !SKYC_Ground_IsChild(ground)) /* a handler of a signal may have forked */
    {
        if (!raised && PyErr_CheckSignals() != 0)
        {
            raised = true;
            SKYC_Ground_Cancel(ground, ops, count);
        }
        Py_BEGIN_ALLOW_THREADS;
        ended = SKYC_Box_Await(box, count, LOOK_US);
        Py_END_ALLOW_THREADS;
    }
    while (box != NULL && SKYC_Box_Take(box) != NULL)
    {
        /* callers look at all of them */
    }
    SKYC_Box_Free(box);
    if (error != 0)
    {
        (void)SKYC_Py_Fail(error);
    }
    return error == 0 && !raised && SKYC_Py_IsOurs(ground);
}

/* Return true if a question has waited behind those of other calls until its deadline. Of so many that not all can be on their way, some wait
 * behind others of the same call. */
static bool is_crowded_out(const SKYC_Op_t *op)
{
    bool is = false;

    for (uint32_t i = 0; i < op->core.request_count && op->core.request_count <= SKYC_GROUND_QUESTIONS; ++i)
    {
        is = is || (op->core.requests[i].status == SKY_STATUS_EXPIRED && op->core.requests[i].request_id == 0);
    }
    return is;
}

static PyObject *ground_exchange(PyObject *object, PyObject *arguments)
{
    SKYC_PyGround_t *self    = (SKYC_PyGround_t *)(void *)object;
    PyObject        *given   = NULL;
    PyObject        *answers = NULL;
    SKYC_Op_t       *op      = calloc(1, sizeof(*op));
    uint32_t         deadline_ms;

    if (op == NULL || !PyArg_ParseTuple(arguments, "OI", &given, &deadline_ms))
    {
        free(op);
        return op == NULL ? PyErr_NoMemory() : NULL;
    }
    PyObject           *requests  = PySequence_Tuple(given); /* it holds the payloads, whatever becomes of the list */
    const Py_ssize_t    count     = requests != NULL ? PyTuple_Size(requests) : 0;
    room_t             *rooms     = calloc((size_t)count + 1, sizeof(*rooms));
    SKY_HostQuestion_t *questions = calloc((size_t)count + 1, sizeof(*questions));
    bool                is_sound  = requests != NULL && rooms != NULL && questions != NULL;

    if (requests != NULL && !is_sound)
    {
        (void)PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; is_sound && i < count; ++i)
    {
        is_sound     = write_request(PyTuple_GetItem(requests, i), &rooms[i]);
        questions[i] = rooms[i].question;
    }
    op->core.kind          = SKY_GROUND_EXCHANGE;
    op->core.requests      = questions;
    op->core.request_count = (uint32_t)count;
    op->core.deadline_ms   = deadline_ms;
    if (is_sound && SKYC_Py_Do(self->ground, &op, 1))
    {
        if (op->core.status == SKY_STATUS_REFUSED)
        {
            PyErr_SetString(PyExc_ValueError, "a satellite is none of the constellation");
        }
        else if (op->core.status == SKY_STATUS_CANCELLED && SKYC_Ground_Error(self->ground) == EBADF)
        {
            (void)SKYC_Py_Fail(EBADF);
        }
        else if (is_crowded_out(op))
        {
            (void)SKYC_Py_Fail(ETIMEDOUT);
        }
        else
        {
            for (Py_ssize_t i = 0; i < count; ++i)
            {
                rooms[i].question = questions[i];
            }
            answers = answers_of(rooms, count);
        }
    }
    Py_XDECREF(requests);
    free(questions);
    free(rooms);
    free(op);
    return answers;
}

/* ---- what the host knows ---------------------------------------------------------------------------------------------------- */

typedef int (*Wait_t)(SKYC_Ground_t *ground, const SKY_Addr_t *satellites, uint32_t count, uint64_t *us);

static PyObject *wait_us(PyObject *object, PyObject *iterable, Wait_t function)
{
    SKYC_PyGround_t *self       = (SKYC_PyGround_t *)(void *)object;
    uint32_t         count      = 0;
    SKY_Addr_t      *satellites = SKYC_Py_Satellites(iterable, &count);
    uint64_t         us;
    int              error;

    if (satellites == NULL)
    {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    error = function(self->ground, satellites, count, &us);
    Py_END_ALLOW_THREADS;
    free(satellites);
    return error != 0 ? SKYC_Py_Fail(error) : PyLong_FromUnsignedLongLong(us);
}

static PyObject *ground_patience_us(PyObject *object, PyObject *satellites)
{
    return wait_us(object, satellites, SKYC_Ground_PatienceUs);
}

static PyObject *ground_hurry_us(PyObject *object, PyObject *satellites)
{
    return wait_us(object, satellites, SKYC_Ground_HurryUs);
}

static PyObject *ground_expect(PyObject *object, PyObject *arguments)
{
    SKYC_PyGround_t *self = (SKYC_PyGround_t *)(void *)object;
    SKY_Addr_t       satellite;
    uint32_t         rtt_us;
    int              error;

    if (!PyArg_ParseTuple(arguments, "HHI", &satellite.plane, &satellite.slot, &rtt_us))
    {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    error = SKYC_Ground_Expect(self->ground, satellite, rtt_us);
    Py_END_ALLOW_THREADS;
    return SKYC_Py_NoneOr(error);
}

static PyObject *ground_set_number(PyObject *object, PyObject *argument)
{
    SKYC_PyGround_t *self  = (SKYC_PyGround_t *)(void *)object;
    const uint16_t   taken = (uint16_t)SKYC_Py_Number(argument, UINT16_MAX, "host number");
    int              error;

    if (PyErr_Occurred() != NULL)
    {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    error = SKYC_Ground_SetNumber(self->ground, taken);
    Py_END_ALLOW_THREADS;
    return SKYC_Py_NoneOr(error);
}

static PyObject *ground_counters(PyObject *object, PyObject *unused)
{
    SKYC_PyGround_t *self = (SKYC_PyGround_t *)(void *)object;
    SKYC_Counters_t  counters;
    int              error;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    error = SKYC_Ground_Counters(self->ground, &counters);
    Py_END_ALLOW_THREADS;
    return error != 0 ? SKYC_Py_Fail(error) : PyBytes_FromStringAndSize((const char *)&counters, (Py_ssize_t)sizeof(counters));
}

/* ---- module ----------------------------------------------------------------------------------------------------------------- */

static PyMethodDef ground_methods[] = {
    {"close", ground_close, METH_NOARGS, "End all that runs, and close the socket; safe to call twice."},
    {"exchange", ground_exchange, METH_VARARGS,
     "exchange(requests, deadline_ms): ask satellites, and return for each request (packet, payload, seconds, sendings), or "
     "None."},
    {"patience_us", ground_patience_us, METH_O, "Return the time after which these satellites count as silent."},
    {"hurry_us", ground_hurry_us, METH_O, "Return the time to wait for dispensable answers of these satellites."},
    {"expect", ground_expect, METH_VARARGS, "expect(plane, slot, rtt_us): note a round trip that another host measured."},
    {"set_number", ground_set_number, METH_O, "Take another host number; 0 draws one by chance."},
    {"counters", ground_counters, METH_NOARGS, "Return SKYC_Counters_t."},
    {"set_sky", SKYC_Py_SetSky, METH_VARARGS,
     "set_sky(layout, rows, epoch_us, handover_us, changes, uplink, seen, parity, lazy_purge, is_unscheduled): see "
     "SKY_GroundSky_t."},
    {"run", SKYC_Py_Run, METH_O, "Have operations on blocks done, all at once, and return the outcome of each."},
    {"reach", SKYC_Py_Reach, METH_NOARGS, "Return (is_silent, losses, lost satellites)."},
    {"take_hints", SKYC_Py_TakeHints, METH_O,
     "Take in a list of (plane, slot, rtt_us, silent_us, is_lost): see SKY_GroundHint_t."},
    {"hints", SKYC_Py_Hints, METH_NOARGS, "Return what is known of satellites, as take_hints takes it."},
    {"listen", SKYC_Py_Listen, METH_NOARGS, "Keep telemetry from now on."},
    {"next_telemetry", SKYC_Py_NextTelemetry, METH_O,
     "next_telemetry(timeout_us): return the oldest message as (plane, slot, message), or None."},
    {NULL, NULL, 0, NULL},
};

/* Python's slots hold functions as void *, which POSIX allows. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
static PyType_Slot     ground_slots[] = {
        {Py_tp_doc, "A ground host: one socket, one association with each satellite, one thread (skyc_ground.h)."},
        {Py_tp_new, ground_new},
        {Py_tp_dealloc, ground_dealloc},
        {Py_tp_methods, ground_methods},
        {0, NULL},
};
#pragma GCC diagnostic pop

static PyType_Spec ground_spec = {"skymemory._native.ground.Ground", sizeof(SKYC_PyGround_t), 0, Py_TPFLAGS_DEFAULT,
                                  ground_slots};

static PyModuleDef ground_module = {
    PyModuleDef_HEAD_INIT, "ground", "The ground host of the flight core.", -1, NULL, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_ground(void);
PyMODINIT_FUNC PyInit_ground(void)
{
    PyObject *module = PyModule_Create(&ground_module);
    PyObject *type   = module != NULL ? PyType_FromSpec(&ground_spec) : NULL;

    PyObject *box = type != NULL ? SKYC_PyBox_Type((PyTypeObject *)type) : NULL;

    if (box == NULL || PyModule_AddObjectRef(module, "Ground", type) != 0 || PyModule_AddObjectRef(module, "Box", box) != 0)
    {
        Py_XDECREF(module);
        module = NULL;
    }
    Py_XDECREF(box);
    Py_XDECREF(type);
    return module;
}
