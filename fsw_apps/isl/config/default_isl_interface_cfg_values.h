/**
 * @file
 * Where the values of isl_interface_cfg.h come from: here, its defaults. A mission may override this file.
 */
#ifndef DEFAULT_ISL_INTERFACE_CFG_VALUES_H
#define DEFAULT_ISL_INTERFACE_CFG_VALUES_H

#define ISL_INTERFACE_CFGVAL(x) DEFAULT_ISL_##x

#endif
