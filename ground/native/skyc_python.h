/**
 * @file
 * Extension module for Python: what its files share. Private to the module.
 */
#ifndef SKYC_PYTHON_H
#define SKYC_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "skyc_ground.h"

typedef struct
{
    PyObject_HEAD SKYC_Ground_t *ground;
    uint32_t                     servers; /* of a block */
    uint32_t                     satellites;
} SKYC_PyGround_t;

/* ---- skyc_python.c: numbers from Python, errors to it, waits ---------------------------------------------------------------- */

/** Raise an OSError, or RuntimeError for SKYC_NO_THREAD. @return NULL */
PyObject *SKYC_Py_Fail(int error);
/** Return None, or raise an error: one that is not 0. */
PyObject *SKYC_Py_NoneOr(int error);
/** Check that this process is the one that opened a ground. @return false with an exception: it was forked from that */
bool SKYC_Py_IsOurs(const SKYC_Ground_t *ground);
/** Convert an item to a number of at most @p most. @return 0 with an exception if it is none */
uint64_t SKYC_Py_Number(PyObject *item, uint64_t most, const char *name);
/** Convert an item of a tuple. @return as SKYC_Py_Number */
uint16_t SKYC_Py_Number16(PyObject *tuple, Py_ssize_t at, const char *name);
uint32_t SKYC_Py_Number32(PyObject *tuple, Py_ssize_t at, const char *name);
/** Check that an item is a tuple of @p count. @return false with an exception */
bool SKYC_Py_IsTuple(PyObject *item, Py_ssize_t count, const char *name);
/** Get satellites from an iterable of (plane, slot). @return memory to free, room for one at least; NULL with an exception */
SKY_Addr_t *SKYC_Py_Satellites(PyObject *iterable, uint32_t *count);
/** Read a key. @return false with an exception */
bool SKYC_Py_Key(PyObject *item, uint8_t key[SKY_KEY_BYTES]);
/** Return satellites as a tuple of (plane, slot); NULL with an exception. */
PyObject *SKYC_Py_TupleOf(const SKY_Addr_t *satellites, uint32_t count);
/** Have operations done. All are cancelled if a signal raises. @return false with an exception */
bool SKYC_Py_Do(SKYC_Ground_t *ground, SKYC_Op_t *const *ops, uint32_t count);

/* ---- skyc_python_blocks.c: operations on blocks --------------------------------------------------------------------------------- */

/** An operation, the memory of its block, and whose it is. */
typedef struct
{
    SKYC_Op_t  op; /**< it comes first */
    Py_buffer  data;
    bool       has_data;
    uint32_t   servers; /**< of a block */
    PyObject  *user;    /**< of a box; may be NULL */
    Py_ssize_t ticket;  /**< its place in a box */
} SKYC_PyRun_t;

/** Read a request (skymemory/link/operations.py). @return NULL with an exception */
SKYC_PyRun_t *SKYC_PyRun_New(PyObject *request, uint32_t servers);
/** Return the outcome as a tuple; NULL with an exception. */
PyObject *SKYC_PyRun_Outcome(const SKYC_PyRun_t *run);
/** Give back an operation that does not run. NULL is none. */
void SKYC_PyRun_Free(SKYC_PyRun_t *run);

/* ---- skyc_python_box.c ---------------------------------------------------------------------------------------------------------- */

/** Make the type of boxes. @return NULL with an exception */
PyObject *SKYC_PyBox_Type(PyTypeObject *ground);

/** Method of a ground. */
PyObject *SKYC_Py_Run(PyObject *object, PyObject *requests);

/* ---- skyc_python_sky.c: methods of a ground --------------------------------------------------------------------------------- */

PyObject *SKYC_Py_SetSky(PyObject *object, PyObject *arguments);
PyObject *SKYC_Py_Reach(PyObject *object, PyObject *unused);
PyObject *SKYC_Py_TakeHints(PyObject *object, PyObject *hints);
PyObject *SKYC_Py_Hints(PyObject *object, PyObject *unused);

/* ---- skyc_python_telemetry.c: methods of a ground ----------------------------------------------------------------------------- */

PyObject *SKYC_Py_Listen(PyObject *object, PyObject *unused);
PyObject *SKYC_Py_NextTelemetry(PyObject *object, PyObject *argument);

#endif
