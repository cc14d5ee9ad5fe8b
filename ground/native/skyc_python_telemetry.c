/**
 * @file
 * Methods of a ground: telemetry that satellites send to this host.
 */
#include "skyc_python.h"

#include <stdlib.h>

PyObject *SKYC_Py_Listen(PyObject *object, PyObject *unused)
{
    SKYC_PyGround_t *self = (SKYC_PyGround_t *)(void *)object;
    int              error;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    error = SKYC_Ground_Listen(self->ground);
    Py_END_ALLOW_THREADS;
    return SKYC_Py_NoneOr(error);
}

PyObject *SKYC_Py_NextTelemetry(PyObject *object, PyObject *argument)
{
    SKYC_PyGround_t  *self       = (SKYC_PyGround_t *)(void *)object;
    const uint32_t    timeout_us = (uint32_t)SKYC_Py_Number(argument, UINT32_MAX, "timeout_us");
    SKYC_Telemetry_t *one        = malloc(sizeof(*one));
    PyObject         *told       = NULL;
    bool              any        = false;

    if (one == NULL || PyErr_Occurred() != NULL || !SKYC_Py_IsOurs(self->ground))
    {
        free(one);
        return PyErr_Occurred() != NULL ? NULL : PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS;
    any = SKYC_Ground_NextTelemetry(self->ground, one, timeout_us);
    Py_END_ALLOW_THREADS;
    told = any ? Py_BuildValue("(HHy#)", one->plane, one->slot, (const char *)one->message, (Py_ssize_t)one->length)
               : SKYC_Py_NoneOr(0);
    free(one);
    return told;
}
