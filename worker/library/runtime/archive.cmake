# libcadre.a: Cadre as one archive, for programs elsewhere that carry it inside. It is linked into one object in which
# only CADRE_API is global, so that no name of ours meets one of the program's.

# Our own static libraries below `target`, each once, into the list `found`.
function(cadre_archives_below target found)
  set(list ${${found}})
  get_target_property(links ${target} LINK_LIBRARIES)
  foreach(link ${links})
    if(TARGET ${link} AND NOT link IN_LIST list)
      get_target_property(type ${link} TYPE)
      get_target_property(imported ${link} IMPORTED)
      if(type STREQUAL "STATIC_LIBRARY" AND NOT imported)
        list(APPEND list ${link})
        cadre_archives_below(${link} list)
      endif()
    endif()
  endforeach()
  set(${found} ${list} PARENT_SCOPE)
endfunction()

# The folders with public functions go in whole, as into libcadre.so.
set(whole cadre_runtime cadre_input cadre_composite cadre_preprocessing cadre_cluster cadre_device cadre_base)
set(parts ${whole})
foreach(target ${whole})
  cadre_archives_below(${target} parts)
endforeach()
list(REMOVE_ITEM parts ${whole})
list(TRANSFORM whole REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE whole_files)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE part_files)
set(archive ${CMAKE_BINARY_DIR}/lib/libcadre.a)
add_custom_command(OUTPUT ${archive}
  COMMAND ${CMAKE_LINKER} -r -o libcadre.o --whole-archive ${whole_files} --no-whole-archive
    --start-group ${part_files} --end-group
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden --strip-debug libcadre.o
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
  COMMAND ${CMAKE_AR} rcsD ${archive} libcadre.o
  DEPENDS ${whole} ${parts} COMMENT "Linking libcadre.a" VERBATIM)
add_custom_target(cadre_archive DEPENDS ${archive})
set_property(GLOBAL PROPERTY cadre_archive ${archive})
