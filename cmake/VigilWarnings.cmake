# Warnings and sanitizers for every target of the project.
add_compile_options(
    -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wundef -Wvla -Wimplicit-fallthrough
    "$<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes;-Wstrict-prototypes;-Wwrite-strings>"
    -fno-omit-frame-pointer)
add_compile_definitions(_GNU_SOURCE)
if(VIGIL_WERROR)
    add_compile_options(-Werror)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    add_compile_options(-Wthread-safety)
endif()
if(VIGIL_DEBUG_CHECKS)
    add_compile_definitions(VG_DEBUG_CHECKS=1)
endif()

if(VIGIL_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
    add_link_options(-fsanitize=address,undefined)
elseif(VIGIL_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread)
    add_link_options(-fsanitize=thread)
elseif(VIGIL_SANITIZE STREQUAL "fuzzer")
    add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
    add_link_options(-fsanitize=address,undefined)
elseif(NOT VIGIL_SANITIZE STREQUAL "")
    message(FATAL_ERROR "VIGIL_SANITIZE is '${VIGIL_SANITIZE}': use address, thread or fuzzer")
endif()
