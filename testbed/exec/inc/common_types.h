/**
 * @file
 * Basic types with the names of OSAL.
 */
#ifndef COMMON_TYPES_H
#define COMMON_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define OS_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define OS_PRINTF(format_at, first_at)
#endif

/** Declare something that does not compile if @p condition is false. */
#define CompileTimeAssert(condition, name) typedef char name[(condition) ? 1 : -1] /* NOLINT(bugprone-macro-parentheses) */

typedef int8_t    int8;
typedef int16_t   int16;
typedef int32_t   int32;
typedef int64_t   int64;
typedef uint8_t   uint8;
typedef uint16_t  uint16;
typedef uint32_t  uint32;
typedef uint64_t  uint64;
typedef intptr_t  intptr;
typedef uintptr_t cpuaddr;
typedef size_t    cpusize;
typedef ptrdiff_t cpudiff;

/** Id of an OSAL object. It is a structure, as in a build without deprecated names, so that no integer passes for one. */
typedef struct
{
    uint32 v;
} osal_id_t;

typedef size_t osal_blockcount_t;
typedef uint32 osal_index_t;
typedef int32  osal_status_t;

#define OSAL_SIZE_C(x)       ((size_t)(x))
#define OSAL_BLOCKCOUNT_C(x) ((osal_blockcount_t)(x))
#define OSAL_INDEX_C(x)      ((osal_index_t)(x))
#define OSAL_STATUS_C(x)     ((osal_status_t)(x))

#endif
