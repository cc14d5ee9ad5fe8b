/**
 * @file
 * Boxes for Python: operations that are submitted now, and whose outcomes are taken as they come. A caller that gets blocks one after another has
 * one, and each loop of events.
 */
#include "skyc_python.h"

#include <errno.h>
#include <stdlib.h>

#define LOOK_US 100000u /* between two looks at signals */

/* A place for an operation that was submitted and not taken. Its number is the operation's ticket. */
typedef struct
{
    SKYC_PyRun_t *run;  /* NULL: the place is free */
    Py_ssize_t    next; /* of a free place: the next one that is free; -1: there is none */
} place_t;

typedef struct
{
    PyObject_HEAD SKYC_PyGround_t *ground;
    SKYC_Box_t                    *box;
    place_t                       *places;
    Py_ssize_t                     count, room;
    Py_ssize_t                     free; /* the first free place; -1: there is none */
} box_t;

static PyTypeObject *ground_type;

/* An object is made together with its box, so that no method ever finds none. */
static PyObject *box_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    PyObject *ground = NULL;
    int       has_descriptor;
    int       error = 0;

    if (names != NULL || !PyArg_ParseTuple(arguments, "O!p", ground_type, &ground, &has_descriptor))
    {
        if (PyErr_Occurred() == NULL)
        {
            PyErr_SetString(PyExc_TypeError, "a box takes its ground, and whether it has a descriptor");
        }
        return NULL;
    }
    SKYC_Box_t *box = SKYC_Box_New(((SKYC_PyGround_t *)(void *)ground)->ground, has_descriptor != 0, &error);

    if (box == NULL)
    {
        return SKYC_Py_Fail(error);
    }
    box_t *self = (box_t *)(void *)PyType_GenericAlloc(type, 0);

    if (self == NULL)
    {
        SKYC_Box_Free(box);
        return NULL;
    }
    Py_INCREF(ground);
    self->box    = box;
    self->free   = -1;
    self->ground = (SKYC_PyGround_t *)(void *)ground;
    return (PyObject *)self;
}

/* Have a free place. @return false with an exception */
static bool make_room(box_t *self)
{
    const Py_ssize_t room = self->free < 0 ? 2 * self->room + 1 : self->room;

    if (room > self->room)
    {
        place_t *places = realloc(self->places, (size_t)room * sizeof(place_t));

        if (places == NULL)
        {
            (void)PyErr_NoMemory();
            return false;
        }
        for (Py_ssize_t i = self->room; i < room; ++i)
        {
            places[i] = (place_t){.next = i + 1 < room ? i + 1 : -1};
        }
        self->free   = self->room;
        self->places = places;
        self->room   = room;
    }
    return true;
}

static void forget(box_t *self, Py_ssize_t ticket)
{
    self->places[ticket] = (place_t){.next = self->free};
    self->free           = ticket;
    --self->count;
}

/* submit(request, user) */
static PyObject *box_submit(PyObject *object, PyObject *arguments)
{
    box_t        *self = (box_t *)(void *)object;
    PyObject     *request, *user, *ticket;
    SKYC_PyRun_t *run;

    if (!PyArg_ParseTuple(arguments, "OO", &request, &user))
    {
        return NULL;
    }
    run = SKYC_PyRun_New(
        request, self->ground->servers); /* memory of a block may be an object of Python, whose methods may submit others */
    if (run == NULL || !make_room(self) || (ticket = PyLong_FromSsize_t(self->free)) == NULL)
    {
        SKYC_PyRun_Free(run);
        return NULL;
    }
    Py_INCREF(user);
    run->user              = user;
    run->ticket            = self->free;
    SKYC_Op_t *const op    = &run->op;
    const int        error = SKYC_Ground_Submit(self->ground->ground, self->box, &op, 1);

    if (error != 0)
    {
        Py_DECREF(ticket);
        SKYC_PyRun_Free(run);
        return SKYC_Py_Fail(error);
    }
    self->free                = self->places[run->ticket].next;
    self->places[run->ticket] = (place_t){.run = run};
    ++self->count;
    return ticket;
}

/* Call back the operations with these tickets, in one step: the ground's thread is held up once. @return false with an exception */
static bool cancel(const box_t *self, PyObject *tickets)
{
    const Py_ssize_t count = PyTuple_Size(tickets);
    SKYC_Op_t      **ops   = malloc(((size_t)count + 1u) * sizeof(SKYC_Op_t *));
    uint32_t         given = 0;

    if (ops == NULL)
    {
        (void)PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count && PyErr_Occurred() == NULL; ++i)
    {
        const Py_ssize_t ticket = PyLong_AsSsize_t(PyTuple_GetItem(tickets, i));

        if (ticket >= 0 && ticket < self->room && self->places[ticket].run != NULL)
        {
            ops[given] = &self->places[ticket].run->op;
            ++given;
        }
    }
    if (PyErr_Occurred() == NULL)
    {
        SKYC_Ground_Cancel(self->ground->ground, ops, given);
    }
    free(ops);
    return PyErr_Occurred() == NULL;
}

/* cancel(tickets): a tuple of what `submit` returned */
static PyObject *box_cancel(PyObject *object, PyObject *tickets)
{
    const box_t *self = (const box_t *)(const void *)object;

    if (!PyTuple_Check(tickets))
    {
        PyErr_SetString(PyExc_TypeError, "tickets are a tuple");
        return NULL;
    }
    if (!SKYC_Py_IsOurs(self->ground->ground) || !cancel(self, tickets))
    {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* wait(timeout_us): until something has ended, or nothing runs */
static PyObject *box_wait(PyObject *object, PyObject *argument)
{
    box_t   *self    = (box_t *)(void *)object;
    uint64_t left_us = SKYC_Py_Number(argument, UINT64_MAX, "timeout_us");
    uint32_t ended   = 0;

    if (PyErr_Occurred() != NULL)
    {
        return NULL;
    }
    do
    {
        const uint32_t wait_us = left_us < LOOK_US ? (uint32_t)left_us : LOOK_US;

        Py_BEGIN_ALLOW_THREADS;
        ended = SKYC_Box_Await(self->box, self->count > 0 ? 1 : 0, wait_us);
        Py_END_ALLOW_THREADS;
        left_us -= wait_us;
        if (ended == 0 && (PyErr_CheckSignals() != 0 || !SKYC_Py_IsOurs(self->ground->ground)))
        {
            return NULL;
        }
    } while (ended == 0 && left_us > 0 && self->count > 0);
    return PyBool_FromLong(ended > 0);
}

/* take(): (user, outcome) of the operation that ended first, or None */
static PyObject *box_take(PyObject *object, PyObject *unused)
{
    box_t        *self = (box_t *)(void *)object;
    SKYC_PyRun_t *run  = (SKYC_PyRun_t *)(void *)SKYC_Box_Take(self->box); /* the operation comes first in it */
    PyObject     *told;

    (void)unused;
    if (run == NULL && !SKYC_Py_IsOurs(self->ground->ground))
    {
        return NULL;
    }
    if (run == NULL)
    {
        Py_RETURN_NONE;
    }
    forget(self, run->ticket);
    told = Py_BuildValue("(ON)", run->user, SKYC_PyRun_Outcome(run));
    SKYC_PyRun_Free(run);
    return told;
}

/* progress(): chunks that have moved of the blocks that run, and all of them */
static PyObject *box_progress(PyObject *object, PyObject *unused)
{
    const box_t       *self  = (const box_t *)(const void *)object;
    unsigned long long moved = 0, total = 0;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0; i < self->room; ++i)
    {
        const SKYC_PyRun_t *run = self->places[i].run;
        uint32_t            one = 0;

        if (run != NULL && (run->op.core.kind == SKY_GROUND_GET || run->op.core.kind == SKY_GROUND_PUT))
        {
            moved += SKYC_Ground_Progress(self->ground->ground, &run->op, &one);
        }
        total += one;
    }
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("(KK)", moved, total);
}

static PyObject *box_fileno(PyObject *object, PyObject *unused)
{
    const box_t *self = (const box_t *)(const void *)object;

    (void)unused;
    return PyLong_FromLong(SKYC_Box_Descriptor(self->box));
}

/* Cancel what runs, and wait for its end: the ground uses the memory of the blocks until then. What has ended is dropped. */
static void end_runs(box_t *self)
{
    const Py_ssize_t count = self->count;

    for (Py_ssize_t i = 0; i < self->room; ++i)
    {
        SKYC_PyRun_t    *run = self->places[i].run;
        SKYC_Op_t *const op  = run == NULL ? NULL : &run->op;

        SKYC_Ground_Cancel(self->ground->ground, &op, run == NULL ? 0u : 1u);
    }
    if (self->count > 0)
    {
        Py_BEGIN_ALLOW_THREADS;
        while (SKYC_Ground_Error(self->ground->ground) != ECHILD &&
               SKYC_Box_Await(self->box, (uint32_t)self->count, LOOK_US) < (uint32_t)self->count)
        {
            /* it ends within the next round of the thread */
        }
        Py_END_ALLOW_THREADS;
    }
    for (Py_ssize_t i = 0; i < count; ++i)
    {
        SKYC_PyRun_t *run = (SKYC_PyRun_t *)(void *)SKYC_Box_Take(self->box);

        if (run != NULL) /* else this is a forked child, which has no thread that uses the memory */
        {
            forget(self, run->ticket);
            SKYC_PyRun_Free(run);
        }
    }
    self->count = 0;
}

static PyObject *box_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    end_runs((box_t *)(void *)object);
    Py_RETURN_NONE;
}

static void box_dealloc(PyObject *object)
{
    box_t        *self = (box_t *)(void *)object;
    PyTypeObject *type = Py_TYPE(object);

    end_runs(self);
    SKYC_Box_Free(self->box);
    free(self->places);
    Py_XDECREF((PyObject *)self->ground);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef box_methods[] = {
    {"submit", box_submit, METH_VARARGS,
     "submit(request, user): begin an operation, whose outcome comes with `user`, and return a ticket until that is taken."},
    {"cancel", box_cancel, METH_O, "Ask the operations with these tickets, a tuple, to end; their outcomes come in any case."},
    {"wait", box_wait, METH_O,
     "wait(timeout_us): wait until an outcome can be taken, and return True; False: nothing runs, or it is late."},
    {"take", box_take, METH_NOARGS, "Return (user, outcome) of the operation that ended first, or None."},
    {"close", box_close, METH_NOARGS, "Call back what runs, and wait for its end. What has ended is dropped."},
    {"progress", box_progress, METH_NOARGS, "Return chunks that have moved of the blocks that run, and all of these."},
    {"fileno", box_fileno, METH_NOARGS, "Return the descriptor that is readable while an outcome can be taken, or -1."},
    {NULL, NULL, 0, NULL},
};

/* Python's slots hold functions as void *, which POSIX allows. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
static PyType_Slot     box_slots[] = {
        {Py_tp_doc, "Operations of one caller: submitted now, taken as they end. Not thread-safe."},
        {Py_tp_new, box_new},
        {Py_tp_dealloc, box_dealloc},
        {Py_tp_methods, box_methods},
        {0, NULL},
};
#pragma GCC diagnostic pop

static PyType_Spec box_spec = {"skymemory._native.ground.Box", sizeof(box_t), 0, Py_TPFLAGS_DEFAULT, box_slots};

PyObject *SKYC_PyBox_Type(PyTypeObject *ground)
{
    ground_type = ground; /* the module, which is never unloaded, has a reference to it */
    return PyType_FromSpec(&box_spec);
}
