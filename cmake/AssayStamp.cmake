# Writes which commit a plugin was built from beside its file; ids hash the file, never this.
execute_process(COMMAND git -C ${SOURCE} rev-parse HEAD OUTPUT_VARIABLE commit
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(status EQUAL 0)
  execute_process(COMMAND git -C ${SOURCE} status --porcelain -- . OUTPUT_VARIABLE changes
                  ERROR_QUIET)
  if(changes)
    set(dirty true)
  else()
    set(dirty false)
  endif()
  file(WRITE ${OUT} "{\"commit\":\"${commit}\",\"dirty\":${dirty}}\n")
else()
  file(WRITE ${OUT} "{\"commit\":null,\"dirty\":null}\n")
endif()
