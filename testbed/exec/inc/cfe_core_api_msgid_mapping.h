/**
 * @file
 * cFE has the mapping in a file of this name; here it is in cfe_core_api_base_msgids.h.
 */
#include "cfe_core_api_base_msgids.h"
