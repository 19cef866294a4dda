# Molecules, record splitting, the chemistry worker.
function(molsieve_chem_test name)
  molsieve_test(${name} ${ARGN} USES molsieve::chem)
  add_dependencies(test_${name} molsieve-chem)
endfunction()

molsieve_chem_test(chem_worker unit/worker_test.c LABEL unit threads)
molsieve_chem_test(chem_confine unit/confine_test.c LABEL unit)
molsieve_test(chem_exchange unit/exchange_test.c LABEL unit USES molsieve::chem)
molsieve_test(gunzip unit/gunzip_test.c LABEL unit USES molsieve::chem ZLIB::ZLIB)
molsieve_test(record unit/record_test.c LABEL unit USES molsieve::chem ZLIB::ZLIB)
molsieve_test(record_fuzz fuzz/record_fuzz.c LABEL fuzz USES molsieve::chem)
molsieve_chem_test(chem_kill crash/worker_kill_test.c LABEL crash)
molsieve_chem_test(chem_messy crash/messy_test.c LABEL crash)

# By hand, never pass or fail.
add_executable(instant_chem EXCLUDE_FROM_ALL bench/instant_chem.c)
target_link_libraries(instant_chem PRIVATE molsieve::chem molsieve::warnings)
add_executable(bench_chem EXCLUDE_FROM_ALL bench/bench_chem.c)
target_link_libraries(bench_chem PRIVATE molsieve::chem molsieve::warnings)
add_dependencies(bench_chem molsieve-chem)
add_executable(bench_openbabel EXCLUDE_FROM_ALL bench/bench_openbabel.cpp)
target_compile_options(bench_openbabel PRIVATE -Wno-deprecated-declarations)
target_link_libraries(bench_openbabel PRIVATE PkgConfig::OPENBABEL molsieve::warnings)
