# cmake -DFROM=<file> -DTO=<file.c> -DNAME=<symbol> -P embed.cmake: the bytes of a file as a C array and its size.
file(READ ${FROM} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes
  "${bytes}")
file(WRITE ${TO} "#include <stddef.h>\n#include <stdint.h>\n"
  "extern const uint8_t ${NAME}[];\nextern const size_t ${NAME}_size;\n"
  "const uint8_t ${NAME}[] = {\n${bytes}};\nconst size_t ${NAME}_size = sizeof ${NAME};\n")
