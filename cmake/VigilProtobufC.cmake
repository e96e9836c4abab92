# vg_protobuf_c(<target> <file.proto>): a library of the messages, by protobuf-c, whose header
# <file>.pb-c.h others find when they link it.
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
find_program(PROTOC_C protoc-c REQUIRED)

function(vg_protobuf_c target proto)
    cmake_path(GET proto STEM stem)
    set(dir ${CMAKE_CURRENT_BINARY_DIR}/${target})
    file(MAKE_DIRECTORY ${dir})
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
    cmake_path(GET source PARENT_PATH source_dir)
    add_custom_command(OUTPUT ${dir}/${stem}.pb-c.c ${dir}/${stem}.pb-c.h
        COMMAND ${PROTOC_C} --c_out=${dir} -I${source_dir} ${stem}.proto
        DEPENDS ${source} VERBATIM)
    add_library(${target} STATIC ${dir}/${stem}.pb-c.c)
    # Not our code: our warnings are not for it.
    set_source_files_properties(${dir}/${stem}.pb-c.c PROPERTIES COMPILE_OPTIONS "-w")
    target_include_directories(${target} SYSTEM PUBLIC ${dir})
    target_link_libraries(${target} PUBLIC PkgConfig::PROTOBUF_C)
endfunction()
