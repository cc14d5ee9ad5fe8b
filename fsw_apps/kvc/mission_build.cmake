# Header files of KVC that a mission may override in its defs folder; the defaults are in config/.
generate_configfile_set(
  kvc_fcncode_values.h
  kvc_interface_cfg_values.h
  kvc_mission_cfg.h
  kvc_msg.h
  kvc_msgdefs.h
  kvc_msgstruct.h
  kvc_tbl.h
  kvc_tbldefs.h
  kvc_tblstruct.h
  kvc_topicid_values.h
)
