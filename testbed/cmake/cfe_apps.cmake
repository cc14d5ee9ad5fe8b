# The functions of cFE's build that the apps' CMake files call, so that those files are used here as they are in a mission.
#
# A mission evaluates each app's mission_build.cmake and arch_build.cmake (header sets), then its CMakeLists.txt (app, tables).
# skymem_cfe_app_dir does the same. What a function does here and there differs in one point: tables are linked into the program
# instead of being turned into table files.

set(SKYMEM_CFE_INC_DIR ${CMAKE_CURRENT_BINARY_DIR}/inc)
file(MAKE_DIRECTORY ${SKYMEM_CFE_INC_DIR})

# generate_config_includefile(FILE_NAME name FALLBACK_FILE path): a header `name` that includes the default one.
function(generate_config_includefile)
  cmake_parse_arguments(ARG "" "FILE_NAME;FALLBACK_FILE" "" ${ARGN})
  if(NOT ARG_FILE_NAME OR NOT ARG_FALLBACK_FILE)
    message(FATAL_ERROR "generate_config_includefile: FILE_NAME and FALLBACK_FILE are needed, got: ${ARGN}")
  endif()
  file(CONFIGURE OUTPUT ${SKYMEM_CFE_INC_DIR}/${ARG_FILE_NAME} CONTENT "#include \"${ARG_FALLBACK_FILE}\"\n" @ONLY)
  set_property(GLOBAL APPEND PROPERTY SKYMEM_CFE_HEADERS ${SKYMEM_CFE_INC_DIR}/${ARG_FILE_NAME})
endfunction()

# skymem_cfe_remove_old_headers(): headers that an older version of an app generated here would hide its own.
function(skymem_cfe_remove_old_headers)
  get_property(headers GLOBAL PROPERTY SKYMEM_CFE_HEADERS)
  file(GLOB old ${SKYMEM_CFE_INC_DIR}/*.h)
  list(REMOVE_ITEM old ${headers})
  if(old)
    file(REMOVE ${old})
  endif()
endfunction()

# generate_configfile_set(names...): each is in config/default_<name> beside the calling file.
function(generate_configfile_set)
  foreach(name ${ARGN})
    set(default ${CMAKE_CURRENT_LIST_DIR}/config/default_${name})
    if(NOT EXISTS ${default})
      message(FATAL_ERROR "generate_configfile_set: ${default} does not exist")
    endif()
    generate_config_includefile(FILE_NAME ${name} FALLBACK_FILE ${default})
  endforeach()
endfunction()

# add_cfe_app(name sources...): the app or library as a static library, and the target <name>.table with what its tables see.
function(add_cfe_app APP_NAME)
  add_library(${APP_NAME} STATIC ${ARGN})
  target_link_libraries(${APP_NAME} cfe_api skymem_warnings)
  add_library(${APP_NAME}.table INTERFACE)
  target_include_directories(${APP_NAME}.table INTERFACE $<TARGET_PROPERTY:${APP_NAME},INCLUDE_DIRECTORIES>)
  target_compile_definitions(${APP_NAME}.table INTERFACE $<TARGET_PROPERTY:${APP_NAME},COMPILE_DEFINITIONS>)
endfunction()

# add_cfe_app_dependency(name libraries...): their headers, and here also their code.
function(add_cfe_app_dependency APP_NAME)
  target_link_libraries(${APP_NAME} ${ARGN})
endfunction()

# add_cfe_tables(app[.suffix] sources...): one table image each. The global CFE_TBL_FileDef of a table file gets a name of its own.
function(add_cfe_tables TABLE_NAME)
  string(REGEX REPLACE "\\..*" "" app ${TABLE_NAME})
  foreach(source ${ARGN})
    get_filename_component(base ${source} NAME_WE)
    set(library ${app}_table_${base})
    add_library(${library} OBJECT ${source})
    target_link_libraries(${library} ${app}.table cfe_api skymem_warnings)
    target_compile_definitions(${library} PRIVATE CFE_TBL_FileDef=CFE_TBL_FileDef_${library})
    set_property(GLOBAL APPEND PROPERTY SKYMEM_CFE_TABLES ${library})
  endforeach()
endfunction()

# skymem_cfe_app_dir(app folder): what a mission does with an app.
macro(skymem_cfe_app_dir APP FOLDER)
  set(${APP}_MISSION_DIR ${FOLDER})
  include(${FOLDER}/mission_build.cmake OPTIONAL)
  include(${FOLDER}/arch_build.cmake OPTIONAL)
  add_subdirectory(${FOLDER} ${CMAKE_CURRENT_BINARY_DIR}/apps/${APP})
endmacro()

# skymem_cfe_tables(library): all table images so far, and the array EXEC_TableFiles that names them.
function(skymem_cfe_tables NAME)
  get_property(tables GLOBAL PROPERTY SKYMEM_CFE_TABLES)
  set(declarations "")
  set(entries "")
  set(objects "")
  foreach(table ${tables})
    string(APPEND declarations "extern const CFE_TBL_FileDef_t CFE_TBL_FileDef_${table};\n")
    string(APPEND entries "    &CFE_TBL_FileDef_${table},\n")
    list(APPEND objects $<TARGET_OBJECTS:${table}>)
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${NAME}.c @ONLY CONTENT
"/* Made by the build: the compiled table images. */
#include \"exec.h\"

extern const CFE_TBL_FileDef_t *const EXEC_TableFiles[];
@declarations@
const CFE_TBL_FileDef_t *const EXEC_TableFiles[] = {
@entries@    NULL,
};
")
  add_library(${NAME} STATIC ${CMAKE_CURRENT_BINARY_DIR}/${NAME}.c ${objects})
  target_link_libraries(${NAME} PRIVATE cfe_exec skymem_warnings)
endfunction()
