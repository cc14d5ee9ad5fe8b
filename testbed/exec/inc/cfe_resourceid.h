/**
 * @file
 * Resource ids: a structure inside a structure of its own for each kind, as in cFE's STRICT build, so that an id of one kind
 * cannot be given where another is wanted.
 */
#ifndef CFE_RESOURCEID_H
#define CFE_RESOURCEID_H

#include "common_types.h"

#define CFE_RESOURCEID_STRICT_MODE

typedef struct
{
    uint32 id;
} CFE_ResourceId_t;

/* This is a macro and not a type, because each typedef made with it is a different type. */
#define CFE_RESOURCEID_BASE_TYPE \
    struct                       \
    {                            \
        CFE_ResourceId_t id;     \
    }

#define CFE_RESOURCEID_WRAP(x) \
    {                          \
        x                      \
    }
#define CFE_RESOURCEID_UNWRAP(x) (x).id

#define CFE_RESOURCEID_UNDEFINED ((CFE_ResourceId_t)CFE_RESOURCEID_WRAP(0))

static inline unsigned long CFE_ResourceId_ToInteger(CFE_ResourceId_t id)
{
    return id.id;
}

static inline bool CFE_ResourceId_Equal(CFE_ResourceId_t a, CFE_ResourceId_t b)
{
    return a.id == b.id;
}

static inline bool CFE_ResourceId_IsDefined(CFE_ResourceId_t id)
{
    return id.id != 0;
}

#define CFE_RESOURCEID_TO_ULONG(x)      CFE_ResourceId_ToInteger(CFE_RESOURCEID_UNWRAP(x))
#define CFE_RESOURCEID_TEST_DEFINED(x)  CFE_ResourceId_IsDefined(CFE_RESOURCEID_UNWRAP(x))
#define CFE_RESOURCEID_TEST_EQUAL(x, y) CFE_ResourceId_Equal(CFE_RESOURCEID_UNWRAP(x), CFE_RESOURCEID_UNWRAP(y))

#endif
