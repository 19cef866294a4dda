# molsieve_embed(target file symbol): the bytes of `file`, closed by a NUL, as
# `const char symbol[]` linked into target; made again when the file changes.
set(MOLSIEVE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/EmbedFile.cmake)

function(molsieve_embed target file symbol)
  get_filename_component(from ${file} ABSOLUTE)
  set(to ${PROJECT_BINARY_DIR}/generated/${symbol}.c)
  add_custom_command(OUTPUT ${to}
    COMMAND ${CMAKE_COMMAND} -DFROM=${from} -DTO=${to} -DSYMBOL=${symbol} -P ${MOLSIEVE_EMBED_SCRIPT}
    DEPENDS ${from} ${MOLSIEVE_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${to})
endfunction()
