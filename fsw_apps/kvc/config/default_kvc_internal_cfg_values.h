/**
 * @file
 * Where the values of kvc_internal_cfg.h come from: here, its defaults. A mission may override this file.
 */
#ifndef DEFAULT_KVC_INTERNAL_CFG_VALUES_H
#define DEFAULT_KVC_INTERNAL_CFG_VALUES_H

#define KVC_PLATFORM_CFGVAL(x) DEFAULT_KVC_PLATFORM_##x

#endif
