/**
 * @file
 * A satellite: the executive with the library sky and the apps isl and kvc, set up from options. One per process.
 */
#ifndef SATELLITE_H
#define SATELLITE_H

#include "exec.h"
#include "options.h"

/** Room for the reason of a failure. */
#define SATELLITE_WHY_BYTES 256

/** Start the services, but no app. @return false with the reason in @p why */
bool SATELLITE_Init(const SKYSAT_Options_t *options, bool quiet, char *why, size_t why_size);
/** Start the apps, and return when they run. @return false with the reason in @p why; SATELLITE_Stop is still needed */
bool SATELLITE_Start(char *why, size_t why_size);
/** Stop the satellite. @return false if an app had to be ended by force */
bool SATELLITE_Stop(void);
/** Write the endpoint, such as "127.18.3.10:4919". */
void SATELLITE_Endpoint(char *text, size_t size);

#endif
