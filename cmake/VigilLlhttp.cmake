# vg_llhttp: Node.js's HTTP/1 parser. libllhttp where it is packaged; on Debian 12 the C sources that
# the package node-llhttp installs, compiled here.
pkg_check_modules(LLHTTP IMPORTED_TARGET libllhttp)
if(LLHTTP_FOUND)
    add_library(vg_llhttp INTERFACE)
    target_link_libraries(vg_llhttp INTERFACE PkgConfig::LLHTTP)
else()
    find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp REQUIRED)
    find_path(LLHTTP_SOURCE llhttp.c PATHS /usr/share/llhttp REQUIRED)
    # Out of the build's reach for warnings: not ours.
    add_library(vg_llhttp STATIC ${LLHTTP_SOURCE}/llhttp.c ${LLHTTP_SOURCE}/api.c
                                 ${LLHTTP_SOURCE}/http.c)
    target_include_directories(vg_llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
    target_compile_options(vg_llhttp PRIVATE -w)
    target_compile_definitions(vg_llhttp PRIVATE LLHTTP_STRICT_MODE=1)
endif()
