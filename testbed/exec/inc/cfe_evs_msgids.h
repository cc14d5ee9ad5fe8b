/**
 * @file
 * cFE has the message ids of its event services in a file of this name; here they are in cfe_evs_msg.h.
 */
#include "cfe_evs_msg.h"
