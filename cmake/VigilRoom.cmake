# vg_room(<path under src> [LINKS <rooms and libraries>] [SYSTEM <libraries not re-exported>]
#         [THREADED_TESTS <names>] [TEST_LINKS <libraries for tests>])
#
# A room is a folder and a static library. Other rooms can include its headers ("base/err.h") only
# when they link it: each room exports an include directory that holds nothing but itself, so a link
# line is the list of permitted includes and a forbidden one does not compile.
#
# In the folder: *.c is the room, *_test.c a cmocka binary each, fuzz_*.c a fuzz target each.
# Tests named in THREADED_TESTS carry the label `threaded` and run under TSan too.
function(vg_room path)
    cmake_parse_arguments(R "" "" "LINKS;SYSTEM;THREADED_TESTS;TEST_LINKS" ${ARGN})
    string(REPLACE "/" "_" name ${path})
    set(target vg_${name})
    file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    set(sources ${all})
    list(FILTER sources EXCLUDE REGEX "(_test\\.c|/fuzz_[a-z0-9_]+\\.c)$")
    set(tests ${all})
    list(FILTER tests INCLUDE REGEX "_test\\.c$")
    set(fuzzers ${all})
    list(FILTER fuzzers INCLUDE REGEX "/fuzz_[a-z0-9_]+\\.c$")

    set(door ${PROJECT_BINARY_DIR}/rooms/${name})
    cmake_path(GET path PARENT_PATH parent)
    file(MAKE_DIRECTORY ${door}/${parent})
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${path} ${door}/${path} SYMBOLIC)

    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC ${door})
    target_link_libraries(${target} PUBLIC ${R_LINKS} PRIVATE ${R_SYSTEM})
    if(VIGIL_CHECK_HEADERS)
        vg_check_headers(${target} ${R_SYSTEM})
    endif()

    if(VIGIL_TESTS)
        foreach(source ${tests})
            vg_add_test(${source} LINKS ${target} ${R_TEST_LINKS} THREADED ${R_THREADED_TESTS})
        endforeach()
        foreach(source ${fuzzers})
            vg_add_fuzzer(${source} ${target} ${R_SYSTEM} ${R_TEST_LINKS})
        endforeach()
    endif()
endfunction()

# Every header of a room must compile alone; ARGN: libraries that it does not re-export. Folders that
# are rooms of their own check theirs themselves.
function(vg_check_headers target)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
    if(NOT TARGET vg_test_support)
        list(FILTER headers EXCLUDE REGEX "_testing\\.h$")
    endif()
    set(stubs)
    foreach(header ${headers})
        cmake_path(GET header PARENT_PATH folder)
        if(NOT folder STREQUAL CMAKE_CURRENT_SOURCE_DIR AND EXISTS ${folder}/CMakeLists.txt)
            continue()
        endif()
        file(RELATIVE_PATH rel ${CMAKE_CURRENT_SOURCE_DIR} ${header})
        string(REPLACE "/" "_" flat ${rel})
        set(stub ${CMAKE_CURRENT_BINARY_DIR}/alone/${flat}.c)
        file(GENERATE OUTPUT ${stub} CONTENT "#include \"${header}\"\ntypedef int vg_alone;\n")
        list(APPEND stubs ${stub})
    endforeach()
    if(stubs)
        add_library(${target}_headers OBJECT ${stubs})
        target_link_libraries(${target}_headers PRIVATE ${target} ${ARGN})
        if(TARGET vg_test_support) # headers for tests
            target_link_libraries(${target}_headers PRIVATE vg_test_support)
        endif()
    endif()
endfunction()

# One cmocka binary. THREADED lists the test names (without .c) that TSan must see.
function(vg_add_test source)
    cmake_parse_arguments(T "" "" "LINKS;THREADED;ARGS" ${ARGN})
    cmake_path(GET source STEM test)
    add_executable(${test} ${source})
    target_link_libraries(${test} PRIVATE ${T_LINKS} vg_test_support)
    target_compile_definitions(${test} PRIVATE VG_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_test(NAME ${test} COMMAND ${test} ${T_ARGS})
    if(test IN_LIST T_THREADED)
        set_property(TEST ${test} APPEND PROPERTY LABELS threaded)
    endif()
endfunction()

# A libFuzzer entry point: with the fuzz preset a fuzzer, elsewhere a binary that replays
# tests/corpus/<name>/ as a test.
function(vg_add_fuzzer source)
    cmake_path(GET source STEM fuzzer)
    add_executable(${fuzzer} ${source})
    target_link_libraries(${fuzzer} PRIVATE ${ARGN})
    target_include_directories(${fuzzer} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support) # fuzz.h
    if(VIGIL_SANITIZE STREQUAL "fuzzer")
        target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
    else()
        target_sources(${fuzzer} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/fuzz_replay.c)
        add_test(NAME replay_${fuzzer}
                 COMMAND ${fuzzer} ${PROJECT_SOURCE_DIR}/tests/corpus/${fuzzer})
    endif()
endfunction()
