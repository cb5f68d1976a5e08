# Writes to OUT which commit of the checkout SOURCE is being built; nothing where it is none. A file that says so already
# is left alone, so that nothing compiles anew.
cmake_minimum_required(VERSION 3.24)
set(commit "")
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git describe --always --dirty --exclude=* --abbrev=12 WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "constexpr char built_commit[] = \"@commit@\";\n" @ONLY)
