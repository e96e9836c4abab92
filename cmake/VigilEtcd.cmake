# vg_needs_etcd(<test>...): these tests start etcd by themselves. They find the programs in the
# environment: VG_ETCD_34 is Debian's, VG_ETCD_35 and VG_ETCD_36 are built by the test `etcd_get`, which
# runs before them (tests/etcd/get.sh) and keeps them in VIGIL_ETCD_DIR. A program that is not there
# (no Go) is for the test to skip, and to say so; one that finds none ends with 77.
# Tests whose name has "etcd34" need Debian's alone: they run in make test, the others, and with TSan all, in
# make test-more.
set(VIGIL_ETCD_DIR "$ENV{HOME}/.cache/vigil" CACHE PATH "where built etcds are kept between runs")
set(VIGIL_ETCD_35 3.5.35)
set(VIGIL_ETCD_36 3.6.16)

function(vg_needs_etcd)
    foreach(test ${ARGN})
        if(NOT test MATCHES etcd34)
            set_property(TEST ${test} APPEND PROPERTY FIXTURES_REQUIRED etcd)
            vg_more(${test})
        elseif(VIGIL_SANITIZE STREQUAL "thread")
            vg_more(${test})
        endif()
        set_property(TEST ${test} APPEND PROPERTY LABELS etcd)
        set_property(TEST ${test} PROPERTY SKIP_RETURN_CODE 77)
        set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT
            VG_ETCD_34=/usr/bin/etcd
            VG_ETCD_35=${VIGIL_ETCD_DIR}/etcd-${VIGIL_ETCD_35}
            VG_ETCD_36=${VIGIL_ETCD_DIR}/etcd-${VIGIL_ETCD_36})
    endforeach()
endfunction()
