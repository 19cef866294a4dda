# Molecules, record splitting, the chemistry worker.
function(molsieve_chem_test name)
  molsieve_test(${name} ${ARGN} USES molsieve::chem)
  add_dependencies(test_${name} molsieve-chem)
endfunction()

molsieve_chem_test(chem_worker unit/worker_test.c LABEL unit)
molsieve_test(record unit/record_test.c LABEL unit USES molsieve::chem ZLIB::ZLIB)
molsieve_test(record_fuzz fuzz/record_fuzz.c LABEL fuzz USES molsieve::chem)
