# Header files of KVC that each processor may override; the defaults are in config/.
generate_configfile_set(
  kvc_internal_cfg_values.h
  kvc_msgid_values.h
  kvc_msgids.h
  kvc_perfids.h
  kvc_platform_cfg.h
)
