/**
 * @file
 * Where the values of isl_internal_cfg.h come from: here, its defaults. A mission may override this file.
 */
#ifndef DEFAULT_ISL_INTERNAL_CFG_VALUES_H
#define DEFAULT_ISL_INTERNAL_CFG_VALUES_H

#define ISL_PLATFORM_CFGVAL(x) DEFAULT_ISL_PLATFORM_##x

#endif
