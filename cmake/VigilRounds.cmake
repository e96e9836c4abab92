# The round in which a test runs, by its labels (CONTRIBUTING.md):
#   without either   make test
#   more             make test-more, which .ci/run runs after make test
#   long             make test-long alone
# `threaded` is for TSan too; `clients` and `cluster` have other people's programs in them and may be run a
# second time when they fail (tools/test.sh).

# vg_more(<test>...), vg_long(<test>...): these run in that round.
function(vg_more)
    set_property(TEST ${ARGN} APPEND PROPERTY LABELS more)
endfunction()
function(vg_long)
    set_property(TEST ${ARGN} APPEND PROPERTY LABELS long)
endfunction()

# With TSan every test of this directory is for make test-more: they need the whole server, while the code
# that threads share is tested by itself.
macro(vg_more_with_tsan)
    if(VIGIL_SANITIZE STREQUAL "thread")
        cmake_language(DEFER CALL vg_more_directory)
    endif()
endmacro()
function(vg_more_directory)
    get_property(tests DIRECTORY PROPERTY TESTS)
    if(tests)
        vg_more(${tests})
    endif()
endfunction()
