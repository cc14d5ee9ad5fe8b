/**
 * @file
 * Assertions of the flight core: what its own code guarantees, stated where it must hold.
 *
 * An assertion never replaces a check. Values of packets, tables and commands are checked and refused. An assertion that fails is
 * a fault of this code, or of the memory that it runs in. In flight the code behind it still runs. Loops that depend on counts
 * of other functions have a bound of their own, and so have the arrays that they index (test_fail_safe.c). That is no proof: a
 * broken pointer or list leads all code astray that follows it.
 *
 * A program that links the core defines SKY_AssertFailed:
 *
 *     sky_lib_assert.c (flight)                counts; `isl` tells of the first in an event, and of all in housekeeping
 *     skyc_assert.c (the ground's library)     tells of the first on standard error
 *     twin_assert.c, tests, fuzz targets       ends the process
 *
 * An assertion stands alone on its lines: the coverage report leaves out the branches of lines that begin with SKY_ASSERT.
 */
#ifndef SKY_ASSERT_H
#define SKY_ASSERT_H

#if defined(__GNUC__)
#define SKY_ASSERT_COLD __attribute__((cold)) /* compilers keep the call away from the code that runs */
#else
#define SKY_ASSERT_COLD
#endif

/** Handle a false condition of SKY_ASSERT at @p line of @p file, which may have a path before its name. It may return. */
SKY_ASSERT_COLD void SKY_AssertFailed(const char *file, int line);

/** State that @p condition holds. It costs one comparison, and must not change anything. */
#define SKY_ASSERT(condition) ((condition) ? (void)0 : SKY_AssertFailed(__FILE__, __LINE__))

#endif
