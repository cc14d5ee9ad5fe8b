if(EXISTS ${work}/vendor/d3.js)
  set(to ${CMAKE_INSTALL_PREFIX}/${page})
  file(INSTALL ${work}/vendor DESTINATION ${to})
  file(INSTALL ${source}/ DESTINATION ${to} FILES_MATCHING PATTERN "*.html" PATTERN "*.css" PATTERN "*.svg" PATTERN "*.js"
    PATTERN "build.js" EXCLUDE PATTERN "vendor.js" EXCLUDE PATTERN "node_modules" EXCLUDE)
endif()
