# Writes OUTPUT, a C file with the content of files below FOLDER: struct template_file of deploy/cadre/templates.h.
# cmake -DOUTPUT=... -DFOLDER=... -DFILES="a|b/c" -P embed.cmake
string(REPLACE "|" ";" files "${FILES}")
set(arrays "")
set(rows "")
set(number 0)
foreach(file ${files})
  file(READ ${FOLDER}/${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char file_${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${file}\", (const char *)file_${number}, sizeof file_${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"deploy/cadre/templates.h\"\n\n${arrays}
const struct template_file template_files[] = {\n${rows}};
const size_t template_file_count = ${number};\n")
