/**
 * @file
 * The smallest test harness that does the job: CHECK counts, CHECK_EQ shows both values, RUN names the case.
 * Checks may be made by several threads. A program returns CHECK_RESULT(); ctest reads its exit status.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static unsigned check_failures;
static unsigned check_count;

#define CHECK(condition)                                                         \
    do                                                                           \
    {                                                                            \
        (void)__atomic_add_fetch(&check_count, 1, __ATOMIC_RELAXED);             \
        if (!(condition))                                                        \
        {                                                                        \
            (void)__atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);      \
            (void)printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                        \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                        \
    do                                                                                                    \
    {                                                                                                     \
        const long long check_a = (long long)(actual);                                                    \
        const long long check_e = (long long)(expected);                                                  \
        (void)__atomic_add_fetch(&check_count, 1, __ATOMIC_RELAXED);                                      \
        if (check_a != check_e)                                                                           \
        {                                                                                                 \
            (void)__atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);                               \
            (void)printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, check_a, check_e); \
        }                                                                                                 \
    } while (0)

#define RUN(test)                    \
    do                               \
    {                                \
        (void)printf("%s\n", #test); \
        test();                      \
    } while (0)

#define CHECK_RESULT() ((void)printf("%u checks, %u failed\n", check_count, check_failures), check_failures == 0 ? 0 : 1)

#endif
