# Header files of ISL that a mission may override in its defs folder; the defaults are in config/.
generate_configfile_set(
  isl_fcncode_values.h
  isl_interface_cfg_values.h
  isl_mission_cfg.h
  isl_msg.h
  isl_msgdefs.h
  isl_msgstruct.h
  isl_tbl.h
  isl_tbldefs.h
  isl_tblstruct.h
  isl_topicid_values.h
)
