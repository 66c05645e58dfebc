# Writes OUTPUT, a C file with the content of the files of FOLDER: struct asset of coordinator/daemon/pages/assets.h.
# cmake -DOUTPUT=... -DFOLDER=... -DFILES="a.html|b.css" -P embed.cmake
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
string(REPLACE "|" ";" files "${FILES}")
set(arrays "")
set(rows "")
set(number 0)
foreach(file ${files})
  string(REGEX REPLACE ".*\\." "" ending "${file}")
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "${file}: an asset ends in .html, .css, .js or .svg")
  endif()
  file(READ ${FOLDER}/${file} hex HEX)
  file(SHA256 ${FOLDER}/${file} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "static const unsigned char file_${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${file}\", \"${type_${ending}}\", \"\\\"${hash}\\\"\", (const char *)file_${number},\n"
    "        sizeof file_${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"coordinator/daemon/pages/assets.h\"\n\n${arrays}
const struct asset assets[] = {\n${rows}};
const size_t asset_count = ${number};\n")
