// SPDX-License-Identifier: GPL-2.0-only
// A text in a format that Open Babel reads, prepared as a worker does, or listed as one does with a whole file. The first byte chooses the
// format: its digit, or for a list a letter from A on.
// Such texts can crash Open Babel itself, which is why it runs in a worker: with libFuzzer's -fork=1
// -ignore_crashes=1 its crashes are saved, to be tried with the whole program.
#define main worker_main
#include "chem/worker_program/worker.cpp"
#undef main

extern "C" const char *__asan_default_options();
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern "C" const char *__asan_default_options()
{
    return "detect_leaks=0"; // Open Babel's tables are never freed
}

static bool quiet()
{
    static std::ostringstream nowhere;
    nowhere.setstate(std::ios::badbit);
    obErrorLog.SetOutputStream(&nowhere);
    return true;
}

static const char *const formats[] = { "smi", "sdf", "mol2", "xyz", "pdb", "cml", "inchi", "mol", "cif", "mmcif", "pdbqt" };

static void put_head(Out &request, uint32_t op)
{
    request.put<uint32_t>(op);
    request.put<double>(0); // no CPU limit
}

// By the method that the first byte chooses.
static void put_method(Out &request, uint8_t first)
{
    static const int32_t opts[] = { 1, 250, 1000, CH_3D_KEEP, CH_FF_MMFF94, 40, 0, 1, 1, CH_NATIVE };
    put_head(request, CH_OP_PREPARE);
    request.raw(opts, sizeof opts);
    request.put<uint64_t>(1);
    request.put<double>(first / 8 % 16 - 1); // pH; a digit is replaced by 5
    request.put<double>(10);                 // window
    request.put<double>(0);                  // of a structure
    request.str("");                         // no alerts
    request.str(formats[first == '8' || first == '9' ? first - '0' : first % 8]);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const bool is_quiet = quiet();
    Out request, reply;
    if (size < 1 || !is_quiet)
        return 0;
    if (data[0] >= 'A' && data[0] <= 'K') {
        put_head(request, CH_OP_LIST);
        request.str(formats[data[0] - 'A']);
    } else {
        put_method(request, data[0]);
    }
    request.str(std::string(reinterpret_cast<const char *>(data) + 1, size - 1));
    obErrorLog.ClearLog();
    (void)answer(request.s, reply);
    if (reply.s.size() < 20 || reply.s.find("malformed request") != std::string::npos) // only the text may be wrong
        abort();
    return 0;
}
