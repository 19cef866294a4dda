# Molecules, record splitting, the chemistry worker.
function(molsieve_chem_test name)
  molsieve_test(${name} ${ARGN} USES molsieve::chem)
  add_dependencies(test_${name} molsieve-chem)
endfunction()

molsieve_chem_test(chem_worker unit/worker_test.c LABEL unit)
molsieve_test(record unit/record_test.c LABEL unit USES molsieve::chem ZLIB::ZLIB)
molsieve_test(record_fuzz fuzz/record_fuzz.c LABEL fuzz USES molsieve::chem)
molsieve_chem_test(chem_kill crash/worker_kill_test.c LABEL crash TIMEOUT 240)
molsieve_chem_test(chem_messy crash/messy_test.c LABEL crash TIMEOUT 300)
