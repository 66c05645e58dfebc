# Writes the manual pages of PROGRAM into FOLDER, compressed as Debian wants them: `PROGRAM __manual` prints the one that a
# daemon has, of `cadre` the names of its pages.
get_filename_component(name ${PROGRAM} NAME)
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})

function(write_page page)
  execute_process(COMMAND ${PROGRAM} __manual ${ARGN} OUTPUT_FILE ${FOLDER}/${page}.1 COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND gzip -9nf ${FOLDER}/${page}.1 COMMAND_ERROR_IS_FATAL ANY)
endfunction()

if(name STREQUAL "cadre")
  execute_process(COMMAND ${PROGRAM} __manual OUTPUT_VARIABLE pages COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" pages "${pages}")
  foreach(page ${pages})
    write_page(${page} ${page})
  endforeach()
else()
  write_page(${name})
endif()
file(TOUCH ${FOLDER}/done)
