# Fails where an object of the AVX2 build defines a symbol that the linker may share with other code: on a processor
# without AVX2 the shared copy would be an illegal instruction. Run with -DOBJECTS=<list> -DNM=<nm>.
foreach(object ${OBJECTS})
  execute_process(COMMAND ${NM} --defined-only ${object} OUTPUT_VARIABLE symbols RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${NM} could not read ${object}")
  endif()
  string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" shared "${symbols}")
  foreach(line ${shared})
    if(NOT line MATCHES "7tessera4avx2|DW\\.ref\\.__gxx_personality_v0")
      message(SEND_ERROR "${object}: shared symbol:${line}")
    endif()
  endforeach()
endforeach()
