/**
 * @file
 * Where the values of kvc_interface_cfg.h come from: here, its defaults. A mission may override this file.
 */
#ifndef DEFAULT_KVC_INTERFACE_CFG_VALUES_H
#define DEFAULT_KVC_INTERFACE_CFG_VALUES_H

#define KVC_INTERFACE_CFGVAL(x) DEFAULT_KVC_##x

#endif
