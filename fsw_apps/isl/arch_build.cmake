# Header files of ISL that each processor may override; the defaults are in config/.
generate_configfile_set(
  isl_internal_cfg_values.h
  isl_msgid_values.h
  isl_msgids.h
  isl_perfids.h
  isl_platform_cfg.h
)
